package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/internal/elicit"
	"github.com/parley-go/parley/interrupt"
)

// A conversation is one tools/call to a server. In an older session the server asks while it runs:
// it then outlives the run of the handler, which has to end to ask its person, and goes on in the
// next run.
type conversation struct {
	room  chan struct{} // cap maxAsked: for what is asked and has no answer
	asks  chan asked
	ended chan reply // cap 1: how the call ended
	err   error      // of the call, where nobody knows how it ended; before ended is closed

	// Both contexts are of the call's own life, which no run of the handler has.
	call   context.Context
	cancel context.CancelFunc
	person context.Context // ends when nobody will answer any more
	leave  context.CancelFunc
	asked  chan struct{} // closed when it asks for the first time
	left   chan struct{} // closed when it has left its turn

	// What follows is the running handler's, and between two runs that of the conversations.
	answer chan<- mcp.Result // of what is asked now; nil: nothing was asked yet
	over   *time.Timer
}

// An asked question waits for its answer.
type asked struct {
	params *mcp.ElicitParams
	answer chan<- mcp.Result
}

type conversationKey struct{}

// begin calls the tool, and returns what the server says: that it ended, or what it asks. The id is
// that of the step.
func (h *ClientHandler) begin(ctx context.Context, id string, params *mcp.CallToolParams) (reply, error) {
	c := &conversation{
		room: make(chan struct{}, maxAsked), asks: make(chan asked), ended: make(chan reply, 1),
		asked: make(chan struct{}), left: make(chan struct{}),
	}
	c.call, c.cancel = context.WithCancel(context.WithValue(context.WithoutCancel(ctx), conversationKey{}, c))
	c.person, c.leave = context.WithCancel(c.call)
	if !h.talks.run(func() { c.run(h.session, params) }) {
		return reply{}, mcp.ErrConnectionClosed
	}
	return h.next(ctx, id, c)
}

func (c *conversation) run(session *mcp.ClientSession, params *mcp.CallToolParams) {
	defer c.cancel()
	defer close(c.ended)
	result, err := session.CallTool(c.call, params)
	said, err := replyOf(session, result, err)
	if c.err = err; err == nil {
		c.ended <- said
	}
}

// goOn answers what a call asked in an earlier run of the handler.
func (h *ClientHandler) goOn(ctx context.Context, id, call string, answers mcp.InputResponseMap) (reply, error) {
	c := h.talks.take(call)
	if c == nil {
		return reply{}, fmt.Errorf("%w: the call to %s was lost with its process, or waited too long", interrupt.ErrOutcomeUnknown, h.name)
	}
	for _, answer := range answers { // there is one
		c.answer <- answer.(mcp.Result)
	}
	return h.next(ctx, id, c)
}

// next is what the server says next. A run of the handler that ends before takes the call along.
func (h *ClientHandler) next(ctx context.Context, id string, c *conversation) (reply, error) {
	select {
	case said, ok := <-c.ended:
		if !ok {
			return reply{}, c.err
		}
		return said, nil
	case q := <-c.asks:
		if c.answer == nil {
			close(c.asked)
		}
		c.answer = q.answer
		h.talks.put(id, c)
		return reply{Asked: mcp.InputRequestMap{"elicitation": q.params}, Call: id}, nil
	case <-ctx.Done():
		c.cancel()
		<-c.ended
		return reply{}, ctx.Err()
	}
}

// replyOf is what is recorded of the end of a call. The error is of one whose end nobody knows.
func replyOf(session *mcp.ClientSession, result *mcp.CallToolResult, err error) (reply, error) {
	if errors.Is(err, errBusy) {
		return reply{Failed: "is busy with another call"}, nil
	}
	// An error of a connection that is closed is none of the protocol.
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		if pages := pagesOf(refused); pages != nil && older(session) {
			return reply{Asked: pages, First: true}, nil
		}
		return reply{Failed: "refused the call: " + canon.Clip(refused.Message, elicit.MaxReason)}, nil
	}
	if err != nil {
		return reply{}, err
	}
	if requests := result.InputRequests; requests != nil {
		if len(requests) == 0 {
			return reply{Failed: "is busy"}, nil
		}
		return reply{Asked: requests, State: result.RequestState}, nil
	}
	raw, err := canon.Marshal(result)
	return reply{Result: raw}, err
}

// pagesOf are the pages that a server of an older session wants visited before a call; nil: none.
func pagesOf(refused *jsonrpc.Error) mcp.InputRequestMap {
	var data struct{ Elicitations []*mcp.ElicitParams }
	if refused.Code != mcp.CodeURLElicitationRequired || json.Unmarshal(refused.Data, &data) != nil || len(data.Elicitations) == 0 {
		return nil
	}
	pages := mcp.InputRequestMap{}
	for i, page := range data.Elicitations {
		if page == nil {
			return nil
		}
		pages[strconv.Itoa(i)] = page
	}
	return pages
}

func older(session *mcp.ClientSession) bool {
	result := session.InitializeResult()
	return result != nil && result.ProtocolVersion < version2026
}
