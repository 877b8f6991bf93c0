package gate_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// W6, R39: a run can end where what ended is kept for ever.
func TestRunEndsWithoutExpiry(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		var effects counter
		g := open(t, process(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Retention: gate.NoExpiry})
		f := face(t, g)
		run := mustBegin(t, f)
		if err := run.Finish(t.Context(), gate.RunEnd{}); err != nil {
			t.Fatal(err)
		}
		if s, err := f.InspectRun(t.Context(), "ann", run.ID()); err != nil || s.Status != checkpoint.RunEnded {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// H8, R23: a run stays with the owner under which it began: what it still writes when that lapsed
// is refused, also after the gate joined anew.
func TestRunKeepsItsOwner(t *testing.T) {
	var effects counter
	store := &remote{Store: memstore.New()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	f := face(t, g)
	run := mustBegin(t, f)
	mustHold(t, f, inRun(run, "api"))
	store.lapse(t)
	if _, err := g.Inspect(t.Context(), "ann", "nothing"); err == nil { // joins anew
		t.Fatal("inspected nothing")
	}
	if _, err := run.Commit(t.Context(), gate.RunCommit{}); err == nil {
		t.Error("written under another owner")
	}
}

// R32: a run that stops while a call of it is on its way out gives up what that call has: claims,
// room and the place in Close.
func TestRunStopsBesideItsCall(t *testing.T) {
	var effects counter
	g := open(t, memstore.New(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	for range 500 {
		f, err := g.NewFace("agent", nil)
		if err != nil {
			t.Fatal(err)
		}
		run := mustBegin(t, f)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = f.Invoke(context.WithoutCancel(t.Context()), inRun(run, "api")) }) // either is fine here
		run.Release(t.Context())
		wg.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := f.Close(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
}

// R25, W7: prompts that a store did not take are durable before anybody is shown them, and not lost
// however many of them are owed.
func TestOwedPrompts(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		var effects counter
		store := &faulty{Store: process()}
		g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
		f := face(t, g)
		var runs []*gate.Run
		for range 20 { // more than one sweep writes
			run := mustBegin(t, f)
			mustHold(t, f, inRun(run, "api"))
			runs = append(runs, run)
		}
		store.set(func(*checkpoint.Batch) (before, after error) { return errInjected, nil })
		for _, run := range runs {
			_, err := run.Commit(t.Context(), gate.RunCommit{})
			wantCode(t, "commit", err, gate.ErrUnavailable)
		}
		store.set(nil)
		before, _ := store.counts()
		for i := len(runs) - 1; i >= 0; i-- {
			again := mustResume(t, f, runs[i].ID())
			if p := mustAsk(t, f, inRun(again, "api")); p.Token == "" {
				t.Errorf("run %d: no token", i)
			}
			if i == len(runs)-1 {
				if after, _ := store.counts(); after == before {
					t.Error("shown without a durable commit")
				}
			}
		}
	})
}

// R39, W9: a run is not removed while a prompt of it is open, also where its call did not come
// again.
func TestRunOutlivesItsPrompt(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		var effects counter
		clock := newClock()
		g := open(t, process(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now, Lifetime: gate.NoExpiry})
		f := face(t, g)
		run := mustBegin(t, f)
		mustHold(t, f, inRun(run, "api"))
		mustStop(t, run, "x")
		mustStop(t, mustResume(t, f, run.ID()), "y")
		clock.add(31 * 24 * time.Hour)
		for range 3 {
			mustAsk(t, g, call("deploy", `{"service":"db"}`))
		}
		if _, err := f.InspectRun(t.Context(), "ann", run.ID()); err != nil {
			t.Errorf("removed: %v", err)
		}
	})
}

// W8: nothing is kept with a run that has stopped, and what may join another's prompt is no call of
// a run.
func TestStoppedRunKeepsNothing(t *testing.T) {
	var effects counter
	g := open(t, memstore.New(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	f := face(t, g)
	run := mustBegin(t, f)
	joins := inRun(run, "api")
	joins.StartID, joins.Join = "", true
	mustFail(t, f, joins, gate.ErrInvalidArguments)
	mustStop(t, run, "x")
	wantCode(t, "keep", run.Keep(t.Context(), "a", []byte("b")), gate.ErrUnavailable)
}
