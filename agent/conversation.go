package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// maxCancelled is how often the questions of one run are cancelled: its tools and its model can ask
// again each time.
const maxCancelled = 16

// begin begins a run that is alone in its conversation. While another run of the conversation has
// not ended, it refuses, or brings the other run to its end first. The refusal wraps the gate's,
// whose Interaction is the other run.
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
		if err := a.cancelOpen(ctx, s, other, tell); err != nil {
			return nil, fmt.Errorf("cancel run %s: %w", other, err)
		}
	}
	return nil, fmt.Errorf("%w: others begin again and again", ErrConversationOpen)
}

// cancelOpen cancels every question of a run until it ends. What its models and tools do then is
// told. That it goes on and stops is not: it is not the run that the caller started.
func (a *Agent) cancelOpen(ctx context.Context, s Start, id checkpoint.ID, tell func(Event)) error {
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
			r.Answers = append(r.Answers, Answer{Interaction: q.Interaction, By: "a new message", Answers: cancelled(q.Prompt)})
		}
		stopped, err := a.resume(ctx, r, tellRest)
		if err != nil {
			return err
		}
		for _, p := range stopped.Problems {
			if errors.Is(p.Err, gate.ErrUnauthorized) { // it would be refused again every time
				return p.Err
			}
		}
	}
	return fmt.Errorf("%w: it asks again and again", ErrConversationOpen)
}

// Wait waits until a call of the run can go on, because its question was answered by another road
// or has expired, and then resumes the run as [Agent.Resume] does. It looks at the run every
// Options.PollInterval and holds no claim while it waits. Where ctx ends first, its error is
// returned and nothing has happened. Answers in r are refused with [gate.ErrInvalidAnswer].
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

// ready reports whether a resume would do anything.
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
		return true, nil // the resume reports it
	}
	for _, e := range known.Calls {
		id, err := checkpoint.ParseID(e.Interaction)
		if err != nil {
			if e.Nested {
				continue // an agent in a tool waits for its own tools, which are calls of the run too
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
