package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// maxCancelled is how often a run is gone on with whose questions are cancelled: a tool that was
// told so, or the model, can ask again.
const maxCancelled = 16

// clear makes room for a new message in a conversation: while a run of it has not ended, a new one
// is refused, or the questions of the other are cancelled and it goes on to its end.
func (a *Agent) clear(ctx context.Context, s Start, tell func(Event)) error {
	if s.Conversation == "" {
		return nil
	}
	q := gate.RunQuery{Scope: s.Scope}
	for {
		page, err := a.face.Runs(ctx, q)
		if err != nil {
			return err
		}
		for _, live := range page.Runs {
			known, err := readNotes(live.Notes)
			if err != nil || known.Conversation != s.Conversation {
				continue // one that cannot be read here is no reason to be silent for ever
			}
			if !s.CancelOpen {
				return fmt.Errorf("%w: run %s", ErrConversationOpen, live.ID)
			}
			if err := a.cancel(ctx, s, live.ID, tell); err != nil {
				return fmt.Errorf("cancel run %s: %w", live.ID, err)
			}
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
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
		if _, err := a.resume(ctx, r, tellRest); err != nil {
			return err
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
