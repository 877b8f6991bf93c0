package agent

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// inputName is what the messages of a run's beginning are kept under until its first commit.
const inputName = "input"

// checkpointID is the name of the one checkpoint in a capture.
const checkpointID = "run"

func (a *Agent) going(ctx context.Context, run *gate.Run, scope string, can []interrupt.Facility, events func(Event)) *going {
	return &going{
		face: a.face, run: run, scope: scope, facilities: slices.Clone(can), caller: ctx, events: events,
		turns: map[string]int{}, calls: map[string]envelope{}, trouble: map[string]error{},
	}
}

// An end is what eino came to.
type end struct {
	interrupted bool
	foreign     bool   // with an interrupt that is none of ours
	message     string // the last one
	err         error
}

// goOn lets eino go on until it stops, and records what came of it.
func (a *Agent) goOn(ctx context.Context, g *going) (*Run, error) {
	defer g.run.Release(ctx) // where nothing else stopped it
	store := &capture{}
	e := end{err: a.read(ctx, g, store)}
	if e.err == nil {
		e = a.runEino(ctx, g, store)
	}
	run, err := a.conclude(ctx, g, store, e)
	if run != nil {
		for _, q := range run.Questions {
			g.tell(Asked{q})
		}
		g.tell(Stopped{run})
	}
	return run, err
}

// read fetches what the run's last commit left.
func (a *Agent) read(ctx context.Context, g *going, store *capture) (err error) {
	n, err := readNotes(g.run.Notes())
	if err != nil {
		return errors.Join(ErrCheckpoint, err)
	}
	if n.Turns != nil {
		g.turns = n.Turns
	}
	store.blob, err = g.run.Blob(ctx)
	return err
}

// runEino runs eino's agent to where it stops. Its context does not end with the caller's: then
// eino would throw away what tools did.
func (a *Agent) runEino(ctx context.Context, g *going, store *capture) (e end) {
	defer func() {
		if value := recover(); value != nil { // eino panics on what it does not understand in a checkpoint
			e.err = fmt.Errorf("%w: %w", ErrCheckpoint, &gate.PanicError{Value: value, Stack: debug.Stack()})
		}
	}()
	ctx = with(context.WithoutCancel(ctx), g)
	runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: a.eino, EnableStreaming: a.opts.Streaming, CheckPointStore: store})
	var events *adk.AsyncIterator[*adk.AgentEvent]
	if store.blob == nil {
		data, _ := g.run.Kept(inputName)
		var input []*schema.Message
		if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&input); err != nil {
			return end{err: fmt.Errorf("%w: the messages it began with: %w", ErrCheckpoint, err)}
		}
		events = runner.Run(ctx, input, adk.WithCheckPointID(checkpointID))
	} else {
		// No targets: every call that waits is entered again, and the gate says what becomes of it.
		var err error
		if events, err = runner.ResumeWithParams(ctx, checkpointID, &adk.ResumeParams{}); err != nil {
			return end{err: fmt.Errorf("%w: %w", ErrCheckpoint, err)}
		}
	}
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		e.take(g, event)
	}
	return e
}

// take takes one event of eino's. The first error stays.
func (e *end) take(g *going, event *adk.AgentEvent) {
	if event.Err != nil && e.err == nil {
		e.err = event.Err
	}
	if event.Action != nil && event.Action.Interrupted != nil {
		e.interrupted = true
		for _, point := range event.Action.Interrupted.InterruptContexts {
			e.foreign = e.foreign || point.IsRootCause && !g.isOurs(point.Info)
		}
	}
	if event.Output == nil || event.Output.MessageOutput == nil {
		return
	}
	output := event.Output.MessageOutput
	if output.Role == schema.Tool {
		if output.MessageStream != nil {
			output.MessageStream.Close()
		}
		return
	}
	text, err := modelText(g, event.AgentName, output)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.message = text
}

// modelText tells the text of a model as it comes, and returns all of it.
func modelText(g *going, agent string, output *adk.MessageVariant) (string, error) {
	if !output.IsStreaming {
		if output.Message == nil {
			return "", nil
		}
		if output.Message.Content != "" {
			g.tell(ModelText{Agent: agent, Text: output.Message.Content})
		}
		return output.Message.Content, nil
	}
	defer output.MessageStream.Close()
	text := ""
	for {
		piece, err := output.MessageStream.Recv()
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return text, err
		}
		if text += piece.Content; piece.Content != "" {
			g.tell(ModelText{Agent: agent, Text: piece.Content})
		}
	}
}

// conclude records what eino came to. An error comes with the run where it can go on.
func (a *Agent) conclude(ctx context.Context, g *going, store *capture, e end) (*Run, error) {
	id := g.run.ID()
	run := &Run{ID: id, Status: Waiting}
	wrap := func(err error) error { return fmt.Errorf("run %s: %w", id, err) }
	switch {
	case e.foreign || errors.Is(e.err, ErrForeignInterrupt): // it would be there again every time
		run.Status, run.Message = Failed, ErrForeignInterrupt.Error()
		if err := g.run.Finish(ctx, gate.RunEnd{Code: gate.ErrFailed, Message: run.Message}); err != nil {
			return nil, wrap(err)
		}
		return run, wrap(ErrForeignInterrupt)
	case e.err != nil:
		return run, wrap(e.err) // it is released as its last commit left it
	case !e.interrupted:
		run.Status, run.Message = Finished, e.message
		result, err := json.Marshal(e.message)
		if err == nil {
			err = g.run.Finish(ctx, gate.RunEnd{Result: result})
		}
		if err != nil {
			return nil, wrap(err)
		}
		return run, nil
	}
	blob, ok := store.taken()
	if !ok {
		return run, wrap(fmt.Errorf("%w: eino stopped without one", ErrCheckpoint))
	}
	noted := g.notes()
	text, err := json.Marshal(noted)
	if err != nil {
		return run, wrap(err)
	}
	open, err := g.run.Commit(ctx, gate.RunCommit{Notes: text, Blob: blob})
	if err != nil {
		return run, wrap(err)
	}
	run.Problems = g.problems()
	run.Questions = questions(noted, open)
	return run, nil
}

// questions are the open prompts with the calls that they are of, in the order of the calls.
func questions(n notes, open []gate.Outcome) []Question {
	var all []Question
	for _, e := range n.Calls {
		id, err := checkpoint.ParseID(e.Interaction)
		i := slices.IndexFunc(open, func(o gate.Outcome) bool { return err == nil && o.Interaction == id })
		if i >= 0 {
			all = append(all, Question{Origin: e.origin(), Outcome: open[i]})
		}
	}
	return all
}
