package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// Wait waits until a call of the run can go on, because its question was answered by another road
// or has expired, and then resumes the run as [Agent.Resume] does. The store tells of an answer at
// once, where it is a [checkpoint.Watcher]; beside that Wait looks every Options.PollInterval. It
// holds no claim while it waits. Where ctx ends first, its error is returned and nothing has
// happened. Answers in r are refused with [gate.ErrInvalidAnswer].
func (a *Agent) Wait(ctx context.Context, r Resume) *Events {
	return eventsOf(ctx, func(ctx context.Context, tell func(Event)) (*Run, error) { return a.wait(ctx, r, tell) })
}

func (a *Agent) wait(ctx context.Context, r Resume, tell func(Event)) (*Run, error) {
	if len(r.Answers) > 0 {
		return nil, fmt.Errorf("wait for run %s: %w: it takes no answers", r.Run, gate.ErrInvalidAnswer)
	}
	for {
		open, ready, err := a.look(ctx, r)
		if err == nil && !ready {
			ready, err = a.pause(ctx, r, open)
		}
		if err != nil {
			return nil, fmt.Errorf("wait for run %s: %w", r.Run, err)
		}
		if ready {
			return a.resume(ctx, r, tell)
		}
	}
}

// pause returns when the run or one of its open questions may have changed, or it is time to look.
func (a *Agent) pause(ctx context.Context, r Resume, open []checkpoint.ID) (ready bool, err error) {
	changed, stop := a.face.Watch(append(open, r.Run)...)
	defer stop()
	// What changed before the watch began is seen by a look after it.
	if _, ready, err = a.look(ctx, r); ready || err != nil {
		return ready, err
	}
	timer := time.NewTimer(a.opts.PollInterval)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return false, nil
}

// look reports whether a resume would do anything, and if not, which questions of the run are open.
func (a *Agent) look(ctx context.Context, r Resume) (open []checkpoint.ID, ready bool, err error) {
	s, err := a.face.InspectRun(ctx, r.Scope, r.Run)
	if err != nil || s.Claimed {
		return nil, false, err
	}
	known, err := readNotes(s.Notes)
	if err != nil || s.Status == checkpoint.RunEnded || len(known.Calls) == 0 {
		return nil, true, nil // the resume reports it
	}
	for _, e := range known.Calls {
		id, err := checkpoint.ParseID(e.Interaction)
		if err != nil {
			if e.Nested {
				continue // an agent in a tool waits for its own tools, which are calls of the run too
			}
			return nil, true, nil
		}
		in, err := a.face.InspectID(ctx, r.Scope, id)
		if err != nil || in.Status != checkpoint.Open {
			return nil, true, nil
		}
		open = append(open, id)
	}
	return open, false, nil
}
