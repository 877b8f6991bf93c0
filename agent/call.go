package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A reply is what a tool call came to: the tool's result, or words for the model.
type reply struct {
	result json.RawMessage // nil: there is none
	words  string
	code   gate.Code // how the call ended, where there are words for it
}

// call is the one road of every tool call. It makes a call of the gate and, where that waits, an
// interrupt of eino's that names the interaction. No middleware of eino's comes after it, so the
// arguments that are compared here are those that run.
func call(ctx context.Context, name, arguments string) (reply, error) {
	g := from(ctx)
	if g == nil {
		return reply{}, fmt.Errorf("call tool %q: %w", name, ErrNoRun)
	}
	e, again, err := g.identify(ctx, name, arguments)
	if err != nil {
		return reply{}, fmt.Errorf("call tool %q: %w", name, err)
	}
	if !again {
		_, shown, _ := g.gate.Shown(name, given(arguments)) // none where they do not fit
		g.tell(ToolStarted{Origin: e.origin(), Arguments: string(shown)})
	}
	text := reply.text
	if in, _ := ctx.Value(innermostKey{}).(*innermost); in != nil && in.tool == name {
		in.origin, text = e.origin(), in.text
	}
	r, err := g.invoke(ctx, e, arguments)
	if err == nil {
		g.tell(ToolEnded{Origin: e.origin(), Result: text(r), Code: r.code})
	}
	return r, err
}

// identify returns the envelope of the call: the one that eino stored where the call was
// interrupted before, and then again is set; otherwise a new one.
func (g *going) identify(ctx context.Context, name, arguments string) (e envelope, again bool, err error) {
	id := compose.GetToolCallID(ctx)
	was, has, stored := tool.GetInterruptState[string](ctx)
	if was {
		if e, err = readEnvelope(stored); !has || err != nil {
			return e, true, fmt.Errorf("%w: %w", ErrCheckpoint, err)
		}
		if e.Tool != name || e.Call != id || e.Arguments != digest(arguments) {
			return e, true, fmt.Errorf("%w: another call asked than the one that is to go on", ErrCheckpoint)
		}
		return e, true, nil
	}
	if id == "" {
		return e, false, ErrToolCallIDs
	}
	by := g.callerOf(ctx)
	turn := g.turnsOf(by.path)
	if turn == 0 && !by.inTool { // a tool may call tools without any model
		return e, false, ErrModel
	}
	g.used(by.path)
	return envelope{
		Start: g.startID(by, turn, id), Tool: name, Call: id, Arguments: digest(arguments), Agents: by.agents,
		Position: append(by.position, g.position(by.path, id)),
	}, false, nil
}

// given returns the arguments that a model gave, as JSON.
func given(arguments string) json.RawMessage {
	if arguments == "" { // what models send to a tool without arguments
		return json.RawMessage("{}")
	}
	return json.RawMessage(arguments)
}

// invoke makes the call of the gate.
func (g *going) invoke(ctx context.Context, e envelope, arguments string) (reply, error) {
	ctx, cancel := g.callerContext(ctx)
	defer cancel()
	c := gate.Call{
		Tool: e.Tool, Arguments: given(arguments), Scope: g.scope, Session: g.run.ID().String(), StartID: e.Start,
		Facilities: g.facilities, Run: g.run, Progress: g.progress(e),
	}
	if g.cancelled {
		return g.breakOff(ctx, e, c)
	}
	var trouble error
	if a, ok := g.answer(e.Start); ok {
		c.Token, c.Answers = a.Token, a.Answers
		outcome, err := g.face.Invoke(ctx, c)
		if !refused(err) {
			return g.settle(ctx, e, outcome, err, nil)
		}
		// The answer was refused, so the call goes on with what is recorded without it.
		c.Token, c.Answers, trouble = "", nil, err
	}
	outcome, err := g.face.Invoke(ctx, c)
	return g.settle(ctx, e, outcome, err, trouble)
}

