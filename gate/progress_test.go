package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A listener is a host that keeps what it is told. Its sink does as it is told.
type listener struct {
	gate.Progress
	mu      sync.Mutex
	updates []interrupt.Update
}

func listen(then func(ctx context.Context, u interrupt.Update) error) *listener {
	l := &listener{}
	l.Sink = func(ctx context.Context, u interrupt.Update) error {
		l.mu.Lock()
		l.updates = append(l.updates, u)
		l.mu.Unlock()
		if then == nil {
			return nil
		}
		return then(ctx, u)
	}
	return l
}

// heard is what was delivered so far.
func (l *listener) heard() []float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := []float64{}
	for _, u := range l.updates {
		heard = append(heard, u.Completed)
	}
	return heard
}

func (l *listener) want(t *testing.T, completed ...float64) {
	t.Helper()
	if diff := cmp.Diff(append([]float64{}, completed...), l.heard()); diff != "" {
		t.Errorf("delivered (-want +have):\n%s", diff)
	}
}

// wantInvalid wants these fields, and nothing else, in the slot.
func (l *listener) wantInvalid(t *testing.T, fields ...string) {
	t.Helper()
	have := []string{}
	for _, err := range l.Errors() {
		var e *interrupt.UpdateError
		if !errors.As(err, &e) || !errors.Is(err, interrupt.ErrInvalidUpdate) {
			t.Errorf("in the slot: %v", err)
			continue
		}
		have = append(have, e.Field)
	}
	if diff := cmp.Diff(append([]string{}, fields...), have); diff != "" {
		t.Errorf("invalid updates (-want +have):\n%s", diff)
	}
}

// heardBy is a call of the tool that the listener hears.
func heardBy(l *listener, tool string) gate.Call {
	c := call(tool, `{}`)
	c.Progress = &l.Progress
	return c
}

// reporting makes a tool that only reports, on a gate with that clock.
func reporting(t *testing.T, c *clock, f func(ctx context.Context) error) *gate.Gate {
	t.Helper()
	return open(t, newMem(), gate.Options{Now: c.Now, Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		return "done", f(ctx)
	}, nil)}})
}

func progress(ctx context.Context, completed float64) error {
	return interrupt.Progress(ctx, interrupt.Update{Completed: completed})
}

// R35: the host gets completed, total and message, in the handler's goroutine, before Progress
// returns.
func TestProgress(t *testing.T) {
	clock, total := newClock(), 10.0
	updates := []interrupt.Update{
		{},
		{Completed: 2.5, Message: "löading"},
		{Completed: 2.5, Total: &total}, // not less is enough
		{Completed: 10, Total: &total, Message: strings.Repeat("é", 512)},
		{Completed: math.MaxFloat64},
	}
	var order []string // without a lock: all of it is one goroutine
	l := listen(func(context.Context, interrupt.Update) error {
		order = append(order, "sink")
		return nil
	})
	var want []string
	g := reporting(t, clock, func(ctx context.Context) error {
		for _, u := range updates {
			order = append(order, "before")
			err := interrupt.Progress(ctx, u)
			order = append(order, "after")
			if err != nil {
				return err
			}
			want = append(want, "before", "sink", "after")
			clock.add(100 * time.Millisecond)
		}
		return nil
	})
	mustFinish(t, g, heardBy(l, "tool"), `"done"`)
	if diff := cmp.Diff(updates, l.updates); diff != "" {
		t.Errorf("delivered (-want +have):\n%s", diff)
	}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +have):\n%s", diff)
	}
	l.wantInvalid(t)
}

