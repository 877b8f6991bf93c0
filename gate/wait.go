package gate

import (
	"context"
	"errors"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// Wait waits until the open prompt of the call's interaction is answered by another road, and then does what [Face.Invoke] does: it runs the
// handler and returns its result or next prompt. The call names the interaction by its token or start ID, and brings no
// answers. Wait returns as well when the interaction ends or expires otherwise, and ctx's error when ctx ends first; nothing is lost then.
//
// It is a request of its own each time it looks: authorized anew, and holding nothing while it waits.
func (f *Face) Wait(ctx context.Context, call Call) (Outcome, error) {
	if len(call.Answers) > 0 {
		return Outcome{}, fail(ErrInvalidAnswer, "wait takes no answers")
	}
	if call.Token == "" && call.StartID == "" {
		return Outcome{}, fail(ErrInvalidContinuation, "wait needs a token or a start id")
	}
	first := 0
	for {
		// Watching begins before looking: what changes in between is not missed.
		id, changed, stop := f.watch(ctx, call)
		outcome, err := f.Invoke(ctx, call)
		switch {
		case errors.Is(err, ErrBusy):
		case err != nil || outcome.Prompt == nil:
			stop()
			return outcome, err
		case first != 0 && outcome.Prompt.Round != first:
			stop()
			return outcome, nil
		default:
			first = outcome.Prompt.Round
			// A rejoin by start ID is given its token once; from then on that is what the call waits with.
			call.Token = outcome.Prompt.Token
			if id.IsZero() {
				stop()
				continue
			}
		}
		err = f.pause(ctx, changed, outcome.Prompt)
		stop()
		if err != nil {
			return Outcome{}, err
		}
	}
}

// watch finds the interaction of the call and watches it, where the store can. A token or start ID that names none yet is not
// an error here: Invoke tells it.
func (f *Face) watch(ctx context.Context, call Call) (checkpoint.ID, <-chan struct{}, func()) {
	none := func() {}
	g := f.gate
	var id checkpoint.ID
	if name, ok := g.ring.Load().open(g.ledger, call.Token); ok {
		id = name.id
	} else if call.Token == "" {
		if record, err := g.store.Find(ctx, g.hash("start", call.Scope, call.StartID)); err == nil {
			id = record.ID
		}
	}
	if watcher, ok := g.store.(checkpoint.Watcher); ok && !id.IsZero() {
		changed, stop := watcher.Watch(id)
		return id, changed, stop
	}
	return id, nil, none
}

// pause waits for a change, the next look, the prompt's deadline, or the end.
func (f *Face) pause(ctx context.Context, changed <-chan struct{}, prompt *Prompt) error {
	wait := f.gate.opts.PollInterval
	if prompt != nil && !prompt.Expires.IsZero() {
		wait = max(min(wait, prompt.Expires.Sub(f.gate.now())), time.Millisecond)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-f.life.begun:
	case <-f.gate.life.begun:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
