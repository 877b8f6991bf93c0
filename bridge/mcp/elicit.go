package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/internal/elicit"
)

// A keeper takes an answer as the client sent it. [mcp.ServerSession.Elicit] goes on to put the
// schema's defaults into it, which nobody answered (R15), and refuses with an error of its own what
// does not fit as the SDK reads the schema: that is for the gate to decide.
type keeper struct {
	result *mcp.ElicitResult // nil: there is no answer
	err    error
	bridge *Bridge
	wait   string // that the answer is to, where the bridge's HTTP handler admits it; empty: any
	one    elicit.Answer
}

type keeperKey struct{}

// errNoAnswer is what the SDK would have said itself, had it been let see the answer.
var errNoAnswer = errors.New("the answer to the elicitation cannot be read")

// keepAnswers is a sending middleware: it stands between the client's answer and what the SDK does
// with it. An answer to what the server asks itself, beside the bridge, is left as it came.
func (b *Bridge) keepAnswers(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		answer, ok := result.(*mcp.ElicitResult)
		if err != nil || !ok || answer == nil {
			return result, err
		}
		if k, ours := ctx.Value(keeperKey{}).(*keeper); ours && k.bridge == b {
			k.keep(answer)
		} else if b.noteOf(answer.Meta).seen {
			if delete(answer.Meta, b.text); answer.Action == "" {
				return nil, errNoAnswer
			}
		}
		return result, nil
	}
}

// keep reads the answer at once: the SDK changes it when this has returned.
func (k *keeper) keep(answer *mcp.ElicitResult) {
	k.result = answer
	switch n := k.bridge.noteOf(answer.Meta); {
	case k.wait != "" && !slices.Contains(n.waits, k.wait):
		k.err = errors.New("it is not known whose it is")
	case n.ambiguous:
		k.err = errors.New("it cannot be read")
	case n.seen:
		k.one, k.err = readAnswer(json.RawMessage(n.text))
	default:
		k.one, k.err = decoded(answer)
	}
}

// An unread answer is one that cannot be read, or can be read in two ways. Like others that are no
// answer it is asked for again. Nothing of it is in the reason.
type unread struct {
	reason string
	end    *gate.Error // where it was the last one
}

func (u *unread) Error() string { return u.end.Error() }
func (u *unread) Unwrap() error { return u.end }

func unreadable(p *gate.Prompt, q gate.Question, err error) error {
	reason := canon.Clip(err.Error(), elicit.MaxReason)
	return &unread{reason, &gate.Error{
		Code: gate.ErrInvalidAnswer, Message: reason, StillOpen: true, Question: q.ID, Interaction: p.Interaction,
	}}
}

// elicit asks the client and returns its answer for the gate. It waits until the prompt's deadline,
// the end of the request's token, of its session, or the bridge's.
func (c *call) elicit(ctx context.Context, p *gate.Prompt, q gate.Question, params *mcp.ElicitParams) (json.RawMessage, error) {
	k := &keeper{bridge: c.Bridge}
	ctx, cancel := c.until(context.WithValue(ctx, keeperKey{}, k), p)
	defer cancel()
	defer context.AfterFunc(c.closing, cancel)()
	name, done := c.stays(cancel)
	defer done()
	if ctx.Value(handledKey{}) == c.Bridge {
		k.wait = name
	}
	_, err := c.req.Session.Elicit(ctx, params)
	switch {
	case k.result != nil && k.err != nil:
		return nil, unreadable(p, q, k.err)
	case k.result != nil:
		payload, err := k.one.Payload(q.Type)
		if err != nil {
			return nil, unreadable(p, q, err)
		}
		return payload, nil
	case stoodForTwoWays(err):
		return nil, unreadable(p, q, errors.New("it can be read in two ways"))
	case c.closing.Err() != nil:
		return nil, shuttingDown()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, c.overdue(p)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	// A client that says it can ask and cannot, that failed, or whose answer the SDK cannot decode.
	// What it or the SDK says of that can hold what the person typed, so that only the number of an
	// error is logged. The question stays open in the ledger, where a call with the same start ID
	// finds it.
	var number int64
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		number = refused.Code
	}
	c.opts.Logger.WarnContext(ctx, "a client did not answer a question", "tool", c.tool.name, "number", number)
	return nil, &gate.Error{
		Code: gate.ErrConfirmationRequired, Message: "the client did not bring an answer from anybody", Interaction: p.Interaction,
	}
}

// until ends with the prompt and with the token that the request came with.
func (c *call) until(ctx context.Context, p *gate.Prompt) (context.Context, context.CancelFunc) {
	end := p.Expires
	if expiration := c.expiration(); !expiration.IsZero() && (end.IsZero() || expiration.Before(end)) {
		end = expiration
	}
	if end.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, end.Sub(c.opts.Now()))
}

// expiration is that of the request's token; zero: it has none.
func (c *call) expiration() time.Time {
	if c.req.Extra == nil || c.req.Extra.TokenInfo == nil {
		return time.Time{}
	}
	return c.req.Extra.TokenInfo.Expiration
}

// overdue is what ended first: the request's token, or the time to answer.
func (c *call) overdue(p *gate.Prompt) error {
	if end := c.expiration(); !end.IsZero() && !c.opts.Now().Before(end) {
		return protocolErrorOf(CodeUnauthorized, &gate.Error{Code: gate.ErrUnauthorized, Message: "the request's token has expired"})
	}
	return &gate.Error{Code: gate.ErrExpired, Message: "the time to answer is over", Interaction: p.Interaction}
}
