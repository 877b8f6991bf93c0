package gate_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-go/parley/interrupt"
)

// R35: while an update is being delivered, others are left out at once, and checked all the same.
func TestProgressWhileDelivering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		l := listen(func(_ context.Context, u interrupt.Update) error {
			if u.Completed == 5 {
				<-leave
			}
			return nil
		})
		clock := newClock()
		g := reporting(t, clock, func(ctx context.Context) error {
			first := make(chan error)
			go func() { first <- progress(ctx, 5) }()
			synctest.Wait() // the sink is in the first update
			clock.add(time.Second)
			err := errors.Join(progress(ctx, 7), progress(ctx, 6)) // returns: nothing waits for the sink
			close(leave)
			err = errors.Join(err, <-first, progress(ctx, 7))
			clock.add(time.Second)
			return errors.Join(err, progress(ctx, 7))
		})
		mustFinish(t, g, heardBy(l, "tool"), `"done"`)
		l.want(t, 5, 7)
		l.wantInvalid(t, "completed")
	})
}

// R35: an update out of the sink itself is left out and checked; R23: no mutex is held while the
// sink runs.
func TestProgressReentrant(t *testing.T) {
	var handler context.Context
	var l *listener
	clock := newClock()
	l = listen(func(context.Context, interrupt.Update) error {
		clock.add(time.Second)
		_ = l.Errors()
		return errors.Join(progress(handler, 3), progress(handler, 2))
	})
	g := reporting(t, clock, func(ctx context.Context) error {
		handler = ctx
		err := progress(ctx, 1)
		clock.add(time.Second)
		return errors.Join(err, progress(ctx, 2.5)) // below 3, which was left out
	})
	mustFinish(t, g, heardBy(l, "tool"), `"done"`)
	l.want(t, 1)
	l.wantInvalid(t, "completed", "completed")
}

// R35: the call waits for the delivery that is running when the handler returns, and its error is
// in the slot then. What comes after the handler returned is not delivered.
func TestProgressIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, leave, errSink := make(chan struct{}), make(chan struct{}), errors.New("late")
		l := listen(func(context.Context, interrupt.Update) error {
			close(entered)
			<-leave
			return errSink
		})
		reported := make(chan error, 1)
		var leaked context.Context
		g := reporting(t, newClock(), func(ctx context.Context) error {
			leaked = ctx
			go func() { reported <- progress(ctx, 1) }()
			<-entered
			return nil
		})
		running := invoke(g, heardBy(l, "tool"))
		synctest.Wait()
		select {
		case <-running:
			t.Fatal("the call did not wait for the sink")
		default:
		}
		if err := progress(leaked, 2); !errors.Is(err, interrupt.ErrRunEnded) {
			t.Errorf("want ErrRunEnded, have %v", err)
		}
		close(leave)
		if ended := <-running; ended.err != nil || string(ended.outcome.Result) != `"done"` {
			t.Errorf("have %+v", ended)
		}
		if err := <-reported; err != nil {
			t.Errorf("a delivery that began in time: %v", err)
		}
		if errs := l.Errors(); len(errs) != 1 || !errors.Is(errs[0], errSink) {
			t.Errorf("in the slot: %v", errs)
		}
		l.want(t, 1)
	})
}

// R35: a sink that ends its goroutine, as a test's Fatal does, has ended its delivery.
func TestProgressSinkExits(t *testing.T) {
	clock := newClock()
	l := listen(func(_ context.Context, u interrupt.Update) error {
		if u.Completed == 1 {
			runtime.Goexit()
		}
		return nil
	})
	g := reporting(t, clock, func(ctx context.Context) error {
		var reporting sync.WaitGroup
		reporting.Go(func() { _ = progress(ctx, 1) })
		reporting.Wait()
		clock.add(time.Second)
		return progress(ctx, 2)
	})
	mustFinish(t, g, heardBy(l, "tool"), `"done"`)
	l.want(t, 1, 2)
}

// R35: no timer stands behind progress: what was left out stays so, however long the handler goes
// on, and nothing comes after the call.
func TestProgressHasNoTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listen(nil)
		tool := raw("tool", func(ctx context.Context) (any, error) {
			err := errors.Join(progress(ctx, 1), progress(ctx, 2))
			<-time.After(time.Hour)
			return nil, errors.Join(err, progress(ctx, 3), progress(ctx, 4))
		}, nil)
		mustFinish(t, openMem(t, tool), heardBy(l, "tool"), `null`)
		<-time.After(time.Hour)
		l.want(t, 1, 3)
	})
}

// R35: whatever goroutines do, deliveries do not overlap, do not decrease, and end with the call.
func TestProgressRaces(t *testing.T) {
	clock := newClock()
	var inside atomic.Int32
	l := listen(func(context.Context, interrupt.Update) error {
		if inside.Add(1) != 1 {
			t.Error("two deliveries at once")
		}
		runtime.Gosched()
		inside.Add(-1)
		return nil
	})
	var after sync.WaitGroup
	var next atomic.Int64
	g := reporting(t, clock, func(ctx context.Context) error {
		var first sync.WaitGroup
		for range 4 {
			first.Add(1)
			once := sync.OnceFunc(first.Done)
			after.Go(func() { // and goes on after the handler returned
				for {
					clock.add(time.Second)
					err := progress(ctx, float64(next.Add(1)))
					once()
					if errors.Is(err, interrupt.ErrRunEnded) {
						return
					}
				}
			})
		}
		first.Wait()
		return nil
	})
	c := heardBy(l, "tool")
	outcome, err := g.Invoke(t.Context(), c)
	if err != nil || outcome.Result == nil {
		t.Errorf("have %+v, %v", outcome, err)
	}
	have := l.heard()
	after.Wait()
	if late := l.heard(); len(late) != len(have) {
		t.Errorf("%d deliveries after the call", len(late)-len(have))
	}
	if len(have) == 0 || !slices.IsSorted(have) {
		t.Errorf("delivered: %v", have)
	}
}
