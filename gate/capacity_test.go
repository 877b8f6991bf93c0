package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R33: where there is no room a call is busy before its handler runs, in all and per scope. What is
// open stays; what ended makes room.
func TestOpenInteractionsAreLimited(t *testing.T) {
	for name, tc := range map[string]struct {
		capacity  gate.Capacity
		elsewhere gate.Code // what another scope gets while ann's is full
	}{
		"in all":    {gate.Capacity{Open: 2}, gate.ErrBusy},
		"per scope": {gate.Capacity{OpenPerScope: 2}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var runs counter
			tool := raw("tool", func(ctx context.Context) (any, error) {
				runs.add()
				_, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "Go on"))
				return "done", err
			}, nil)
			g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{tool}, Capacity: tc.capacity})
			c := call("tool", `{}`)
			first, second := mustAsk(t, g, c), mustAsk(t, g, c)
			mustFail(t, g, c, gate.ErrBusy)
			started := c
			started.StartID = "work"
			mustFail(t, g, started, gate.ErrBusy)
			runs.want(t, 2)
			bob := c
			bob.Scope = "bob"
			if tc.elsewhere != "" {
				mustFail(t, g, bob, tc.elsewhere)
			} else {
				mustAsk(t, g, bob)
			}
			mustFinish(t, g, with(c, first, allow), `"done"`)
			third := mustAsk(t, g, started)
			mustFail(t, g, c, gate.ErrBusy)
			for _, p := range []*gate.Prompt{second, third} { // nothing was evicted
				if s, err := g.InspectID(t.Context(), "ann", p.Interaction); err != nil || s.Status != checkpoint.Open {
					t.Errorf("%+v, %v", s, err)
				}
			}
			mustFinish(t, g, with(started, third, allow), `"done"`)
			mustFinish(t, g, with(c, second, allow), `"done"`)
		})
	}
}

// R33: a running handler stays charged until it returns, and what it did not use is given back,
// however it ended.
func TestReservationsAreGivenBack(t *testing.T) {
	ends := map[string]func() (any, error){
		"result":  func() (any, error) { return "done", nil },
		"failure": func() (any, error) { return nil, errors.New("broken") },
		"panic":   func() (any, error) { panic("broken") },
		"refused": func() (any, error) { return nil, new(interrupt.FormInterrupt) },
		"decline": func() (any, error) { return nil, interrupt.ErrDeclined },
	}
	for name, end := range ends {
		for _, startID := range []string{"", "work"} {
			t.Run(name+startID, func(t *testing.T) {
				var g *gate.Gate
				outer := true
				tool := raw("tool", func(ctx context.Context) (any, error) {
					if outer {
						outer = false
						mustFail(t, g, call("tool", `{}`), gate.ErrBusy) // this one is charged
					}
					return end()
				}, nil)
				g = open(t, newMem(), gate.Options{Tools: []*gate.Tool{tool}, Capacity: gate.Capacity{Open: 1, Bytes: 3 << 20}})
				for i := range 20 {
					c := call("tool", `{}`)
					if startID != "" {
						c.StartID = fmt.Sprint(startID, i)
					}
					if _, err := g.Invoke(t.Context(), c); errors.Is(err, gate.ErrBusy) {
						t.Fatalf("call %d: %v", i, err)
					}
				}
			})
		}
	}
}

// R33: retained bytes are limited: a call reserves a whole prompt, an answer its bytes and the next
// prompt. An answer that finds no room changes nothing; its question stays open.
func TestRetainedBytesAreLimited(t *testing.T) {
	var runs, effects counter
	limits := gate.Limits{Prompt: 10_000, State: 5_000}
	g := open(t, newMem(), gate.Options{
		Tools: []*gate.Tool{twoRounds(&runs, &effects, nil)}, Limits: limits, Capacity: gate.Capacity{BytesPerScope: 15_300 + checkpoint.Charge},
	})
	c := call("tool", `{}`)
	p := mustAsk(t, g, c)
	runs.want(t, 1)
	mustFail(t, g, c, gate.ErrBusy) // what is stored, and one more
	runs.want(t, 1)
	e := mustFail(t, g, with(c, p, `{"selectionIdx":0}`), gate.ErrBusy)
	if e.Interaction != p.Interaction || !e.Code.Retryable() {
		t.Errorf("error %+v", e)
	}
	runs.want(t, 1)
	if s, err := g.InspectID(t.Context(), "ann", p.Interaction); err != nil || s.Status != checkpoint.Open {
		t.Errorf("%+v, %v", s, err)
	}
	mustAnswer(t, g, p, `{"selectionIdx":0}`) // from elsewhere it takes its own bytes only
	mustFail(t, g, with(c, p, `{"selectionIdx":0}`), gate.ErrBusy)
	runs.want(t, 1)
}

// R33: an answer from elsewhere reserves its bytes.
func TestAnswerFromElsewhereNeedsRoom(t *testing.T) {
	g := open(t, newMem(), gate.Options{
		Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
			_, err := interrupt.Ask(ctx, interrupt.Form("Text", json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)))
			return "done", err
		}, nil)},
		Limits: gate.Limits{Prompt: 1000, State: 1000}, Capacity: gate.Capacity{Bytes: 10_000},
	})
	p := mustAsk(t, g, call("tool", `{}`))
	large := fmt.Sprintf(`{"content":{"text":"%010000d"}}`, 1)
	if e := wantCode(t, "answer", g.Answer(t.Context(), answers(p, "ann", large)), gate.ErrBusy); !e.StillOpen {
		t.Errorf("error %+v", e)
	}
	mustAnswer(t, g, p, `{"content":{"text":"short"}}`)
}

