package mcpbridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/interrupt"
)

// A ClientHandler lets the handler of a tool use the tools of an MCP server: what the server asks
// becomes questions of that handler, and goes to its own person by whatever face the handler is
// called through, under the same rules.
//
//	client := mcpbridge.NewClient(impl, nil)
//	session, err := client.Connect(ctx, transport, nil)
//	tickets := mcpbridge.NewClientHandler("the ticket server", session, nil)
//	…
//	result, err := tickets.CallTool(ctx, "create", &mcp.CallToolParams{Name: "create_ticket"})
//	if err != nil {
//		return nil, err // the server's questions, for the handler to return
//	}
//
// In protocol 2026-07-28 a question waits as long as the gate lets it, also over a restart of
// either side. In an older session it waits in the call, so it is lost with the process or the
// connection: what became of the call is then [interrupt.ErrOutcomeUnknown]. A ClientHandler is
// safe for concurrent use.
type ClientHandler struct {
	name    string
	session *mcp.ClientSession
	talks   conversations
}

// ClientHandlerOptions are the options of a client handler. Nil works, and the zero field is the
// documented default.
type ClientHandlerOptions struct {
	// Wait is how long a call in an older session waits for a person. What it asked is cancelled
	// then. Default: 10 minutes, which is a gate's default for how long a question stands.
	Wait time.Duration
}

const defaultWait = 10 * time.Minute

// NewClientHandler returns a handler for a session of a client of [NewClient]. The name is how the
// person knows the server: every question begins with it, since it is the server's words that
// follow.
//
// A session of an older protocol is the handler's alone: the server does not say which call its
// questions are for, so calls take turns there, and while one waits for a person the others fail
// as busy.
func NewClientHandler(name string, session *mcp.ClientSession, opts *ClientHandlerOptions) *ClientHandler {
	var o ClientHandlerOptions
	if opts != nil {
		o = *opts
	}
	wait := cmp.Or(max(o.Wait, 0), defaultWait)
	return &ClientHandler{name: name, session: session, talks: conversations{limit: wait, waiting: map[string]*conversation{}}}
}

// NewClient returns a client that is asked through a ClientHandler. It declares that it can show
// forms and URLs, and leaves what is asked to the handler of its session; what is asked outside of
// a handler's call is cancelled. Options are the SDK's, but for ElicitationHandler and
// MultiRoundTrip, which have no use here.
func NewClient(impl *mcp.Implementation, opts *mcp.ClientOptions) *mcp.Client {
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
	o.Capabilities, o.ElicitationHandler = &capabilities, nil
	o.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	client := mcp.NewClient(impl, &o)
	t := &turns{holder: map[*mcp.ClientSession]*conversation{}}
	client.AddSendingMiddleware(t.send)
	client.AddReceivingMiddleware(t.receive)
	return client
}

// Close breaks off the calls that wait for a person, closes the session, and returns when no call
// is left. Close the gate before it, whose handlers may be in one. To close the session alone waits
// for the person, too.
func (h *ClientHandler) Close() error {
	h.talks.close()
	err := h.session.Close()
	h.talks.running.Wait()
	return err
}

