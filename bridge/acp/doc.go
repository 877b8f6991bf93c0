// Package acpbridge puts a gate behind an ACP connection, so that what tools ask reaches the person
// in the editor.
//
//	g, err := gate.Open(ctx, store, &gate.Options{Tools: []*gate.Tool{deploy}, Keys: keys})
//	bridge, err := acpbridge.New(g, nil)
//	conn, err := bridge.Connect(myAgent, os.Stdout, os.Stdin)
//	<-conn.Done()
//	err = bridge.Close(ctx)
//
// myAgent is an [Agent], as every [acp.Agent] is. In its Prompt it finds the turn, and makes the
// tool calls of its model with it:
//
//	func (a *myAgent) Prompt(
//		ctx context.Context, p acp.PromptRequest,
//	) (acp.PromptResponse, error) {
//		turn := acpbridge.TurnOf(ctx)
//		call := acpbridge.Call{ID: "call_1", Tool: "deploy", Arguments: args}
//		result, err := turn.CallTool(ctx, call)
//		// an err is a *gate.Error, and for the model: the turn goes on
//		err = turn.Say("Deployed.")
//		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
//	}
//
// An agent of package agent does not call tools itself: package acpagent runs it in a turn.
//
// # What the editor sees
//
// Every call is a tool_call that is pending (in progress where its tool never asks), and gets a
// terminal status in the same turn, but where the connection is lost. How far it is
// ([interrupt.Progress]) and what it asks comes in between:
//
//   - A permission is session/request_permission, always, with all that it is about: title, kind,
//     content, locations and the arguments that will run. Its options are one for each kind.
//   - A selection, a form and a URL are elicitation/create, where the client declares the mode.
//     Where it does not they are confirmation_required, unless Options.Fallback allows them to be
//     asked as a permission; see [Fallbacks].
//
// A rejection and a decline end the call, not the turn. One question of a session is asked at a
// time, the others wait in line, each with its own deadline.
//
// # How a turn ends early
//
// What the client cancels (session/cancel, $/cancel_request, session/close), and what the person
// breaks off, ends the turn with the stop reason cancelled, whatever the agent returns. Contexts
// are cancelled, what is open is recorded as cancelled, and handlers that run are waited for before
// the response; no update comes after it. An answer that arrives together with a cancel does not
// count.
//
// A lost connection and [Bridge.Close] record nothing: the question waits. A call that comes again
// with its ID, from this or another process, joins it ([Turn.CallTool]), and it is put again.
//
// # Who answers
//
// Options.Authorize decides as whom the client is served, for every round. Without it what comes
// over the process's own standard input and output is served as "local", and nothing else is.
// Tokens never leave the process.
//
// # What the SDK does not do
//
// The bridge sees the messages before the SDK does: v0.13.0 loses cancels that come right behind
// their prompt, sends elicitations without their scope, and reads answers that are none as accepted
// ones. Answers are read strictly here, from their text; numbers are exact.
package acpbridge
