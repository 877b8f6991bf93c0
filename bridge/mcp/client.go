package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// A ClientHandler lets the handler of a tool use the tools of an MCP server: what the server asks
// becomes questions of that handler, and goes to its own person by whatever face the handler is
// called through, under the same rules. It is for protocol 2026-07-28, in which a question can
// wait; what a server of an older session asks while a call runs is cancelled.
//
//	client := mcp.NewClient(impl, mcpbridge.ClientOptions(nil))
//	session, err := client.Connect(ctx, transport, nil)
//	tickets := mcpbridge.NewClientHandler("the ticket server", session)
//	…
//	result, err := tickets.CallTool(ctx, "create", &mcp.CallToolParams{Name: "create_ticket"})
//	if err != nil {
//		return nil, err // the server's questions, for the handler to return
//	}
type ClientHandler struct {
	name    string
	session *mcp.ClientSession
}

// NewClientHandler returns a handler for a session whose client has [ClientOptions]. The name is
// how the person knows the server: every question begins with it, since it is the server's words
// that follow.
func NewClientHandler(name string, session *mcp.ClientSession) *ClientHandler {
	return &ClientHandler{name: name, session: session}
}

// ClientOptions returns a copy of the options, for a client that is asked through a ClientHandler:
// it declares that it can show forms and URLs, and answers none of them on its own.
func ClientOptions(opts *mcp.ClientOptions) *mcp.ClientOptions {
	var o mcp.ClientOptions
	if opts != nil {
		o = *opts
	}
	capabilities := mcp.ClientCapabilities{}
	if o.Capabilities != nil {
		capabilities = *o.Capabilities
	}
	capabilities.Elicitation = &mcp.ElicitationCapabilities{
		Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
	}
	o.Capabilities = &capabilities
	o.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	o.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}
	return &o
}

// CallTool calls a tool of the server from inside the handler of a gate. Where the server asks
// something it returns the questions as an error, which the handler returns; when the handler runs
// again with the answers, the same CallTool goes on from there. What the server said in each round
// is a step of [interrupt.Once], so that no round is sent twice: one that was sent and has no reply
// on record is [interrupt.ErrOutcomeUnknown]. The key names the call within the handler.
//
// A decline and a cancel are answers to the server, which decides what becomes of the call. The
// requestState of a server is kept with the step. A result or a set of questions that is larger
// than gate.Limits.Result cannot be kept: [interrupt.ErrInvalidStep].
func (h *ClientHandler) CallTool(ctx context.Context, key string, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	next := *params
	next.InputResponses, next.RequestState = nil, ""
	for round := 1; ; round++ {
		step := fmt.Sprintf("mcp/%s/%d", key, round)
		said, err := interrupt.Once(ctx, step, func(ctx context.Context, _ string) (reply, error) { return h.send(ctx, &next) }, nil)
		switch {
		case err != nil:
			return nil, err
		case said.Error != "":
			return nil, &interrupt.Failure{Text: h.name + " refused the call: " + said.Error}
		}
		var result mcp.CallToolResult
		if err := json.Unmarshal(said.Result, &result); err != nil {
			return nil, fmt.Errorf("read the reply of %s: %w", h.name, err)
		}
		if result.InputRequests == nil {
			return &result, nil
		}
		if next.InputResponses, err = h.ask(ctx, step, result.InputRequests); err != nil {
			return nil, err
		}
		next.RequestState = result.RequestState
	}
}

// A reply is what is recorded of a round.
type reply struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"` // of the protocol: the server refused the round
}

func (h *ClientHandler) send(ctx context.Context, params *mcp.CallToolParams) (reply, error) {
	result, err := h.session.CallTool(ctx, params)
	// That of a connection that is closed is none of the protocol: nobody knows what the server
	// did.
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return reply{Error: canon.Clip(refused.Message, maxReason)}, nil
	}
	if err != nil {
		return reply{}, err
	}
	raw, err := canon.Marshal(result)
	return reply{Result: raw}, err
}

// ask puts the server's questions, in the order of their keys, and returns the answers.
func (h *ClientHandler) ask(ctx context.Context, step string, requests mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	keys := slices.Sorted(maps.Keys(requests))
	if len(keys) == 0 {
		return nil, &interrupt.Failure{Text: h.name + " is busy"}
	}
	var questions []interrupt.Interrupt
	for _, key := range keys {
		question, err := h.question(step+"/"+key, requests[key])
		if err != nil {
			return nil, err
		}
		questions = append(questions, question)
	}
	answered, err := interrupt.AskAll(ctx, questions...)
	if answered == nil {
		return nil, err
	}
	// What is left are declines and cancels. They are for the server to know.
	responses := mcp.InputResponseMap{}
	for i, key := range keys {
		response := &mcp.ElicitResult{}
		switch q := answered[i].(type) {
		case *interrupt.FormInterrupt:
			response.Action = string(q.Action)
			response.Content, err = exactly(q.Content)
		case *interrupt.URLInterrupt:
			response.Action, err = string(q.Action), nil
		}
		if err != nil {
			return nil, err
		}
		responses[key] = response
	}
	return responses, nil
}

// exactly reads an object so that its numbers are written again as they are.
func exactly(content json.RawMessage) (map[string]any, error) {
	if content == nil {
		return nil, nil
	}
	var object map[string]any
	err := decodeNumbers(content, &object)
	return object, err
}
