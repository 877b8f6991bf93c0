package gate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// faultsOfOneCommit are what can become of a commit that the store does not tell of.
var faultsOfOneCommit = map[string]func(store *faulty, b *checkpoint.Batch) (before, after error){
	"not applied": func(*faulty, *checkpoint.Batch) (error, error) { return errInjected, nil },
	"hidden":      func(*faulty, *checkpoint.Batch) (error, error) { return nil, errInjected },
	"hidden, and not read back": func(store *faulty, _ *checkpoint.Batch) (error, error) {
		store.failLoads(errInjected)
		return nil, errInjected
	},
	"late": func(store *faulty, b *checkpoint.Batch) (error, error) {
		late := *b
		store.set(func(*checkpoint.Batch) (error, error) { // it lands when the next one comes, or never
			store.set(nil)
			_ = store.Store.Commit(context.Background(), &late) // which is a conflict where it comes too late
			return nil, nil
		})
		return errInjected, nil
	},
}

// R23, R25, R33: whichever commit of a run comes to whichever trouble, the host that goes on with
// it by its key alone comes to its end, carries nothing out twice and leaves nothing behind.
func TestRunSurvivesEveryFault(t *testing.T) {
	for name, fault := range faultsOfOneCommit {
		onNewStores(t, name, func(t *testing.T, newStore func() checkpoint.Store) {
			for k := 1; ; k++ {
				var effects counter
				store := &faulty{Store: newStore()}
				g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Capacity: gate.Capacity{Open: 1}})
				n := 0
				store.set(func(b *checkpoint.Batch) (before, after error) {
					if n++; n != k {
						return nil, nil
					}
					store.set(nil)
					return fault(store, b)
				})
				h := &keyHost{face: face(t, g)}
				for try := 0; !h.ended; try++ {
					if try == 20 {
						t.Fatalf("commit %d: the run does not come to its end: %v", k, h.trouble)
					}
					h.goOn(t)
					store.failLoads(nil)
				}
				store.heal()
				last := n < k // there were no more commits
				if effects.n > 1 || effects.n == 0 && !errors.Is(h.outcome, gate.ErrOutcomeUnknown) {
					t.Errorf("commit %d: %d effects, the call came to %v", k, effects.n, h.outcome)
				}
				run, err := h.face.BeginRun(t.Context(), gate.RunStart{Scope: "ann", Key: "talk"})
				if err != nil {
					t.Fatalf("commit %d: the key is not free: %v", k, err)
				}
				u, err := store.Usage(t.Context(), checkpoint.Hash{})
				if err != nil {
					t.Fatal(err)
				}
				if u.Active == 0 { // a claim that nobody knows to be dead is abandoned later (X3)
					mustHold(t, h.face, inRun(run, "api"))
				}
				run.Release(t.Context())
				if last {
					return
				}
			}
		})
	}
}

// A keyHost does one piece of work in a run that it knows by its key alone.
type keyHost struct {
	face    *gate.Face
	id      checkpoint.ID // zero: not known
	ended   bool
	outcome error // of the call
	trouble error // the latest
}

// goOn goes on from wherever the run stands, to where it stops or meets trouble.
func (h *keyHost) goOn(t *testing.T) {
	run, err := h.take(t)
	if h.trouble = err; run == nil {
		return
	}
	defer run.Release(t.Context())
	h.id = run.ID()
	c := inRun(run, "api")
	o, err := h.face.Invoke(t.Context(), c)
	if err == nil && o.Prompt != nil {
		o, err = h.face.Invoke(t.Context(), with(c, o.Prompt, allow))
	}
	switch {
	case err == nil && o.Held:
		_, h.trouble = run.Commit(t.Context(), gate.RunCommit{Blob: []byte("state")})
		return
	case errors.Is(err, gate.ErrUnavailable), errors.Is(err, gate.ErrBusy):
		h.trouble = fmt.Errorf("call: %w", err)
		return
	}
	h.outcome = err
	h.trouble = run.Finish(t.Context(), gate.RunEnd{})
	h.ended = h.trouble == nil
}

// take begins the run or resumes it.
func (h *keyHost) take(t *testing.T) (*gate.Run, error) {
	if h.id.IsZero() {
		run, err := h.face.BeginRun(t.Context(), gate.RunStart{Scope: "ann", Key: "talk", Keep: map[string][]byte{"input": []byte("x")}})
		var taken *gate.Error
		if !errors.As(err, &taken) || taken.Code != gate.ErrStartConflict {
			return run, err
		}
		h.id = taken.Interaction
	}
	run, err := h.face.ResumeRun(t.Context(), "ann", h.id)
	h.ended = errors.Is(err, gate.ErrAlreadyCompleted)
	return run, err
}
