package gate_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// A looking store counts the looks for what is due.
type looking struct {
	checkpoint.Store
	looks atomic.Int32
}

func (s *looking) List(ctx context.Context, q checkpoint.Query) (checkpoint.Page, error) {
	if q.ByDue() {
		s.looks.Add(1)
	}
	return s.Store.List(ctx, q)
}

// R7: of many requests at once few look for what is due; and yet what this gate wrote is swept with
// the first request after its time, to the millisecond, and what another one wrote a moment later.
func TestSweepsPause(t *testing.T) {
	var effects counter
	clock := newClock()
	store := &looking{Store: newMem()}
	tools := []*gate.Tool{deploy(&effects, nil)}
	opts := gate.Options{Tools: tools, Now: clock.Now, Lifetime: 50 * time.Millisecond}
	g, other := open(t, store, opts), open(t, store.Store, opts)
	status := func(p *gate.Prompt) checkpoint.Status {
		t.Helper()
		r, err := store.Load(t.Context(), p.Interaction)
		if err != nil {
			t.Fatal(err)
		}
		return r.Status
	}
	inspect := func() {
		t.Helper()
		if _, err := g.List(t.Context(), gate.ListQuery{Scope: "ann"}); err != nil { // on which a sweep rides
			t.Fatal(err)
		}
	}
	inspect()
	began := store.looks.Load()
	for range 1000 {
		inspect()
	}
	if n := store.looks.Load() - began; n > 1 {
		t.Errorf("1000 requests at one time looked %d times", n)
	}
	mine := mustAsk(t, g, call("deploy", `{"service":"mine"}`))
	theirs := mustAsk(t, other, call("deploy", `{"service":"theirs"}`))
	clock.add(49 * time.Millisecond)
	inspect()
	if s := status(mine); s != checkpoint.Open {
		t.Fatalf("it is %s before its time", s)
	}
	clock.add(time.Millisecond)
	inspect()
	if s := status(mine); s != checkpoint.Expired {
		t.Errorf("it is %s with the first request after its time", s)
	}
	clock.add(100 * time.Millisecond)
	inspect()
	if s := status(theirs); s != checkpoint.Expired {
		t.Errorf("another gate's is %s a moment later", s)
	}
	clock.add(-time.Hour) // for a store without a clock of its own: nothing is waited for
	began = store.looks.Load()
	inspect()
	if store.looks.Load() == began {
		t.Error("a clock that was set back stops the sweeps")
	}
}