// R35: completed is finite and not negative, a total finite and not below it, the message valid
// UTF-8 of at most 1 KiB. An invalid update is told to the host; it is not delivered, takes no
// turn, and does not change the outcome.
func TestInvalidProgress(t *testing.T) {
	total := func(f float64) *float64 { return &f }
	for name, test := range map[string]struct {
		update interrupt.Update
		field  string
	}{
		"completed is not a number":   {interrupt.Update{Completed: math.NaN()}, "completed"},
		"completed is infinite":       {interrupt.Update{Completed: math.Inf(1)}, "completed"},
		"completed is minus infinite": {interrupt.Update{Completed: math.Inf(-1)}, "completed"},
		"completed is negative":       {interrupt.Update{Completed: -0.5}, "completed"},
		"total is not a number":       {interrupt.Update{Completed: 2, Total: total(math.NaN())}, "total"},
		"total is infinite":           {interrupt.Update{Completed: 2, Total: total(math.Inf(1))}, "total"},
		"total is below completed":    {interrupt.Update{Completed: 2, Total: total(1.5)}, "total"},
		"message is not UTF-8":        {interrupt.Update{Completed: 2, Message: "a\xff"}, "message"},
		"message is long":             {interrupt.Update{Completed: 2, Message: strings.Repeat("é", 512) + "x"}, "message"},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(nil)
			g := reporting(t, newClock(), func(ctx context.Context) error {
				if err := interrupt.Progress(ctx, test.update); err != nil {
					return err
				}
				return progress(ctx, 1)
			})
			mustFinish(t, g, heardBy(l, "tool"), `"done"`)
			l.want(t, 1)
			l.wantInvalid(t, test.field)
			if err := test.update.Validate(); !errors.Is(err, interrupt.ErrInvalidUpdate) {
				t.Errorf("by itself: want ErrInvalidUpdate, have %v", err)
			}
			if err := interrupt.Progress(t.Context(), test.update); !errors.Is(err, interrupt.ErrNoRun) {
				t.Errorf("without a gate: want ErrNoRun, have %v", err)
			}
		})
	}
}

// R35: completed never decreases, and that is checked for updates too that were left out.
func TestProgressNeverDecreases(t *testing.T) {
	clock, l := newClock(), listen(nil)
	g := reporting(t, clock, func(ctx context.Context) error {
		return errors.Join(
			progress(ctx, 5),
			progress(ctx, 7), // left out, and counts
			progress(ctx, 6), // invalid although it would be left out, and does not count
			func() error { clock.add(time.Second); return progress(ctx, 6) }(), // invalid after one that nobody saw
			progress(ctx, 7),
		)
	})
	mustFinish(t, g, heardBy(l, "tool"), `"done"`)
	l.want(t, 5, 7)
	l.wantInvalid(t, "completed", "completed")
}

// R35: at most one update per 100 ms of the given clock, counted from the end of the last one. What
// came in between is not delivered later either.
func TestProgressInterval(t *testing.T) {
	clock := newClock()
	var slow time.Duration
	l := listen(func(context.Context, interrupt.Update) error {
		clock.add(slow)
		return nil
	})
	g := reporting(t, clock, func(ctx context.Context) error {
		for i, step := range []time.Duration{0, 0, 99 * time.Millisecond, 1, time.Millisecond - 1, 99 * time.Millisecond, 0} {
			clock.add(step)
			if err := progress(ctx, float64(i)); err != nil { // 0 and 4 are delivered
				return err
			}
		}
		slow = time.Hour
		clock.add(time.Millisecond)
		if err := errors.Join(progress(ctx, 7), progress(ctx, 8)); err != nil { // 7
			return err
		}
		clock.add(-time.Minute) // a clock that steps back: rather none than too many
		if err := progress(ctx, 9); err != nil {
			return err
		}
		clock.add(time.Minute + 100*time.Millisecond)
		return errors.Join(progress(ctx, 10), progress(ctx, 11)) // 10; the last one is not promised
	})
	mustFinish(t, g, heardBy(l, "tool"), `"done"`)
	clock.add(time.Hour)
	l.want(t, 0, 4, 7, 10)
	l.wantInvalid(t)
}

// R35: every call is a sequence of its own, with its own interval, also where the host takes the
// progress of all of them in one place.
func TestProgressOfEachCall(t *testing.T) {
	l, clock := listen(nil), newClock()
	g := open(t, newMem(), gate.Options{Now: clock.Now, Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		for n := range 2 {
			if err := progress(ctx, float64(n)); err != nil {
				return nil, err
			}
			if _, err := interrupt.Ask(ctx, choose("a", "b", fmt.Sprint(n))); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}, nil)}})
	c := heardBy(l, "tool")
	p := mustAsk(t, g, c)
	p = mustAsk(t, g, with(c, p, `{"selectionIdx":0}`))
	mustFinish(t, g, with(c, p, `{"selectionIdx":0}`), `null`)
	l.want(t, 0, 0, 0)
	l.wantInvalid(t)
}

