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

// Model wraps the model of an agent that runs under the gate. It is as safe for concurrent use as
// m.
//
// In a run, it keeps every answer until the run's next commit. A run that is resumed after a crash
// then gets the same answers again, and makes the same tool calls instead of new ones. It refuses
// an answer whose tool calls cannot be told apart ([ErrToolCallIDs]). Outside of a run it does what
// m does.
//
// An agent of eino's v0.7 binds its tools to the model, which has to be a ToolCallingChatModel
// then. Later versions give them with each call, to any model.
func Model(m model.BaseChatModel) model.ToolCallingChatModel { return &recorder{m} }

var errNoAnswer = errors.New("the model gave neither an answer nor an error")

type recorder struct{ model model.BaseChatModel }

// GetType returns the name under which eino's callbacks know the model.
func (r *recorder) GetType() string { return typeName(r.model) }

// IsCallbacksEnabled reports whether the model calls eino's callbacks itself.
func (r *recorder) IsCallbacksEnabled() bool { return components.IsCallbacksEnabled(r.model) }

// WithTools binds tools to the model.
func (r *recorder) WithTools(tools []*schema.ToolInfo) (model.ToolCallingChatModel, error) {
	binds, ok := r.model.(model.ToolCallingChatModel)
	if !ok {
		return nil, fmt.Errorf("bind tools: model %T takes none (it is no ToolCallingChatModel)", r.model)
	}
	m, err := binds.WithTools(tools)
	if err != nil {
		return nil, err
	}
	return &recorder{m}, nil
}

// Generate returns the answer that is kept, or asks the model.
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
	if err == nil && answer == nil {
		err = errNoAnswer
	}
	if err != nil {
		return nil, err
	}
	t.tell(answer)
	return answer, t.keep(ctx, answer)
}

// Stream returns the answer that is kept, in one piece, or asks the model. The answer is kept
// before the reader sees its end.
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
	if err == nil && source == nil { // its Close would panic, where nobody recovers
		err = errNoAnswer
	}
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
	if answer == nil {
		return
	}
	name := shortened(t.place.path) + "/" + strconv.Itoa(t.n)
	if answer.ReasoningContent != "" {
		t.going.tell(ModelReasoning{Agents: t.place.agents, Turn: name, Text: answer.ReasoningContent})
	}
	if answer.Content != "" {
		t.going.tell(ModelText{Agents: t.place.agents, Turn: name, Text: answer.Content})
	}
}

// takeTurn returns the turn that begins, and its answer where that is kept. Where there is neither
// an answer nor an error, the model is to be asked.
func (g *going) takeTurn(ctx context.Context) (turn, *schema.Message, error) {
	if g.cancelled {
		return turn{}, nil, errCancelled
	}
	at := g.placeOf(ctx)
	t := turn{going: g, place: at, n: g.turnsOf(at.path) + 1}
	// The messages that lead to the answer are no part of its name. They can change when the run is
	// resumed: of a tool whose result is not kept, the model is told in other words. The calls of
	// this answer have been made all the same.
	t.name = "model\x00" + at.path + "\x00" + strconv.Itoa(t.n)
	if err := g.waitsIn(at.path); err != nil && g.caller.Err() == nil {
		return t, nil, err
	}
	data, ok := g.run.Kept(t.name)
	if !ok || len(data) == 0 { // none, or going.forget has emptied it
		return t, nil, context.Cause(g.caller) // no model is asked for a caller that has left
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