// refused reports whether err refuses the answer and says nothing of the call itself. That an
// answer came too late is such an error: an attempt whose process died may have carried the call
// out before. That something is too large is one before the interaction is looked at; else it is
// the tool's next question, and how the call ended.
func refused(err error) bool {
	var e *gate.Error
	if !errors.As(err, &e) {
		return false
	}
	return e.StillOpen || e.Code == gate.ErrTooLarge && e.Interaction.IsZero() || slices.Contains([]gate.Code{
		gate.ErrInvalidAnswer, gate.ErrInvalidContinuation, gate.ErrAnswerConflict, gate.ErrAlreadyAnswered, gate.ErrUnauthorized,
		gate.ErrExpired,
	}, e.Code)
}

// settle turns what the gate returned into what eino gets. trouble is why an answer was refused.
func (g *going) settle(ctx context.Context, e envelope, outcome gate.Outcome, err error, trouble error) (reply, error) {
	if outcome.Interaction.IsZero() {
		var failed *gate.Error
		if errors.As(err, &failed) {
			outcome.Interaction = failed.Interaction
		}
	}
	if !outcome.Interaction.IsZero() {
		e.Interaction = outcome.Interaction.String()
	}
	if err == nil && !outcome.Held && outcome.Prompt == nil {
		g.done(e)
		return reply{result: outcome.Result}, nil
	}
	if err == nil {
		return reply{}, g.wait(ctx, e, trouble)
	}
	if errors.Is(err, ErrForeignInterrupt) {
		return reply{}, fmt.Errorf("call tool %q: %w", e.Tool, ErrForeignInterrupt)
	}
	var failed *gate.Error
	if !errors.As(err, &failed) || failed.Code == gate.ErrStartConflict {
		return reply{}, fmt.Errorf("call tool %q: %w: %w", e.Tool, ErrToolCallIDs, err)
	}
	if cause := g.brokenOff(); cause != nil { // and so was the tool; the model hears of it when the run goes on
		return reply{}, g.wait(ctx, e, cause)
	}
	words, ok := told(failed)
	if !ok || !g.isEnd(ctx, e, failed.Code) {
		return reply{}, g.wait(ctx, e, err)
	}
	g.done(e)
	return reply{words: words, code: endOf(failed)}, nil
}

// isEnd reports whether a refusal ends the call. The gate refuses some calls for what the host
// grants now. Where such a call was made before, that is no end of it: its question is still open,
// or the call was carried out.
func (g *going) isEnd(ctx context.Context, e envelope, code gate.Code) bool {
	switch code {
	case gate.ErrUnauthorized, gate.ErrConfirmationRequired, gate.ErrInvalidArguments:
	default:
		return true
	}
	s, err := g.face.Inspect(ctx, g.scope, e.Start)
	return errors.Is(err, gate.ErrStartUnknown) || err == nil && s.Status == checkpoint.Failed && s.Code == code
}

// wait interrupts the call, with its envelope for eino to store.
func (g *going) wait(ctx context.Context, e envelope, why error) error {
	g.waits(g.callerOf(ctx).path, e, why)
	return tool.StatefulInterrupt(ctx, e.Start, e.String())
}

// done notes that a call does not wait any more.
func (g *going) done(e envelope) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.calls, e.Start)
}

func (g *going) progress(e envelope) *gate.Progress {
	return &gate.Progress{Sink: func(_ context.Context, u interrupt.Update) error {
		g.tell(ToolProgress{Origin: e.origin(), Update: u})
		return nil
	}}
}

func (e envelope) origin() Origin {
	return Origin{StartID: e.Start, Tool: e.Tool, Call: e.Call, Agents: e.Agents}
}

// text is what the model reads: the words, or the result as JSON, a JSON string as its text.
func (r reply) text() string {
	if r.result == nil {
		return r.words
	}
	var text string
	if json.Unmarshal(r.result, &text) == nil {
		return text
	}
	return string(r.result)
}
