package acpbridge

import (
	"context"
	"fmt"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/gate"
)

// Scope asks the host anew as whom the turn's session is served, for a host that makes calls of the
// gate itself. The error is an *Error of the gate's.
func (t *Turn) Scope(ctx context.Context) (string, error) {
	return t.bridge.scope(ctx, t.sessionID, "")
}

// Scope asks the host as whom a session is served, outside of a turn. The error is an *Error of the
// gate's.
func (b *Bridge) Scope(ctx context.Context, session acp.SessionId) (string, error) {
	return b.scope(ctx, session, "")
}

func (b *Bridge) scope(ctx context.Context, session acp.SessionId, tool string) (string, error) {
	if b.opts.Authorize == nil { // Connect saw to it that this is the process's own
		return localScope, nil
	}
	b.mu.Lock()
	r := Request{Session: session, Tool: tool, Client: b.client}
	b.mu.Unlock()
	var g Grant
	err := safely(func() (err error) {
		g, err = b.opts.Authorize(ctx, r)
		return err
	})
	if err != nil {
		b.opts.Logger.WarnContext(ctx, "acp call refused", "tool", tool, "session", session, "cause", err)
		return "", &gate.Error{Code: gate.ErrUnauthorized, Message: "the request is not authorized"}
	}
	return g.Scope, nil
}

// safely calls application code. A panic of its is an error.
func safely(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	return call()
}
