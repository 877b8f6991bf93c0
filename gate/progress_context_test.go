package gate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R3: a nested call does not inherit the outer one's progress, and has its own.
func TestNestedProgress(t *testing.T) {
	outer, inner := listen(nil), listen(nil)
	clock := newClock()
	var g *gate.Gate
	g = open(t, newMem(), gate.Options{Now: clock.Now, Tools: []*gate.Tool{
		raw("inner", func(ctx context.Context) (any, error) { return nil, progress(ctx, 1) }, nil),
		raw("outer", func(ctx context.Context) (any, error) {
			err := progress(ctx, 5)
			clock.add(time.Second)
			for _, c := range []gate.Call{call("inner", `{}`), heardBy(inner, "inner")} {
				_, e := g.Invoke(ctx, c)
				err = errors.Join(err, e)
			}
			return nil, errors.Join(err, progress(ctx, 6))
		}, nil),
	}})
	mustFinish(t, g, heardBy(outer, "outer"), `null`)
	outer.want(t, 5, 6)
	outer.wantInvalid(t)
	inner.want(t, 1)
}

// R3: only a handler's own context reports: not one that no gate made, and none that the gate gives
// to the host's callbacks.
func TestProgressNeedsHandler(t *testing.T) {
	report := func(where string, ctx context.Context) {
		if err := progress(ctx, 1); !errors.Is(err, interrupt.ErrNoRun) {
			t.Errorf("%s: want ErrNoRun, have %v", where, err)
		}
	}
	report("no gate", t.Context())
	l := listen(func(ctx context.Context, _ interrupt.Update) error {
		report("sink", ctx)
		return nil
	})
	g := open(t, newMem(), gate.Options{
		Authorize: func(ctx context.Context, _ gate.Call) error { report("authorize", ctx); return nil },
		Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) { return nil, progress(ctx, 1) }, &gate.ToolOptions{
			Authorize: func(ctx context.Context, _ gate.Execution) error { report("authorize the execution", ctx); return nil },
		})},
	})
	mustFinish(t, g, heardBy(l, "tool"), `null`)
	l.want(t, 1)
}

// R3, R35: after the handler returned, or panicked, nothing is delivered, and reporting fails.
func TestProgressAfterReturn(t *testing.T) {
	for name, end := range map[string]func(){"returned": func() {}, "panicked": func() { panic("x") }} {
		t.Run(name, func(t *testing.T) {
			var leaked context.Context
			l := listen(nil)
			g := reporting(t, newClock(), func(ctx context.Context) error {
				leaked = ctx
				end()
				return nil
			})
			_, _ = g.Invoke(t.Context(), heardBy(l, "tool"))
			for _, completed := range []float64{1, -1} { // what is not valid does not get into the slot either
				if err := progress(leaked, completed); !errors.Is(err, interrupt.ErrRunEnded) {
					t.Errorf("want ErrRunEnded, have %v", err)
				}
			}
			l.want(t)
			l.wantInvalid(t)
		})
	}
}
