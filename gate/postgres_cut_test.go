package gate_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/pgtest"
	"github.com/parley-go/parley/interrupt"
)

// openThrough opens a store through a network that can be cut, whose requests fail soon.
func openThrough(t *testing.T, p *pgtest.Proxy, schema string) *pgstore.Store {
	t.Helper()
	store, err := pgstore.Open(t.Context(), p.URL(), &pgstore.Options{
		Schema: schema, Timeout: time.Second, Lapse: 3 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return store
}

// R23, H8, W10: a replica whose network is cut cancels its handlers and what its hosts do in runs,
// and answers unavailable in good time; the others go on, take over what it had, and it goes on as
// another owner when the network is whole again.
func TestCutOnPostgres(t *testing.T) {
	server := pgtest.Private(t)
	schema := newSchema(t, server.URL())
	p := server.Proxy(t)
	begun := make(chan struct{}, 1)
	var told counter
	tool := raw("tool", func(ctx context.Context) (any, error) {
		if r, _ := interrupt.ResumeFrom(ctx); r.Recovery {
			return "recovered", nil
		}
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		begun <- struct{}{}
		<-ctx.Done()
		told.add()
		return "done", nil
	}, &gate.ToolOptions{Replay: gate.Recover})
	var effects counter
	options := gate.Options{Tools: []*gate.Tool{tool, deploy(&effects, nil)}}
	g, other := open(t, openThrough(t, p, schema), options), open(t, openPostgres(t, server.URL(), schema), options)
	t.Cleanup(p.End)
	c := call("tool", `{}`)
	answer := with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)
	pending := mustAsk(t, g, call("deploy", `{"service":"api"}`))
	run := mustBegin(t, face(t, g))
	inside, cancel := run.Context(t.Context())
	defer cancel()
	running := invoke(g, answer)
	<-begun
	mustFail(t, other, answer, gate.ErrBusy)

	p.Cut()
	began := time.Now()
	mustFail(t, g, with(call("deploy", `{"service":"api"}`), pending, allow), gate.ErrUnavailable)
	if took := time.Since(began); took > 20*time.Second { // a few requests of a second
		t.Errorf("unavailable after %v", took)
	}
	wantCode(t, "the handler that lost its claim", (<-running).err, gate.ErrOutcomeUnknown)
	told.want(t, 1)
	<-inside.Done()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		o, err := other.Invoke(t.Context(), answer) // A1, once its owner is dead
		if err == nil && string(o.Result) == `"recovered"` {
			break
		}
		if !errors.Is(err, gate.ErrBusy) || time.Now().After(deadline) {
			t.Fatalf("taken over: %+v, %v", o, err)
		}
	}
	p.Heal()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		o, err := g.Invoke(t.Context(), with(call("deploy", `{"service":"api"}`), pending, allow))
		if err == nil && string(o.Result) == `"deployed api"` {
			break
		}
		if !errors.Is(err, gate.ErrUnavailable) && !errors.Is(err, gate.ErrOutcomeUnknown) || time.Now().After(deadline) {
			t.Fatalf("when the network is whole: %+v, %v", o, err)
		}
		if errors.Is(err, gate.ErrOutcomeUnknown) { // its answer arrived late, when nobody ran the handler any more
			break
		}
	}
	if effects.n > 1 {
		t.Errorf("deployed %d times", effects.n)
	}
	wantCode(t, "a run that was lost", run.Keep(t.Context(), "a", nil), gate.ErrBusy)
}

// R25, R27: a network that is cut in the middle of the commit of an answer, before the request or
// before its acknowledgement, and comes back late or with new connections alone: the same answer
// again comes to an end, the tool has its effect once at most, and an answer that was acknowledged
// is the recorded one.
func TestCutAnswerOnPostgres(t *testing.T) {
	server := pgtest.Private(t)
	for name, phase := range map[string]pgtest.Direction{"request": pgtest.Requests, "acknowledgement": pgtest.Answers} {
		for end, heal := range map[string]func(p *pgtest.Proxy) error{
			"late":  func(p *pgtest.Proxy) error { p.Heal(); return nil },
			"never": func(p *pgtest.Proxy) error { err := p.Forget(); p.Heal(); return err },
		} {
			t.Run(name+" arrives "+end, func(t *testing.T) {
				schema := newSchema(t, server.URL())
				p := server.Proxy(t)
				var effects counter
				options := gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}}
				g, other := open(t, openThrough(t, p, schema), options), open(t, openPostgres(t, server.URL(), schema), options)
				t.Cleanup(p.End)
				c := call("deploy", `{"service":"api"}`)
				prompt := mustAsk(t, g, c)
				armed, seen := true, false
				p.Watch(func(d pgtest.Direction, data []byte) pgtest.Fate {
					seen = seen || d == pgtest.Requests && bytes.Contains(data, []byte("allow_once"))
					if !armed || !seen || d != phase {
						return pgtest.Pass
					}
					armed = false
					return pgtest.Before
				})
				mustFail(t, g, with(c, prompt, allow), gate.ErrUnavailable)
				if !p.IsCut() {
					t.Fatal("the network was not cut")
				}
				if err := heal(p); err != nil {
					t.Fatal(err)
				}
				for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
					o, err := g.Invoke(t.Context(), with(c, prompt, allow))
					if err == nil && string(o.Result) != `"deployed api"` {
						t.Fatalf("%+v", o)
					}
					if err == nil || errors.Is(err, gate.ErrOutcomeUnknown) {
						break
					}
					if !errors.Is(err, gate.ErrUnavailable) && !errors.Is(err, gate.ErrBusy) || time.Now().After(deadline) {
						t.Fatalf("the same answer again: %v", err)
					}
				}
				if effects.n > 1 {
					t.Errorf("deployed %d times", effects.n)
				}
				mustFail(t, other, with(c, prompt, reject), gate.ErrAnswerConflict)
			})
		}
	}
}
