package gate_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/pgtest"
	"github.com/parley-go/parley/interrupt"
)

// R30: the clocks of two machines that are hours apart, and neither right, decide nothing: the
// database's does, for deadlines at both.
func TestClocksOnPostgres(t *testing.T) {
	url := pgtest.URL(t)
	schema := newSchema(t, url)
	var effects counter
	tools := []*gate.Tool{deploy(&effects, nil)}
	at := func(wrong time.Duration, lifetime time.Duration) *gate.Gate {
		now := func() time.Time { return time.Now().Add(wrong) }
		return open(t, openPostgres(t, url, schema), gate.Options{Tools: tools, Now: now, Lifetime: lifetime})
	}
	early, late := at(-5*time.Hour, 10*time.Minute), at(7*time.Hour, 10*time.Minute)
	for _, order := range [][2]*gate.Gate{{early, late}, {late, early}} {
		c := call("deploy", `{"service":"api"}`)
		p := mustAsk(t, order[0], c)
		if left := time.Until(p.Expires); left < 9*time.Minute || left > 11*time.Minute { // the server of a test is on this machine
			t.Errorf("%v are left of ten minutes", left)
		}
		mustFinish(t, order[1], with(c, p, allow), `"deployed api"`)
	}
	short := at(-5*time.Hour, 300*time.Millisecond)
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, short, c)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, err := late.Invoke(t.Context(), with(c, p))
		if errors.Is(err, gate.ErrExpired) {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("it does not expire: %v", err)
		}
	}
	mustFail(t, early, with(c, p, allow), gate.ErrExpired)
	effects.want(t, 2)
}

// R7, R30: two gates on one database sweep what is due at once, and neither waits for the other or
// does what the other did: each record is marked once.
func TestTwoSweepersOnPostgres(t *testing.T) {
	url := pgtest.URL(t)
	schema := newSchema(t, url)
	var effects counter
	tools := []*gate.Tool{deploy(&effects, nil)}
	clock := newClock()
	stores := []checkpoint.Store{timeless{openPostgres(t, url, schema)}, timeless{openPostgres(t, url, schema)}}
	var gates []*gate.Gate
	for _, store := range stores {
		gates = append(gates, open(t, store, gate.Options{Tools: tools, Now: clock.Now}))
	}
	const asked = 200
	for range asked {
		mustAsk(t, gates[0], call("deploy", `{"service":"api"}`))
	}
	clock.add(time.Hour)
	done := make(chan error, len(gates))
	for _, g := range gates {
		go func() {
			for {
				page, err := g.List(context.Background(), gate.ListQuery{Scope: "ann"}) // a sweep rides on it
				if err != nil || len(page.Interactions) == 0 {
					done <- err
					return
				}
			}
		}()
	}
	for range gates {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the sweeps do not come to an end")
		}
	}
	expired := 0
	for after := uint64(0); ; {
		page, err := stores[0].Audit(t.Context(), after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, stored := range page {
			after = stored.Seq
			if e, err := checkpoint.DecodeEntry(stored.Data); err != nil || e.Action == checkpoint.ActionExpired {
				expired++
			}
		}
	}
	if expired != asked {
		t.Errorf("%d of %d were marked", expired, asked)
	}
}

// R23, H8: a handler whose process the database does not count alive any more is told so, and
// what it returns changes nothing.
func TestLapsedOnPostgres(t *testing.T) {
	server := pgtest.Private(t)
	schema := newSchema(t, server.URL())
	store, err := pgstore.Open(t.Context(), server.URL(), &pgstore.Options{Schema: schema, Lapse: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	begun := make(chan struct{})
	var told counter
	tool := raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		close(begun)
		<-ctx.Done()
		told.add()
		return "done", nil
	}, nil)
	g := open(t, store, gate.Options{Tools: []*gate.Tool{tool}})
	c := call("tool", `{}`)
	answer := with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)
	running := invoke(g, answer)
	<-begun
	if err := server.SQL("UPDATE " + schema + ".process SET until = clock_timestamp()"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "the handler that lost its claim", (<-running).err, gate.ErrOutcomeUnknown)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, err := g.Invoke(t.Context(), answer)
		if errors.Is(err, gate.ErrOutcomeUnknown) { // A3, as another owner
			break
		}
		if !errors.Is(err, gate.ErrUnavailable) || time.Now().After(deadline) {
			t.Fatalf("the same answer by another owner: %v", err)
		}
	}
	told.want(t, 1)
}