// R35: the total is copied: neither side sees what the other does to it.
func TestProgressCopiesTotal(t *testing.T) {
	l := listen(func(_ context.Context, u interrupt.Update) error {
		*u.Total++
		return nil
	})
	g := reporting(t, newClock(), func(ctx context.Context) error {
		total := 4.0
		err := interrupt.Progress(ctx, interrupt.Update{Total: &total})
		if total != 4 {
			t.Errorf("the handler's total is %v", total)
		}
		total = 9
		return err
	})
	mustFinish(t, g, heardBy(l, "tool"), `"done"`)
	if total := *l.updates[0].Total; total != 5 {
		t.Errorf("the sink's total is %v", total)
	}
}

// R35: a sink's errors and panics go to the slot, and change neither the outcome nor what comes
// after. R1: a question of a sink's is none.
func TestProgressSinkFails(t *testing.T) {
	clock, errSink := newClock(), errors.New("the client is gone")
	var question interrupt.Interrupt
	l := listen(func(_ context.Context, u interrupt.Update) error {
		switch u.Completed {
		case 0:
			return fmt.Errorf("send: %w", errSink)
		case 1:
			panic("no client")
		case 2:
			return choose("a", "b")
		}
		return nil
	})
	g := reporting(t, clock, func(ctx context.Context) error {
		for n := range 4 {
			if err := progress(ctx, float64(n)); err != nil {
				return err
			}
			clock.add(100 * time.Millisecond)
		}
		return nil
	})
	mustFinish(t, g, heardBy(l, "tool"), `"done"`)
	l.want(t, 0, 1, 2, 3)
	errs := l.Errors()
	if len(errs) != 3 {
		t.Fatalf("want 3 errors, have %v", errs)
	}
	if !errors.Is(errs[0], errSink) {
		t.Errorf("the sink's error is %v", errs[0])
	}
	if p, ok := errors.AsType[*gate.PanicError](errs[1]); !ok || p.Value != "no client" {
		t.Errorf("the sink's panic is %v", errs[1])
	}
	if errors.As(errs[2], &question) {
		t.Errorf("a question in the slot: %v", errs[2])
	}
}

// R35: the slot is bounded, keeps what came first, is the host's own copy, and is there however the
// call ends.
func TestProgressSlot(t *testing.T) {
	l := listen(nil)
	g := reporting(t, newClock(), func(ctx context.Context) error {
		if err := progress(ctx, -1); err != nil {
			return err
		}
		for range 100 {
			if err := interrupt.Progress(ctx, interrupt.Update{Message: "\xff"}); err != nil {
				return err
			}
		}
		return errPrivate
	})
	mustFail(t, g, heardBy(l, "tool"), gate.ErrFailed)
	want := []string{"completed", "message", "message", "message", "message", "message", "message", "message"}
	l.wantInvalid(t, want...)
	l.Errors()[0] = nil
	l.wantInvalid(t, want...)
	l.want(t)
}

// R35: nobody has to listen; without a sink the slot is there all the same.
func TestProgressWithoutSink(t *testing.T) {
	g := reporting(t, newClock(), func(ctx context.Context) error { return errors.Join(progress(ctx, 1), progress(ctx, 0)) })
	mustFinish(t, g, call("tool", `{}`), `"done"`)
	l := &listener{}
	mustFinish(t, g, heardBy(l, "tool"), `"done"`)
	l.wantInvalid(t, "completed")
}

// R35: a run in recovery may report too.
func TestProgressInRecovery(t *testing.T) {
	for name, opts := range map[string]*gate.ToolOptions{
		"the handler": {Replay: gate.Recover},
		"a function": {Replay: gate.Recover, Recover: func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`"recovered"`), progress(ctx, 3)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
				if r, _ := interrupt.ResumeFrom(ctx); r.Recovery {
					return "recovered", progress(ctx, 3)
				}
				if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
					return nil, err
				}
				return nil, errPrivate
			}, opts))
			l := listen(nil)
			c := heardBy(l, "tool")
			answered := with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)
			mustFail(t, g, answered, gate.ErrFailed)
			l.want(t)
			mustFinish(t, g, answered, `"recovered"`)
			l.want(t, 3)
		})
	}
}

// A call's progress is the host's, and no part of its JSON form.
func TestProgressHasNoJSONForm(t *testing.T) {
	want, err := json.Marshal(call("tool", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	have, err := json.Marshal(heardBy(listen(nil), "tool"))
	if err != nil || string(have) != string(want) {
		t.Errorf("want %s, have %s, %v", want, have, err)
	}
}
