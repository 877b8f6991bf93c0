package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/internal/elicit"
)

// The numbers of protocol errors (R36). They are of the range that JSON-RPC leaves to
// implementations; the gate's code stands in the data.
const (
	CodeUnavailable         = -32051 // unavailable, busy: the same again can help later
	CodeDeclined            = -32052 // declined; the tool keeps its question open
	CodeCancelled           = -32053 // cancelled; the tool keeps its question open
	CodeUnauthorized        = -32054 // unauthorized
	CodeInvalidContinuation = -32055 // a round that cannot go on: its token, a conflict, its time
	CodeUnsupportedForm     = -32056 // unsupported_form: the protocol cannot ask that
	CodeStartUnknown        = -32057 // start_unknown
)

// InvalidRequestState is the reason in the data of every error about a requestState that is not
// good. The error is the same whatever is wrong with it (R21).
const InvalidRequestState = "invalid_request_state"

// An ErrorData is the data of a protocol error. Nothing in it is private.
type ErrorData struct {
	Code      gate.Code `json:"code"`
	Reason    string    `json:"reason,omitempty"`
	Retryable bool      `json:"retryable,omitempty"` // whether the same again can help later
	Link      string    `json:"link,omitempty"`
}

// numbers are the codes that are protocol errors. All others are how the work itself ended.
var numbers = map[gate.Code]int64{
	gate.ErrUnavailable:         CodeUnavailable,
	gate.ErrBusy:                CodeUnavailable,
	gate.ErrUnauthorized:        CodeUnauthorized,
	gate.ErrInvalidContinuation: CodeInvalidContinuation,
	gate.ErrAnswerConflict:      CodeInvalidContinuation,
	gate.ErrAlreadyAnswered:     CodeInvalidContinuation,
	gate.ErrExpired:             CodeInvalidContinuation,
	gate.ErrRevisionChanged:     CodeInvalidContinuation,
	gate.ErrStartConflict:       CodeInvalidContinuation,
	gate.ErrUnsupportedForm:     CodeUnsupportedForm,
	gate.ErrStartUnknown:        CodeStartUnknown,
	gate.ErrUnknownTool:         jsonrpc.CodeInvalidParams,
}

// number returns the number of a protocol error, or false where the error is how the work ended.
func number(e *gate.Error) (int64, bool) {
	if e.StillOpen && e.Code == gate.ErrDeclined {
		return CodeDeclined, true
	}
	if e.StillOpen && e.Code == gate.ErrCancelled {
		return CodeCancelled, true
	}
	n, ok := numbers[e.Code]
	return n, ok
}

// protocolError is the SDK's own error value, which has to be returned bare: wrapped, the SDK keeps
// neither its data nor, from a typed handler, that it is one.
func protocolError(number int64, message string, data any) *jsonrpc.Error {
	raw, err := json.Marshal(data)
	if err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
	}
	return &jsonrpc.Error{Code: number, Message: message, Data: raw}
}

func protocolErrorOf(number int64, e *gate.Error) *jsonrpc.Error {
	data := ErrorData{Code: e.Code, Retryable: e.Code.Retryable(), Link: e.Link}
	if e.Code == gate.ErrInvalidContinuation {
		data.Reason = InvalidRequestState
		return protocolError(number, "invalid requestState", data)
	}
	return protocolError(number, e.Error(), data)
}

func shuttingDown() error {
	return protocolErrorOf(CodeUnavailable, &gate.Error{Code: gate.ErrUnavailable, Message: "shutting down"})
}

// unauthorized refuses the request. Why stands in the host's log alone.
func (c *call) unauthorized(ctx context.Context, cause error) error {
	c.opts.Logger.WarnContext(ctx, "mcp call refused", "tool", c.tool.name, "cause", cause)
	return protocolErrorOf(CodeUnauthorized, &gate.Error{Code: gate.ErrUnauthorized, Message: "the request is not authorized"})
}

// malformed refuses answers that cannot be read, or can be read in two ways. Nothing of them is in
// the error.
func malformed(reason string) error {
	message := "invalid inputResponses: " + canon.Clip(reason, elicit.MaxReason)
	return protocolError(jsonrpc.CodeInvalidParams, message, ErrorData{Code: gate.ErrInvalidAnswer})
}

// ambiguousParams refuses params of which it is not known what is answered, or called.
func ambiguousParams() error {
	const message = "invalid params: a member is there twice or in another case, or the text is no Unicode"
	return protocolError(jsonrpc.CodeInvalidParams, message, ErrorData{Code: gate.ErrInvalidArguments})
}

// fail is what the client gets for an error of the gate, or of what the bridge does around it.
func (c *call) fail(ctx context.Context, err error) (*mcp.CallToolResult, error) {
	if wire, ok := err.(*jsonrpc.Error); ok { // one of this package's: a handler's is a private cause
		return nil, wire
	}
	var e *gate.Error
	if !errors.As(err, &e) { // the client broke the call off, or it does not fit after all
		c.opts.Logger.WarnContext(ctx, "mcp call failed", "tool", c.tool.name, "err", err)
		return nil, protocolErrorOf(CodeUnavailable, &gate.Error{Code: gate.ErrUnavailable, Message: "the call was broken off"})
	}
	c.logCause(ctx, e)
	if e.Code == gate.ErrConfirmationRequired {
		return c.cannotAsk(ctx, e)
	}
	if n, ok := number(e); ok {
		return nil, protocolErrorOf(n, e)
	}
	return ended(e), nil
}

// logCause tells the host what no client may know: why a store does not serve, what a handler
// failed with. What does not fit is the client's own, and can hold what a person wrote.
func (c *call) logCause(ctx context.Context, e *gate.Error) {
	cause := errors.Unwrap(e)
	if cause == nil || e.Code == gate.ErrInvalidArguments || e.Code == gate.ErrInvalidAnswer {
		return
	}
	log := c.opts.Logger.With("tool", c.tool.name, "code", e.Code)
	if !e.Interaction.IsZero() {
		log = log.With("interaction", e.Interaction)
	}
	log.WarnContext(ctx, "mcp call ended", "cause", cause)
}
