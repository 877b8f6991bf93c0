package gate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A between store lets something happen between a request's first look at its record and what the
// request does next.
type between struct {
	checkpoint.Store

	mu    sync.Mutex
	after func() // the first look
}

func (b *between) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Record, error) {
	b.mu.Lock()
	after := b.after
	b.after = nil
	b.mu.Unlock()
	record, err := b.Store.Load(ctx, id)
	if after != nil {
		after()
	}
	return record, err
}

func (b *between) set(after func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.after = after
}

// R23, R24: what changes after a request read its record, by whomever, is what counts.
func TestChangedSinceItWasRead(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(g *gate.Gate, clock *clock, c gate.Call, p *gate.Prompt) error
		want      gate.Code
	}{
		"the deadline passed": {func(_ *gate.Gate, clock *clock, _ gate.Call, _ *gate.Prompt) error {
			clock.add(10 * time.Minute)
			return nil
		}, gate.ErrExpired},
		"somebody answered otherwise": {func(g *gate.Gate, _ *clock, _ gate.Call, p *gate.Prompt) error {
			return g.Answer(context.Background(), answers(p, "ann", reject))
		}, gate.ErrAlreadyAnswered},
		"another session took it over": {func(g *gate.Gate, _ *clock, c gate.Call, _ *gate.Prompt) error {
			c.Session = "s2"
			_, err := g.Invoke(context.Background(), c)
			return err
		}, gate.ErrInvalidContinuation},
		"another gate did it": {func(g *gate.Gate, _ *clock, c gate.Call, p *gate.Prompt) error {
			_, err := g.Invoke(context.Background(), with(c, p, reject))
			if errors.Is(err, gate.ErrRejected) {
				return nil
			}
			return err
		}, gate.ErrAnswerConflict},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			clock := newClock()
			store := &between{Store: newMem()}
			opts := gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now}
			g, other := open(t, store, opts), open(t, store, opts)
			c := call("deploy", `{"service":"api"}`)
			c.StartID = "work"
			p := mustAsk(t, g, c)
			var err error
			store.set(func() { err = test.meanwhile(other, clock, c, p) })
			mustFail(t, g, with(c, p, allow), test.want)
			if err != nil {
				t.Errorf("meanwhile: %v", err)
			}
			effects.want(t, 0)
		})
	}
}

// R27, E1: a run that ends while the same answer is on its way is no run whose outcome is unknown.
func TestRunEndsUnderTheLook(t *testing.T) {
	s := newSlow()
	store := &between{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{s.tool(&gate.ToolOptions{KeepResult: true})}})
	c := call("slow", `{}`)
	answer := with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)
	done := invoke(g, answer)
	<-s.entered
	store.set(func() { close(s.leave); <-done })
	mustFinish(t, g, answer, `"done"`)
	s.runs.want(t, 1)
}

// R23: a request that read its record before another one within the process went through with it is
// not authorized on what it read.
func TestAuthorizedOnce(t *testing.T) {
	var effects counter
	authorized := 0
	store := &between{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{
		Authorize: func(_ context.Context, e gate.Execution) error {
			authorized += e.Round
			return nil
		},
	})}})
	c := call("deploy", `{"service":"api"}`)
	answer := with(c, mustAsk(t, g, c), allow)
	store.set(func() { mustFinish(t, g, answer, `"deployed api"`) })
	mustFail(t, g, answer, gate.ErrAlreadyCompleted)
	if authorized != 1 {
		t.Errorf("authorized %d times, want 1", authorized)
	}
	effects.want(t, 1)
}

// R23, C1: while an attempt runs again, in recovery or because it is repeatable, the same answer is
// busy, at one gate and at two.
func TestBusyWhileItRunsAgain(t *testing.T) {
	for _, replay := range []gate.Replay{gate.Recover, gate.Repeatable} {
		entered, leave := make(chan struct{}), make(chan struct{})
		var runs counter
		fails := true
		tool := raw("tool", func(ctx context.Context) (any, error) {
			if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
				return nil, err
			}
			if fails {
				fails = false
				return nil, errPrivate
			}
			runs.add()
			entered <- struct{}{}
			<-leave
			return "done", nil
		}, &gate.ToolOptions{Replay: replay, KeepResult: true})
		store := newMem()
		g, other := open(t, store, gate.Options{Tools: []*gate.Tool{tool}}), open(t, store, gate.Options{Tools: []*gate.Tool{tool}})
		c := call("tool", `{}`)
		answer := with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)
		mustFail(t, g, answer, gate.ErrFailed)
		done := invoke(g, answer)
		<-entered
		for _, each := range []host{g, other} {
			select {
			case again := <-invoke(each, answer):
				wantCode(t, "the same answer meanwhile", again.err, gate.ErrBusy)
			case <-entered:
				t.Error("a second attempt runs beside the first")
			}
		}
		close(leave)
		if first := <-done; string(first.outcome.Result) != `"done"` {
			t.Errorf("%+v", first)
		}
		runs.want(t, 1)
	}
}

// R32: a Close that begins while an answer is being authorized comes before its commit: nothing is
// recorded and nothing runs.
func TestCloseWhileAuthorizing(t *testing.T) {
	var effects counter
	var face *gate.Face
	closes := false
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{
		Authorize: func(context.Context, gate.Execution) error {
			if closes {
				ended, cancel := context.WithCancel(context.Background())
				cancel()
				if err := face.Close(ended); !errors.Is(err, context.Canceled) {
					t.Errorf("close: %v", err)
				}
			}
			return nil
		},
	})}})
	var err error
	if face, err = g.NewFace("mcp", nil); err != nil {
		t.Fatal(err)
	}
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, face, c)
	closes = true
	mustFail(t, face, with(c, p, allow), gate.ErrUnavailable)
	if in := recorded(t, store, p.Interaction); in.Status != checkpoint.Open {
		t.Errorf("recorded %v", in.Status)
	}
	effects.want(t, 0)
}