// R33: a tool that declares that it never asks reserves nothing where nothing is recorded, and may
// not ask. What its start IDs record is counted like everything else.
func TestNeverAsks(t *testing.T) {
	ask := false
	quiet := raw("quiet", func(ctx context.Context) (any, error) {
		if ask {
			return interrupt.Ask(ctx, choose("a", "b"))
		}
		return "done", nil
	}, &gate.ToolOptions{NeverAsks: true})
	var effects counter
	g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{quiet, deploy(&effects, nil)}, Capacity: gate.Capacity{Open: 1}})
	mustAsk(t, g, call("deploy", `{"service":"api"}`))
	mustFail(t, g, call("deploy", `{"service":"api"}`), gate.ErrBusy)
	c := call("quiet", `{}`)
	mustFinish(t, g, c, `"done"`)
	c.StartID = "work"
	mustFail(t, g, c, gate.ErrBusy)
	ask = true
	mustFail(t, g, call("quiet", `{}`), gate.ErrInvalidQuestion)
}

// R33: recovery uses what is retained, however full the ledger is.
func TestRecoveryNeedsNoRoom(t *testing.T) {
	var effects counter
	store := newMem()
	tools := []*gate.Tool{deploy(&effects, &gate.ToolOptions{Replay: gate.Recover})}
	g := open(t, store, gate.Options{Tools: tools})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
	full := open(t, store, gate.Options{Tools: tools, Limits: gate.Limits{Prompt: 100, State: 1}, Capacity: gate.Capacity{Bytes: 1000}})
	mustFail(t, full, c, gate.ErrBusy)
	mustFinish(t, full, with(c, p, allow), `"deployed api"`)
}

// R33: however many callers there are at once, a limit is never gone over in one process.
func TestLimitHoldsAtOnce(t *testing.T) {
	const limit = 10
	var effects counter
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Capacity: gate.Capacity{Open: limit}})
	var asked, busy atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			_, err := g.Invoke(t.Context(), call("deploy", `{"service":"api"}`))
			switch {
			case err == nil:
				asked.Add(1)
			case errors.Is(err, gate.ErrBusy):
				busy.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	usage, err := store.Usage(t.Context(), checkpoint.Hash{})
	if err != nil || usage.Active > limit || int64(usage.Active) != asked.Load() || asked.Load()+busy.Load() != 64 {
		t.Errorf("usage %+v, %v; asked %d, busy %d", usage, err, asked.Load(), busy.Load())
	}
	for i := usage.Active; i < limit; i++ { // nothing leaked
		mustAsk(t, g, call("deploy", `{"service":"api"}`))
	}
	mustFail(t, g, call("deploy", `{"service":"api"}`), gate.ErrBusy)
}

// R33: the store that cannot tell what it holds is not one to add to.
func TestUsageUnavailable(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	store.usageFault = errInjected
	mustFail(t, g, call("deploy", `{"service":"api"}`), gate.ErrUnavailable)
	store.usageFault = nil
	mustAsk(t, g, call("deploy", `{"service":"api"}`))
	for _, bad := range []gate.Capacity{
		{Open: -2}, {OpenPerScope: -2}, {Bytes: -2}, {BytesPerScope: -2}, {Bytes: 1 << 20}, {BytesPerScope: 1 << 20},
	} {
		if _, err := gate.Open(t.Context(), newMem(), &gate.Options{Keys: [][]byte{testKey}, Capacity: bad}); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// R33: within one process the limit of bytes is not gone over, by start IDs of a tool that never
// asks or by recorded steps: a step for which there is no room does not run.
func TestNothingFillsTheLedger(t *testing.T) {
	const limit = 200_000
	var ran counter
	steps := func(ctx context.Context) (any, error) {
		for i := range 50 {
			_, err := interrupt.Once(ctx, fmt.Sprint(i), func(context.Context, string) (string, error) {
				ran.add()
				return strings.Repeat("x", 60_000), nil
			}, nil)
			if err != nil {
				return nil, err
			}
		}
		return "done", nil
	}
	for name, tool := range map[string]*gate.Tool{
		"start ids":         raw("tool", func(context.Context) (any, error) { return "done", nil }, &gate.ToolOptions{NeverAsks: true, KeepResult: true}),
		"steps":             raw("tool", steps, nil),
		"steps, never asks": raw("tool", steps, &gate.ToolOptions{NeverAsks: true}),
	} {
		t.Run(name, func(t *testing.T) {
			ran = counter{}
			store := newMem()
			g := open(t, store, gate.Options{
				Tools: []*gate.Tool{tool}, Limits: gate.Limits{Prompt: 4096, State: 1024}, Capacity: gate.Capacity{Bytes: limit},
			})
			busy := 0
			for i := range 500 {
				c := call("tool", `{"a":"some argument"}`)
				if name == "start ids" {
					c.StartID = fmt.Sprint(i)
				}
				if _, err := g.Invoke(t.Context(), c); errors.Is(err, gate.ErrBusy) {
					if busy++; busy == 3 {
						break
					}
				} else if err != nil {
					t.Fatal(err)
				}
			}
			usage, err := store.Usage(t.Context(), checkpoint.Hash{})
			if err != nil || usage.Bytes > limit || busy == 0 {
				t.Errorf("usage %+v, %v; busy %d times", usage, err, busy)
			}
			if name != "start ids" && (ran.n == 0 || ran.n > 3) {
				t.Errorf("%d steps ran", ran.n)
			}
		})
	}
}
