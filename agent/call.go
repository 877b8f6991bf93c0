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
	code   gate.Code // how the call ended that brought words; empty for those that are no end of a call
}

// call is the one road of every tool call: it becomes a call of the gate, and where that waits, an
// interrupt of eino's that names the interaction. It is innermost, so that what is compared here is
// what runs.
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
		g.tell(ToolStarted{Origin: e.origin(), Arguments: arguments})
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

// identify names the call: by what it stored where it was interrupted, else by where it stands.
// again is set where it was.
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
	agents, path, position := place(ctx)
	turn := g.turnsOf(path)
	if turn == 0 {
		return e, false, ErrModel
	}
	g.used(path)
	return envelope{
		Start: g.startID(len(agents), path, turn, id), Tool: name, Call: id, Arguments: digest(arguments), Agents: agents,
		Position: append(position, g.position(path, id)),
	}, false, nil
}

// invoke makes the gate's call.
func (g *going) invoke(ctx context.Context, e envelope, arguments string) (reply, error) {
	ctx, cancel := g.callerContext(ctx)
	defer cancel()
	c := gate.Call{
		Tool: e.Tool, Arguments: json.RawMessage(arguments), Scope: g.scope, Session: g.run.ID().String(), StartID: e.Start,
		Facilities: g.facilities, Run: g.run, Progress: g.progress(e),
	}
	if arguments == "" { // what models send to a tool without arguments
		c.Arguments = json.RawMessage("{}")
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
		// The answer was refused. Whatever is there without it is what the call goes on with.
		c.Token, c.Answers, trouble = "", nil, err
	}
	outcome, err := g.face.Invoke(ctx, c)
	return g.settle(ctx, e, outcome, err, trouble)
}

// refused reports whether an answer was refused in a way that tells nothing of the call. One that
// comes too late is such: the call may have been carried out before, by an attempt that died.
func refused(err error) bool {
	var e *gate.Error
	if !errors.As(err, &e) {
		return false
	}
	return e.StillOpen || slices.Contains([]gate.Code{
		gate.ErrInvalidAnswer, gate.ErrInvalidContinuation, gate.ErrAnswerConflict, gate.ErrAlreadyAnswered, gate.ErrUnauthorized,
		gate.ErrTooLarge, gate.ErrExpired,
	}, e.Code)
}

// settle makes eino's outcome of the gate's.
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
	if g.caller.Err() != nil { // the tool was broken off with the run's caller: the model hears of it when the run goes on
		return reply{}, g.wait(ctx, e, context.Cause(g.caller))
	}
	fresh := failed.Code == gate.ErrUnauthorized && failed.Interaction.IsZero()
	if fresh {
		g.done(e)
		return reply{words: "This call is not allowed here. It was not carried out. Do not make it again.", code: failed.Code}, nil
	}
	words, ok := told(failed)
	if !ok || failed.Code == gate.ErrConfirmationRequired && g.unended(ctx, failed.Interaction) {
		return reply{}, g.wait(ctx, e, err)
	}
	g.done(e)
	return reply{words: words, code: failed.Code}, nil
}

// unended reports whether an interaction goes on: a host that cannot show its question, which
// another one showed, is no reason to end the call.
func (g *going) unended(ctx context.Context, id checkpoint.ID) bool {
	if id.IsZero() {
		return false
	}
	in, err := g.face.InspectID(ctx, g.scope, id)
	return err != nil || slices.Contains([]checkpoint.Status{checkpoint.Started, checkpoint.Open, checkpoint.Answered}, in.Status)
}

// wait stops the call here: eino stores which one it is.
func (g *going) wait(ctx context.Context, e envelope, why error) error {
	_, path, _ := place(ctx)
	g.waits(path, e, why)
	return tool.StatefulInterrupt(ctx, e.Start, e.String())
}

// done forgets a call that waited.
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

// text is what the model reads: a result that is a JSON string is its text.
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
