package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// maxCancelled is how often a run is gone on with whose questions are cancelled: a tool that was
// told so, or the model, can ask again.
const maxCancelled = 16

// begin begins a run, alone in its conversation: while another run of it has not ended, a new one
// is refused, or the questions of the other are cancelled and it goes on to its end. The refusal
// wraps the gate's, whose Interaction is the other run.
func (a *Agent) begin(ctx context.Context, s Start, begun gate.RunStart, tell func(Event)) (*gate.Run, error) {
	for range maxCancelled {
		run, err := a.face.BeginRun(ctx, begun)
		var taken *gate.Error
		if !errors.As(err, &taken) || taken.Code != gate.ErrStartConflict {
			return run, err
		}
		other := taken.Interaction
		if !s.CancelOpen {
			return nil, fmt.Errorf("%w: run %s: %w", ErrConversationOpen, other, taken)
		}
		if err := a.cancel(ctx, s, other, tell); err != nil {
			return nil, fmt.Errorf("cancel run %s: %w", other, err)
		}
	}
	return nil, fmt.Errorf("%w: others begin again and again", ErrConversationOpen)
}

// cancel answers every question of a run with cancel, until it ends. What models and tools do then
// is told; that this run stops is not, since it is not the one that was started.
func (a *Agent) cancel(ctx context.Context, s Start, id checkpoint.ID, tell func(Event)) error {
	tellRest := func(e Event) {
		if _, is := e.(RunGoing); !is {
			tell(e)
		}
	}
	for range maxCancelled {
		run, err := a.Inspect(ctx, s.Scope, id)
		if err != nil {
			return err
		}
		if run.Status == Finished || run.Status == Failed {
			return nil
		}
		r := Resume{Scope: s.Scope, Run: id, Facilities: s.Facilities}
		for _, q := range run.Questions {
			answer := Answer{Interaction: q.Interaction, By: "a new message", Answers: gate.Answers{}}
			for _, one := range q.Prompt.Questions {
				answer.Answers[one.ID] = interrupt.Cancel(one.ID)
			}
			r.Answers = append(r.Answers, answer)
		}
		stopped, err := a.resume(ctx, r, tellRest)
		if err != nil {
			return err
		}
		for _, p := range stopped.Problems {
			if errors.Is(p.Err, gate.ErrUnauthorized) { // which is so every time
				return p.Err
			}
		}
	}
	return fmt.Errorf("%w: it asks again and again", ErrConversationOpen)
}

// Wait waits until a call of the run can go on, because its question was answered by another road
// or has expired, and then does what [Agent.Resume] does; r brings no answers. It looks every
// Options.PollInterval and holds nothing while it waits; ctx's error means that nothing happened.
func (a *Agent) Wait(ctx context.Context, r Resume) Events {
	return eventsOf(ctx, func(ctx context.Context, tell func(Event)) (*Run, error) { return a.wait(ctx, r, tell) })
}

func (a *Agent) wait(ctx context.Context, r Resume, tell func(Event)) (*Run, error) {
	if len(r.Answers) > 0 {
		return nil, fmt.Errorf("wait for run %s: %w: it takes no answers", r.Run, gate.ErrInvalidAnswer)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for run %s: %w", r.Run, ctx.Err())
		}
		ready, err := a.ready(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("wait for run %s: %w", r.Run, err)
		}
		if ready {
			return a.resume(ctx, r, tell)
		}
		timer.Reset(a.opts.PollInterval)
	}
}

// ready reports whether Resume would do more than look.
func (a *Agent) ready(ctx context.Context, r Resume) (bool, error) {
	s, err := a.face.InspectRun(ctx, r.Scope, r.Run)
	if err != nil {
		return false, err
	}
	if s.Going {
		return false, nil
	}
	known, err := readNotes(s.Notes)
	if err != nil || s.Status == checkpoint.RunEnded || len(known.Calls) == 0 {
		return true, nil // Resume says what it is
	}
	for _, e := range known.Calls {
		id, err := checkpoint.ParseID(e.Interaction)
		if err != nil {
			if e.Nested {
				continue // it waits for its own tools
			}
			return true, nil
		}
		in, err := a.face.InspectID(ctx, r.Scope, id)
		if err != nil || in.Status != checkpoint.Open {
			return true, nil
		}
	}
	return false, nil
}
