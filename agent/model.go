package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/gate"
)

// Model wraps the model of an agent that runs under the gate. In a run it refuses answers whose
// tool calls have no ids or one id twice ([ErrToolCallIDs]), and keeps every answer until the run's
// next commit, so that a run that is resumed after a crash gets the same answers again, and makes
// the same tool calls, instead of new ones. Outside of a run it is the model.
func Model(m model.ToolCallingChatModel) model.ToolCallingChatModel { return &recorder{m} }

type recorder struct{ model model.ToolCallingChatModel }

// GetType returns the name under which eino's callbacks know the model.
func (r *recorder) GetType() string { return typeName(r.model) }

// IsCallbacksEnabled reports whether the model calls eino's callbacks itself.
func (r *recorder) IsCallbacksEnabled() bool { return components.IsCallbacksEnabled(r.model) }

// WithTools binds tools to the model.
func (r *recorder) WithTools(tools []*schema.ToolInfo) (model.ToolCallingChatModel, error) {
	m, err := r.model.WithTools(tools)
	if err != nil {
		return nil, err
	}
	return &recorder{m}, nil
}

// Generate answers, from what is kept where it is.
func (r *recorder) Generate(ctx context.Context, input []*schema.Message, opts ...model.Option) (*schema.Message, error) {
	g := from(ctx)
	if g == nil {
		return r.model.Generate(ctx, input, opts...)
	}
	t, kept, err := g.takeTurn(ctx)
	if kept != nil || err != nil {
		t.tell(kept)
		return kept, err
	}
	caller, cancel := g.callerContext(ctx)
	defer cancel()
	answer, err := r.model.Generate(caller, input, opts...)
	if err != nil {
		return nil, err
	}
	t.tell(answer)
	return answer, t.keep(ctx, answer)
}

// Stream answers in pieces. A whole answer is kept before the reader sees its end; one that is kept
// already is one piece.
func (r *recorder) Stream(
	ctx context.Context, input []*schema.Message, opts ...model.Option,
) (*schema.StreamReader[*schema.Message], error) {
	g := from(ctx)
	if g == nil {
		return r.model.Stream(ctx, input, opts...)
	}
	t, kept, err := g.takeTurn(ctx)
	if err != nil {
		return nil, err
	}
	if kept != nil {
		t.tell(kept)
		return schema.StreamReaderFromArray([]*schema.Message{kept}), nil
	}
	caller, cancel := g.callerContext(ctx)
	source, err := r.model.Stream(caller, input, opts...)
	if err != nil {
		cancel()
		return nil, err
	}
	reader, writer := pipe[*schema.Message](ctx)
	writer.feed(func() {
		defer cancel()
		defer source.Close()
		t.pump(ctx, source, writer)
	})
	return reader, nil
}

// A turn is one answer of one agent's model.
type turn struct {
	going *going
	place place
	n     int
	name  string // under which it is kept
}

// tell tells text of the answer, before anything can follow from it.
func (t turn) tell(answer *schema.Message) {
	if answer != nil && answer.Content != "" {
		t.going.tell(ModelText{Agents: t.place.agents, Turn: shortened(t.place.path) + "/" + strconv.Itoa(t.n), Text: answer.Content})
	}
}

// takeTurn names the turn, and returns what is kept of it. With neither that nor an error the model
// is to be asked.
func (g *going) takeTurn(ctx context.Context) (turn, *schema.Message, error) {
	if g.cancelled {
		return turn{}, nil, errCancelled
	}
	at := g.placeOf(ctx)
	t := turn{going: g, place: at, n: g.turnsOf(at.path) + 1}
	// Which messages lead to it is no part of the name: what a tool was told to have come to can be
	// other words the next time (its result need not be kept), and yet its answer has been acted
	// on.
	t.name = "model\x00" + at.path + "\x00" + strconv.Itoa(t.n)
	if err := g.waitsIn(at.path); err != nil && g.caller.Err() == nil {
		return t, nil, err
	}
	data, ok := g.run.Kept(t.name)
	if !ok || len(data) == 0 { // none, or it was forgotten
		return t, nil, context.Cause(g.caller) // who has left is asked nothing for
	}
	kept, err := decodeMessages(data)
	if err != nil || len(kept) != 1 {
		return t, nil, fmt.Errorf("read the model's answer that was kept: %w", errors.Join(ErrCheckpoint, err))
	}
	g.answered(at.path, t.n, kept[0])
	return t, kept[0], nil
}

// keep checks an answer and keeps it. It is durable when the first tool of it runs.
func (t turn) keep(ctx context.Context, answer *schema.Message) error {
	if err := checkCalls(answer); err != nil {
		return err
	}
	if !t.leadsOn(answer) {
		t.going.answered(t.place.path, t.n, answer)
		return nil
	}
	data, err := encodeMessages([]*schema.Message{answer})
	if err != nil {
		return err
	}
	if err := t.going.run.Keep(ctx, t.name, data); err != nil {
		return fmt.Errorf("keep the model's answer: %w", err)
	}
	t.going.answered(t.place.path, t.n, answer)
	if len(answer.ToolCalls) > 0 {
		t.going.keeps(t.place.path, t.name)
	}
	return nil
}

// leadsOn reports whether something could be done twice where the answer were another one the next
// time. Without tool calls that of an agent is the end of it, which leads on where other agents
// come after. A tool that asks a model does with the answer what it likes, and can ask for several
// at once.
func (t turn) leadsOn(answer *schema.Message) bool {
	return len(answer.ToolCalls) > 0 || !t.place.inTool && (t.place.isDeep || len(answer.Extra) > 0)
}

// pump passes the pieces on and keeps the whole.
func (t turn) pump(ctx context.Context, source *schema.StreamReader[*schema.Message], to *writer[*schema.Message]) {
	defer func() {
		if value := recover(); value != nil { // a stream runs its model's code; nobody else is above it here
			to.Send(nil, &gate.PanicError{Value: value, Stack: debug.Stack()})
		}
	}()
	var pieces []*schema.Message
	for {
		piece, err := source.Recv()
		switch {
		case errors.Is(err, io.EOF):
			whole, err := schema.ConcatMessages(pieces)
			if err == nil {
				err = t.keep(ctx, whole)
			}
			if err != nil {
				to.Send(nil, err)
			}
			return
		case err != nil:
			to.Send(nil, err)
			return
		}
		pieces = append(pieces, piece)
		t.tell(piece)
		if closed := to.Send(piece, nil); closed {
			return
		}
	}
}

// checkCalls refuses tool calls that cannot be told apart.
func checkCalls(answer *schema.Message) error {
	seen := map[string]bool{}
	for _, call := range answer.ToolCalls {
		if call.ID == "" || seen[call.ID] || !utf8.ValidString(call.ID) || strings.ContainsFunc(call.ID, unicode.IsControl) {
			return fmt.Errorf("%w: tool %q, id %.80q", ErrToolCallIDs, call.Function.Name, call.ID)
		}
		seen[call.ID] = true
	}
	return nil
}
