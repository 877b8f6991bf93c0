// Package mcpbridge puts the tools of a gate on a server of the MCP Go SDK, so that what they ask
// reaches a person through any MCP client.
//
//	g, err := gate.Open(ctx, store, &gate.Options{Tools: []*gate.Tool{deploy}, Keys: keys})
//	server := mcp.NewServer(&mcp.Implementation{Name: "ops"}, nil)
//	bridge, err := mcpbridge.New(server, g, nil)
//	err = bridge.AddTool(deploy, nil)
//	err = server.Run(ctx, bridge.Transport(&mcp.StdioTransport{}))
//
// What a client gets depends on the protocol that it speaks, and on nothing that the tool does:
//
//   - 2026-07-28: a result with resultType input_required, one input request for each question, and
//     the gate's token as requestState. The client calls again with both, at any time until the
//     deadline, and at any server that stands on the same store.
//   - 2025-11-25 and 2025-06-18: elicitation/create, one question after the other, while the call
//     runs. The token never leaves the server.
//   - A client that cannot be asked gets a tool error with the code confirmation_required and the
//     tool's guidance or, where the host has an inbox (Options.OutOfBand), its link: the question
//     waits there, and the same call again goes on once it is answered.
//
// # Who calls
//
// Options.Authorize decides on every round, from that request's own token info, as whom it is
// served (Grant). Without it only what comes over stdio or another transport with one client is
// served. Each round is bound to the transport's own session, where there is one, and to the
// granted dialog; over stateless HTTP, which has no session, a host has to name a dialog. In a
// session an answer is a request of its own, which Bridge.HTTPHandler has Options.Authorize decide
// on as well.
//
// # Questions
//
// A permission is one required choice, never a boolean, with the arguments in the message; a
// selection is one required choice; a form is its schema, as the protocol of the session can say
// it; a URL is a URL elicitation. An accept without the required content is no consent: the
// question is asked again, with the reason in its message. Forms that ask for a secret are refused,
// since MCP forbids them: use a URL.
//
// Numbers arrive exactly over a transport that Bridge.Transport wrapped, and through
// Bridge.HTTPHandler. The SDK alone reads them as float64: then a form has integers between bounds
// that float64 can hold, and no other numbers.
//
// # The other side
//
// ClientHandler lets a handler use the tools of an MCP server, and put what that asks to its own
// person.
//
// # Errors
//
// How the work ended is a tool error, with the code in the structured content. Failures of
// transport, authorization and continuation are protocol errors, with a number of this package
// (CodeUnavailable and the others) and the code in their data (ErrorData). docs/errors.md has the
// table.
package mcpbridge
