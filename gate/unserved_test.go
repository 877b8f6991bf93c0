package gate_test

import (
	"context"
	"errors"
	"testing"
	"testing/iotest"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A doubtful store cannot tell who is alive.
type doubtful struct {
	checkpoint.Store
	fault error
}

type doubtfulMember struct {
	checkpoint.Member
	of *doubtful
}

func (d *doubtful) Join(ctx context.Context, proposed checkpoint.Ledger) (checkpoint.Ledger, checkpoint.Member, error) {
	ledger, member, err := d.Store.Join(ctx, proposed)
	return ledger, doubtfulMember{member, d}, err
}

func (m doubtfulMember) Alive(ctx context.Context, owner string) (bool, error) {
	if m.of.fault != nil {
		return false, m.of.fault
	}
	return m.Member.Alive(ctx, owner)
}

// R23, X2: where the store cannot tell whether a claim is held, nobody takes it over, and no sweep
// marks it.
func TestNobodyKnowsWhoIsAlive(t *testing.T) {
	for _, replay := range []gate.Replay{gate.NeverAgain, gate.Recover, gate.Repeatable} {
		s := newSlow()
		clock := newClock()
		mem := newMem()
		opts := gate.Options{Tools: []*gate.Tool{s.tool(&gate.ToolOptions{Replay: replay, Lifetime: time.Minute})}, Now: clock.Now, Lifetime: time.Hour}
		doubt := &doubtful{Store: mem}
		g, other := open(t, mem, opts), open(t, doubt, opts)
		c := call("slow", `{}`)
		answer := with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)
		done := invoke(g, answer)
		<-s.entered
		doubt.fault = errInjected
		if e := mustFail(t, other, answer, gate.ErrUnavailable); !errors.Is(e, errInjected) {
			t.Errorf("the host is not told why: %v", e)
		}
		clock.add(30 * time.Minute)
		if page, err := other.List(t.Context(), gate.ListQuery{Scope: "ann"}); err != nil || len(page.Interactions) != 1 ||
			page.Interactions[0].Status != checkpoint.Running {
			t.Errorf("after a sweep: %+v, %v", page, err)
		}
		doubt.fault = nil
		close(s.leave)
		if first := <-done; string(first.outcome.Result) != `"done"` {
			t.Errorf("%+v", first)
		}
		s.runs.want(t, 1)
	}
}

// Without randomness no id is made, and no two interactions get the same one.
func TestNoRandomness(t *testing.T) {
	var effects counter
	store := newMem()
	// Opening a gate reads 48 bytes.
	random := &limited{left: 48}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Random: random})
	if e := mustFail(t, g, call("deploy", `{"service":"api"}`), gate.ErrUnavailable); !errors.Is(e, iotest.ErrTimeout) {
		t.Errorf("the host is not told why: %v", e)
	}
}

type limited struct{ left int }

func (l *limited) Read(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, iotest.ErrTimeout
	}
	return len(p), nil
}

// R31: a start ID whose record cannot be read, or cannot be found, begins nothing anew.
func TestStartIDThatCannotBeRead(t *testing.T) {
	var effects counter
	store := &unfindable{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		effects.add()
		_, err := interrupt.Ask(ctx, choose("a", "b"))
		return nil, err
	}, nil)}})
	c := call("tool", `{}`)
	c.StartID = "work"
	p := mustAsk(t, g, c)
	store.fault = errInjected
	mustFail(t, g, c, gate.ErrUnavailable)
	_, err := g.Inspect(t.Context(), "ann", "work")
	wantCode(t, "inspect", err, gate.ErrUnavailable)
	store.fault = nil
	record, err := store.Load(t.Context(), p.Interaction)
	if err != nil {
		t.Fatal(err)
	}
	record.Revision++
	record.Data = []byte(`{"v":99}`)
	if err := store.Commit(t.Context(), &checkpoint.Batch{Puts: []checkpoint.Put{{Record: record, Epoch: record.Claim.Epoch}}}); err != nil {
		t.Fatal(err)
	}
	mustFail(t, g, c, gate.ErrUnavailable)
	effects.want(t, 1)
}

// An unfindable store fails what is found by start ID.
type unfindable struct {
	checkpoint.Store
	fault error
}

func (u *unfindable) Find(ctx context.Context, start checkpoint.Hash) (checkpoint.Record, error) {
	if u.fault != nil {
		return checkpoint.Record{}, u.fault
	}
	return u.Store.Find(ctx, start)
}
