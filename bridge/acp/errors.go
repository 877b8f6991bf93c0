package acpbridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/gate"
)

// startID is what the gate knows a call of a session by. The length keeps two sessions apart whose
// ids begin alike.
func startID(session acp.SessionId, call acp.ToolCallId) string {
	return fmt.Sprintf("acp/%d/%s/%s", len(session), session, call)
}

// unavailable is the end of a call for which the turn, the connection or the bridge is gone.
func unavailable(cause error) *gate.Error {
	return &gate.Error{Code: gate.ErrUnavailable, Message: cause.Error()}
}

// waits is the end of a call whose question stays open.
func waits(cause error, p *gate.Prompt) *gate.Error {
	e := unavailable(cause)
	e.Message += "; the question waits"
	e.StillOpen, e.Interaction = true, p.Interaction
	return e
}

// stopped is the end of a call that did not begin, or did not go on, since the turn or ctx ended.
func (t *Turn) stopped(ctx context.Context) *gate.Error {
	switch cause := context.Cause(t.ctx); {
	case recorded(cause):
		return &gate.Error{Code: gate.ErrCancelled, Message: cause.Error()}
	case cause != nil:
		return unavailable(cause)
	}
	return unavailable(fmt.Errorf("the call was broken off: %w", ctx.Err()))
}

// elsewhere is the end of a call whose question this client cannot be asked, and somebody else can.
func elsewhere(o gate.Outcome) *gate.Error {
	const message = "a person has to answer first, elsewhere; the same call in a later turn goes on when that is done"
	return &gate.Error{Code: gate.ErrConfirmationRequired, Message: message, Link: o.Link, StillOpen: true, Interaction: o.Interaction}
}

// said is what the person is told of a call that failed.
func said(err error) string {
	e, ok := errors.AsType[*gate.Error](err)
	switch {
	case !ok:
		return "The call failed."
	case e.Link != "":
		return e.Error() + "\n" + e.Link
	}
	return e.Error()
}

// onWire is an error of the agent's as the SDK writes it: it knows an error of its own by its type
// alone, and one of the gate's not at all.
func onWire(err error) error {
	if e, ok := errors.AsType[*gate.Error](err); ok {
		return requestError(e)
	}
	return err
}

// requestError is what a response has for an error of the gate's that an agent returns.
func requestError(e *gate.Error) *acp.RequestError {
	number := codeInternal
	switch e.Code {
	case gate.ErrUnauthorized:
		number = codeAuthRequired
	case gate.ErrUnknownTool:
		number = codeInvalidParams
	}
	return &acp.RequestError{Code: number, Message: e.Error(), Data: map[string]any{"code": e.Code, "retryable": e.Code.Retryable()}}
}

// The numbers of JSON-RPC and ACP that matter here.
const (
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeCancelled      = -32800
	codeAuthRequired   = -32000
)
