package gate_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// R23, W1k: of many runs that begin at once with one key one does, on all replicas; the others are
// told which. Over its stops the key is its own, and free when it has ended.
func TestOneRunWithAKey(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		tools := []*gate.Tool{deploy(&counter{}, nil)}
		first := open(t, process(), gate.Options{Tools: tools})
		faces := []*gate.Face{face(t, first), face(t, open(t, process(), gate.Options{Tools: tools}))}
		start := gate.RunStart{Scope: "ann", Key: "talk"}
		type begun struct {
			run *gate.Run
			err error
		}
		all := make(chan begun, 16)
		var wg sync.WaitGroup
		for i := range cap(all) {
			wg.Go(func() {
				run, err := faces[i%2].BeginRun(context.Background(), start)
				all <- begun{run, err}
			})
		}
		wg.Wait()
		close(all)
		var won *gate.Run
		var refused []error
		for b := range all {
			if b.err != nil {
				refused = append(refused, b.err)
				continue
			}
			if won != nil {
				t.Fatal("two runs with one key")
			}
			won = b.run
		}
		if won == nil {
			t.Fatalf("none began: %v", refused)
		}
		taken := func(when string) {
			t.Helper()
			for _, f := range faces {
				_, err := f.BeginRun(t.Context(), start)
				if e := wantCode(t, when, err, gate.ErrStartConflict); e.Interaction != won.ID() {
					t.Errorf("%s: named %v, want %v", when, e.Interaction, won.ID())
				}
			}
		}
		for _, err := range refused {
			if e := wantCode(t, "at once", err, gate.ErrStartConflict); e.Interaction != won.ID() {
				t.Errorf("named %v, want %v", e.Interaction, won.ID())
			}
		}
		taken("while it goes on")
		mustStop(t, won, "state")
		taken("while it waits")
		for _, s := range []gate.RunStart{{Scope: "ann"}, {Scope: "ann"}, {Scope: "ann", Key: "another"}, {Scope: "bob", Key: "talk"}} {
			run, err := faces[0].BeginRun(t.Context(), s)
			if err != nil {
				t.Fatalf("%+v: %v", s, err)
			}
			run.Release(t.Context())
		}
		elsewhere, err := first.NewFace("elsewhere", nil)
		if err != nil {
			t.Fatal(err)
		}
		run, err := elsewhere.BeginRun(t.Context(), start)
		if err != nil {
			t.Fatalf("another face: %v", err)
		}
		run.Release(t.Context())
		again := mustResume(t, faces[0], won.ID())
		taken("while it is resumed")
		again.Release(t.Context())
		taken("after its release")
		if err := mustResume(t, faces[0], won.ID()).Finish(t.Context(), gate.RunEnd{}); err != nil {
			t.Fatal(err)
		}
		next, err := faces[1].BeginRun(t.Context(), start)
		if err != nil {
			t.Fatalf("after the end: %v", err)
		}
		next.Release(t.Context())
	})
}

// R34: a key has a bound; R37: it is not told to a store, and is compared with what is sealed.
func TestRunKey(t *testing.T) {
	store := newMem()
	g := open(t, store, gate.Options{DataKeys: [][]byte{[]byte("a data key of thirty-two bytes..")}})
	f := face(t, g)
	_, err := f.BeginRun(t.Context(), gate.RunStart{Scope: "ann", Key: string(make([]byte, 2000))})
	wantCode(t, "a long key", err, gate.ErrTooLarge)
	run, err := f.BeginRun(t.Context(), gate.RunStart{Scope: "ann", Key: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	mustStop(t, run, "state")
	record, err := store.Load(t.Context(), run.ID())
	if err != nil {
		t.Fatal(err)
	}
	record.Revision++
	record.Start[0]++
	batch := &checkpoint.Batch{Puts: []checkpoint.Put{{Record: record, Epoch: record.Claim.Epoch}}}
	if err := store.Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	_, err = f.ResumeRun(t.Context(), "ann", run.ID())
	wantCode(t, "another start hash", err, gate.ErrUnavailable)
	var damaged *checkpoint.DecodeError
	if !errors.As(err, &damaged) {
		t.Errorf("have %v", err)
	}
}
