package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// A conversation is one tools/call to a server. In an older session the server asks while it runs:
// it then outlives the run of the handler, which has to end to ask its person, and goes on in the
// next run.
type conversation struct {
	asks  chan asked
	ended chan reply // cap 1: how the call ended
	err   error      // of the call, where nobody knows how it ended; before ended is closed

	call   context.Context // of the call
	cancel context.CancelFunc
	person context.Context // ends when nobody will answer any more
	leave  context.CancelFunc
	asked  chan struct{} // closed when it asks for the first time
	left   chan struct{} // closed when it has left its turn

	// What follows has the run of the handler whose turn it is, and waiting between two.
	answer chan<- *mcp.ElicitResult // of what is asked now; nil: nothing was asked yet
	over   *time.Timer
}

// An asked question waits for its answer.
type asked struct {
	params *mcp.ElicitParams
	answer chan<- *mcp.ElicitResult
}

type conversationKey struct{}

// begin calls the tool, and returns what the server says: that it ended, or what it asks. The id is
// that of the step.
func (h *ClientHandler) begin(ctx context.Context, id string, params *mcp.CallToolParams) (reply, error) {
	c := &conversation{asks: make(chan asked), ended: make(chan reply, 1), asked: make(chan struct{}), left: make(chan struct{})}
	c.call, c.cancel = context.WithCancel(context.WithValue(context.WithoutCancel(ctx), conversationKey{}, c))
	c.person, c.leave = context.WithCancel(c.call)
	h.calls.Go(func() {
		defer c.cancel()
		defer close(c.ended)
		result, err := h.session.CallTool(c.call, params)
		said, err := replyOf(h.session, result, err)
		if c.err = err; err == nil {
			c.ended <- said
		}
	})
	return h.next(ctx, id, c)
}

// goOn answers what a call asked in an earlier run of the handler.
func (h *ClientHandler) goOn(ctx context.Context, id, call string, answers mcp.InputResponseMap) (reply, error) {
	c := h.waiting.take(call)
	if c == nil {
		return reply{}, &interrupt.StepError{
			Key: id, Reason: "the call that asked was lost with its process, or waited too long", Err: interrupt.ErrOutcomeUnknown,
		}
	}
	for _, answer := range answers { // there is one
		c.answer <- answer.(*mcp.ElicitResult)
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
		h.waiting.put(id, c)
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
		return reply{Failed: "refused the call: " + canon.Clip(refused.Message, maxReason)}, nil
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

// waiting are the calls that a person has a question of, by the step in which it was asked. Each
// waits for a limited time, since the question may never be answered.
type waiting struct {
	limit time.Duration

	mu     sync.Mutex // guards what follows
	calls  map[string]*conversation
	closed bool
}

func (w *waiting) put(id string, c *conversation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		c.cancel()
		return
	}
	if w.calls == nil {
		w.calls = map[string]*conversation{}
	}
	w.calls[id] = c
	c.over = time.AfterFunc(w.limit, func() {
		if w.take(id) != nil {
			c.leave()
		}
	})
}

func (w *waiting) take(id string) *conversation {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.calls[id]
	if c != nil {
		c.over.Stop()
		delete(w.calls, id)
	}
	return c
}

// close breaks the calls off, and those that would wait later.
func (w *waiting) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for id, c := range w.calls {
		c.over.Stop()
		c.cancel()
		delete(w.calls, id)
	}
}
