package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// inputName is the name under which a run keeps the messages of its beginning until its first
// commit.
const inputName = "input"

// mainCheckpoint is the id of the checkpoint of the agent at the top. The id of that of an agent in
// a tool is the start ID of its call.
const mainCheckpoint = "agent"

func (a *Agent) going(ctx context.Context, run *gate.Run, scope string, can []interrupt.Facility, tell func(Event)) *going {
	return &going{
		gate: a.gate, face: a.face, run: run, scope: scope, facilities: slices.Clone(can), caller: ctx, tell: tell,
		turns: map[string]int{}, latest: map[string][]string{}, unused: map[string]string{},
		calls: map[string]envelope{}, trouble: map[string]error{}, told: map[string]bool{},
	}
}

// goOn lets eino go on until it stops, and records where the run stands then.
func (a *Agent) goOn(ctx context.Context, g *going) (*Run, error) {
	defer g.run.Release(ctx) // where nothing else stopped it
	var leave context.CancelFunc
	g.caller, leave = g.run.Context(ctx)
	defer leave()
	g.tell(RunStarted{g.run.ID()})
	e := end{err: g.read(ctx)}
	if e.err == nil {
		// Eino's context does not end with the caller's: eino would throw away what tools did.
		e = g.drive(with(context.WithoutCancel(ctx), g), &a.agents, mainCheckpoint, g.input)
	}
	var lost *gate.Error
	if e.err == nil {
		e.err = g.swallowed()
	}
	switch {
	case e.err == nil:
	case errors.As(context.Cause(g.caller), &lost): // which is why models and tools broke off
		e.err = fmt.Errorf("%w: %w", lost, e.err)
	case g.caller.Err() == nil:
		e.err = errors.Join(e.err, g.forget(ctx))
	}
	leave() // the end of the run need not be told to what has ended
	run, err := g.conclude(ctx, e)
	if run != nil {
		run.Created, run.Updated = g.run.Times()
	}
	return run, err
}

// read reads what the run's last commit left, and gives the answers to it.
func (g *going) read(ctx context.Context) error {
	n, err := readNotes(g.run.Notes())
	if err != nil {
		return errors.Join(ErrCheckpoint, err)
	}
	g.noted = n
	if n.Turns != nil {
		g.turns = maps.Clone(n.Turns)
	}
	blob, err := g.run.Blob()
	if err != nil {
		return err
	}
	if err := g.store.open(blob); err != nil {
		return errors.Join(ErrCheckpoint, err)
	}
	return g.give(ctx)
}

// input are the messages that the run began with.
func (g *going) input() ([]*schema.Message, error) {
	if g.begun != nil {
		return g.begun, nil
	}
	data, _ := g.run.Kept(inputName)
	input, err := decodeMessages(data)
	if err != nil {
		return nil, fmt.Errorf("%w: the messages it began with: %w", ErrCheckpoint, err)
	}
	return input, nil
}

// conclude records how eino's drive of the agent at the top ended. It returns the run beside an
// error, too: as it stands then.
func (g *going) conclude(ctx context.Context, e end) (*Run, error) {
	id := g.run.ID()
	if g.cancelled {
		return g.finishCancelled(ctx)
	}
	run := &Run{ID: id, Status: Waiting, Conversation: g.noted.Conversation}
	wrap := func(err error) error { return fmt.Errorf("run %s: %w", id, err) }
	switch {
	case errors.Is(e.err, ErrForeignInterrupt), errors.Is(e.err, ErrAgents): // which every resume would meet again
		words := "the agent's tools are not made for people to be asked"
		if err := g.run.Finish(ctx, gate.RunEnd{Code: gate.ErrFailed, Message: words}); err != nil {
			return run, wrap(err)
		}
		run.Status, run.Message = Failed, words
		return run, wrap(e.err)
	case e.err != nil: // goOn releases the run as its last commit left it
		if question := interrupt.Interrupt(nil); errors.As(e.err, &question) { // a tool under the gate lets none through
			e.err = fmt.Errorf("%w: %w", ErrUnwrapped, e.err)
		}
		return run, wrap(e.err)
	case !e.interrupted:
		result, err := json.Marshal(e.message)
		if err == nil {
			err = g.run.Finish(ctx, gate.RunEnd{Result: result})
		}
		if err != nil {
			return run, wrap(err)
		}
		run.Status, run.Message = Finished, e.message
		return run, nil
	}
	noted := g.notes()
	text, err := json.Marshal(noted)
	if err != nil {
		return run, wrap(err)
	}
	open, err := g.run.Commit(ctx, gate.RunCommit{Notes: text, Blob: g.store.pack()})
	if err != nil {
		return run, wrap(err)
	}
	run.Problems = g.problems()
	run.Questions = questions(noted, open)
	return run, nil
}

// questions are the open prompts, each with its call, in the order of the calls.
func questions(n notes, open []gate.Outcome) []Question {
	var all []Question
	for _, e := range n.Calls {
		id, err := checkpoint.ParseID(e.Interaction)
		i := slices.IndexFunc(open, func(o gate.Outcome) bool { return err == nil && o.Interaction == id })
		if i >= 0 {
			all = append(all, questionOf(e, open[i]))
		}
	}
	return all
}
