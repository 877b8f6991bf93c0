package mcpbridge

import (
	"context"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// turns finds the call that a question of a server belongs to. In an older session the server does
// not say, so that calls take turns there: what is asked is of the one whose turn it is, and goes
// to no other's person.
type turns struct {
	mu     sync.Mutex // guards holder
	holder map[*mcp.ClientSession]*conversation
}

// errBusy: the call whose turn it is waits for a person.
var errBusy = errors.New("the session is busy")

// send is a sending middleware: a call of a ClientHandler waits for its turn.
func (t *turns) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		c, ok := ctx.Value(conversationKey{}).(*conversation)
		session, client := req.GetSession().(*mcp.ClientSession)
		if !ok || !client || method != "tools/call" || !older(session) {
			return next(ctx, method, req)
		}
		if err := t.enter(ctx, session, c); err != nil {
			return nil, err
		}
		defer func() {
			t.mu.Lock()
			delete(t.holder, session)
			t.mu.Unlock()
			close(c.left)
		}()
		return next(ctx, method, req)
	}
}

func (t *turns) enter(ctx context.Context, session *mcp.ClientSession, c *conversation) error {
	for {
		t.mu.Lock()
		other := t.holder[session]
		if other == nil {
			t.holder[session] = c
		}
		t.mu.Unlock()
		if other == nil {
			return nil
		}
		select {
		case <-other.left:
		case <-other.asked:
			return errBusy
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// receive is a receiving middleware: a question goes to the call whose turn it is. It stands before
// the SDK's own way, which puts defaults into answers.
func (t *turns) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		params, ok := req.GetParams().(*mcp.ElicitParams)
		session, client := req.GetSession().(*mcp.ClientSession)
		if !ok || !client || params == nil {
			return next(ctx, method, req)
		}
		t.mu.Lock()
		c := t.holder[session]
		t.mu.Unlock()
		if c == nil {
			return cancelled(), nil
		}
		return c.ask(ctx, params), nil
	}
}

// maxAsked bounds what a server may ask in a call before the first of it is answered.
const maxAsked = 16

// ask waits for the answer of a person: until there will be none.
func (c *conversation) ask(ctx context.Context, params *mcp.ElicitParams) mcp.Result {
	select {
	case c.room <- struct{}{}:
		defer func() { <-c.room }()
	default:
		return cancelled()
	}
	answer := make(chan mcp.Result, 1)
	select {
	case c.asks <- asked{params, answer}:
	case <-c.person.Done():
		return cancelled()
	case <-ctx.Done():
		return cancelled()
	}
	select {
	case result := <-answer:
		return result
	case <-c.person.Done():
	case <-ctx.Done():
	}
	return cancelled()
}

// cancelled is the answer for a person who gave none.
func cancelled() *mcp.ElicitResult { return &mcp.ElicitResult{Action: "cancel"} }
