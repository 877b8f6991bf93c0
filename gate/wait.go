package gate

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// Wait waits until the open prompt of the call's interaction is answered by another road, and then
// does what [Face.Invoke] does: it runs the handler and returns its result or next prompt. The call
// names the interaction by its token or its start ID, and brings no answers; a start ID that was
// never used is ErrStartUnknown. Wait returns as well when the interaction ends or expires
// otherwise, and ctx's error when ctx ends first; nothing is lost then.
//
// It is a request of its own each time it looks: authorized anew, and holding nothing while it
// waits.
func (f *Face) Wait(ctx context.Context, call Call) (Outcome, error) {
	if len(call.Answers) > 0 {
		return Outcome{}, fail(ErrInvalidAnswer, "wait takes no answers")
	}
	if call.Token == "" && call.StartID == "" {
		return Outcome{}, fail(ErrInvalidContinuation, "wait needs a token or a start id")
	}
	round, err := f.waitedFor(ctx, call)
	if err != nil {
		return Outcome{}, err
	}
	w := watch{store: f.gate.store}
	defer w.end()
	for {
		outcome, err := f.Invoke(ctx, call)
		var e *Error
		switch {
		case errors.As(err, &e) && e.Code == ErrBusy:
			outcome.Interaction = e.Interaction
		case err != nil || outcome.Prompt == nil:
			return outcome, err
		case round == 0:
			// A rejoin by start ID is given its token once; from then on that is what the call
			// waits with.
			round, call.Token = outcome.Prompt.Round, outcome.Prompt.Token
		case outcome.Prompt.Round != round:
			return outcome, nil
		}
		if w.begin(outcome.Interaction) {
			continue // what changed before the watch began is seen by the next look
		}
		if err := f.pause(ctx, w.changed, outcome.Prompt); err != nil {
			return Outcome{}, err
		}
		w.end()
	}
}

// Watch returns a channel that is closed after the next commit that touches one of the interactions
// or runs, also by another process on the same store. It is a hint: it can close without a change,
// and with a store that is no [checkpoint.Watcher] it never does, so that who waits looks from time
// to time as well. What changed before Watch is not told; look after it. stop gives it up, and has
// to be called.
func (f *Face) Watch(ids ...checkpoint.ID) (changed <-chan struct{}, stop func()) {
	hint, done := make(chan struct{}), make(chan struct{})
	tell := sync.OnceFunc(func() { close(hint) })
	if watcher, ok := f.gate.store.(checkpoint.Watcher); ok {
		for _, id := range ids {
			one, end := watcher.Watch(id)
			go func() {
				defer end()
				select {
				case <-one:
					tell()
				case <-done:
				}
			}()
		}
	}
	return hint, sync.OnceFunc(func() { close(done) })
}

// waitedFor is the round whose answer the call waits for. 0: there is none yet, so that any prompt
// is a new one.
func (f *Face) waitedFor(ctx context.Context, call Call) (int, error) {
	if call.Token != "" {
		// A token that is not good is refused by the first look.
		name, _ := f.gate.ring.Load().open(f.gate.ledger, call.Token)
		return name.round, nil
	}
	s, err := f.Inspect(ctx, call.Scope, call.StartID)
	if err != nil || s.Prompt == nil {
		return 0, err
	}
	return s.Prompt.Round, nil
}

// A watch is for one interaction, where the store can watch.
type watch struct {
	store   checkpoint.Store
	changed <-chan struct{}
	stop    func()
}

// begin reports whether a watch has begun with it: not where there is one, or none can be.
func (w *watch) begin(id checkpoint.ID) bool {
	watcher, ok := w.store.(checkpoint.Watcher)
	if !ok || id.IsZero() || w.stop != nil {
		return false
	}
	w.changed, w.stop = watcher.Watch(id)
	return true
}

func (w *watch) end() {
	if w.stop != nil {
		w.stop()
		w.stop, w.changed = nil, nil
	}
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
	case <-f.intake.begun:
	case <-f.gate.intake.begun:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