// CallTool calls a tool of the server from inside the handler of a gate. Where the server asks
// something it returns the questions as an error, which the handler returns; when the handler runs
// again with the answers, the same CallTool goes on from there. What the server said in each round
// is a step of [interrupt.Once], so that no round is sent twice: one that was sent and has no reply
// on record is [interrupt.ErrOutcomeUnknown]. The key names the call within the handler.
//
// A decline and a cancel are answers to the server, which decides what becomes of the call; where
// it wants a page visited before it is called at all (−32042) they are the error. The requestState
// of a server is kept with the step. A result that is larger than gate.Limits.Result is not kept:
// a handler that asks something after it finds [interrupt.ErrOutcomeUnknown] when it runs again. A
// set of questions of that size is [interrupt.ErrInvalidStep].
func (h *ClientHandler) CallTool(ctx context.Context, key string, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	next := *params
	next.InputResponses, next.RequestState = nil, ""
	var said reply
	for round := 1; ; round++ {
		step := fmt.Sprintf("mcp/%s/%d", key, round)
		call := said.Call
		var heard reply
		var err error
		said, err = interrupt.Once(ctx, step, func(ctx context.Context, id string) (_ reply, err error) {
			if call != "" {
				heard, err = h.goOn(ctx, id, call, next.InputResponses)
			} else {
				heard, err = h.begin(ctx, id, &next)
			}
			heard.V = replyVersion
			return heard, err
		}, nil)
		if errors.Is(err, interrupt.ErrInvalidStep) && heard.Result != nil { // it is too large to be kept
			said, err = heard, nil
		}
		switch {
		case err != nil:
			h.talks.drop(heard.Call)
			return nil, err
		case said.V != replyVersion:
			return nil, fmt.Errorf("read the reply of %s: version %d, want %d", h.name, said.V, replyVersion)
		case said.Failed != "":
			return nil, &interrupt.Failure{Text: h.name + " " + said.Failed}
		case said.Asked == nil:
			result := new(mcp.CallToolResult)
			if err := json.Unmarshal(said.Result, result); err != nil {
				return nil, fmt.Errorf("read the reply of %s: %w", h.name, err)
			}
			return result, nil
		}
		answers, err := h.ask(ctx, step, said.Asked)
		if answers == nil && !willBeAsked(ctx, err) {
			h.talks.drop(said.Call)
		}
		if answers == nil || err != nil && said.First {
			return nil, err
		}
		next.InputResponses, next.RequestState = answers, said.State
		if said.First {
			next.InputResponses = nil
		}
	}
}

// A reply is what is recorded of a round: the call's result, that it failed, or what was asked.
// testdata/replies has one of each in every version.
type reply struct {
	V      int                 `json:"v"`
	Result json.RawMessage     `json:"result,omitempty"`
	Failed string              `json:"failed,omitempty"` // the server refused the round
	Asked  mcp.InputRequestMap `json:"asked,omitempty"`
	State  string              `json:"state,omitempty"` // for the next round
	Call   string              `json:"call,omitempty"`  // waits for the answer, in an older session
	First  bool                `json:"first,omitempty"` // what is asked comes before the call
}

const replyVersion = 1

// ask puts the server's questions, in the order of their keys. Beside answers the error is a no of
// the person's; without any it is for the handler to return.
func (h *ClientHandler) ask(ctx context.Context, step string, requests mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	keys := slices.Sorted(maps.Keys(requests))
	var questions []interrupt.Interrupt
	for i, key := range keys {
		question, err := h.question(fmt.Sprint(step, "/", i+1), requests[key])
		if err != nil {
			return nil, err
		}
		questions = append(questions, question)
	}
	answered, no := interrupt.AskAll(ctx, questions...)
	if answered == nil {
		return nil, no
	}
	answers := mcp.InputResponseMap{}
	for i, key := range keys {
		answer := &mcp.ElicitResult{}
		switch q := answered[i].(type) {
		case *interrupt.FormInterrupt:
			answer.Action = string(q.Action)
			var err error
			if answer.Content, err = exactly(q.Content); err != nil {
				return nil, err
			}
		case *interrupt.URLInterrupt:
			answer.Action = string(q.Action)
		}
		if answers[key] = answer; answer.Content != nil && len(answer.Content) == 0 {
			answers[key] = blank{answer}
		}
	}
	return answers, no
}

// A blank form is accepted with an empty object, as a form has to be (R15). The SDK would leave it
// out.
type blank struct{ *mcp.ElicitResult }

func (blank) MarshalJSON() ([]byte, error) { return []byte(`{"action":"accept","content":{}}`), nil }

// willBeAsked reports whether a person gets to see what a handler returns: else no answer is waited
// for.
func willBeAsked(ctx context.Context, err error) bool {
	c := interrupt.Classify(err)
	return c.Kind == interrupt.KindPrompt && !slices.ContainsFunc(c.Questions, func(q interrupt.Interrupt) bool {
		return !interrupt.Supports(ctx, interrupt.Facility(q.TypeName())) && !interrupt.Supports(ctx, interrupt.FacilityOutOfBand)
	})
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
