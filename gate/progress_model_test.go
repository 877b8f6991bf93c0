package gate_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A report is one update of a handler, how long before it the clock moved, and what the sink does
// with it where it gets it: how long it takes, and whether it then fails.
type report struct {
	interrupt.Update
	before, during time.Duration
	fails          bool
}

func reports(t *rapid.T) []report {
	number := rapid.OneOf(rapid.Float64Range(0, 4), rapid.SampledFrom([]float64{-1, 0, 1, 2, math.NaN(), math.Inf(1)}))
	pause := rapid.SampledFrom([]time.Duration{0, time.Millisecond, 99 * time.Millisecond, 100 * time.Millisecond, time.Second, -time.Millisecond})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) report {
		r := report{before: pause.Draw(t, "before"), during: pause.Draw(t, "during"), fails: rapid.Bool().Draw(t, "fails")}
		r.Completed = number.Draw(t, "completed")
		if rapid.Bool().Draw(t, "with total") {
			total := number.Draw(t, "total")
			r.Total = &total
		}
		r.Message = rapid.SampledFrom([]string{"", "half", "\xff"}).Draw(t, "message")
		return r
	}), 0, 20).Draw(t, "reports")
}

var errHeard = errors.New("heard, and failed")

// expected is the dumb model: what is delivered of the reports, and whether each error in the slot
// is of an invalid update.
func expected(reports []report) (delivered []int, invalid []bool) {
	now, free, least := time.Duration(0), time.Duration(math.MinInt64), 0.0
	for i, r := range reports {
		now += r.before
		ok := r.Completed >= least && r.Completed <= math.MaxFloat64 && r.Message != "\xff"
		if r.Total != nil {
			ok = ok && *r.Total >= r.Completed && *r.Total <= math.MaxFloat64
		}
		if !ok {
			invalid = append(invalid, true)
			continue
		}
		least = r.Completed
		if now < free {
			continue
		}
		delivered = append(delivered, i)
		now += r.during
		free = now + 100*time.Millisecond
		if r.fails {
			invalid = append(invalid, false)
		}
	}
	return delivered, invalid[:min(len(invalid), 8)]
}

// R35: random sequences of updates, at random moments, to a sink of random speed and luck.
func TestProgressModel(t *testing.T) {
	clock, current := newClock(), []report(nil)
	g := open(t, newMem(), gate.Options{
		Now: clock.Now, Logger: slog.New(slog.DiscardHandler),
		Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
			for _, r := range current {
				clock.add(r.before)
				if err := interrupt.Progress(ctx, r.Update); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}, nil)},
	})
	rapid.Check(t, func(t *rapid.T) {
		current = reports(t)
		delivered, invalid := expected(current)
		want := []interrupt.Update{}
		for _, i := range delivered {
			want = append(want, current[i].Update)
		}
		have := []interrupt.Update{}
		l := &gate.Progress{Sink: func(_ context.Context, u interrupt.Update) error {
			if len(have) == len(delivered) {
				t.Fatalf("delivered one too many: %+v", u)
			}
			r := current[delivered[len(have)]]
			have = append(have, u)
			clock.add(r.during)
			if r.fails {
				return errHeard
			}
			return nil
		}}
		c := call("tool", `{}`)
		c.Progress = l
		if outcome, err := g.Invoke(context.Background(), c); err != nil || string(outcome.Result) != "null" {
			t.Fatalf("have %+v, %v", outcome, err)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Fatalf("delivered (-want +have):\n%s", diff)
		}
		var slot []bool
		for _, err := range l.Errors() {
			if errors.Is(err, interrupt.ErrInvalidUpdate) == errors.Is(err, errHeard) {
				t.Fatalf("in the slot: %v", err)
			}
			slot = append(slot, errors.Is(err, interrupt.ErrInvalidUpdate))
		}
		if diff := cmp.Diff(invalid, slot); diff != "" {
			t.Fatalf("errors in the slot (-want +have):\n%s", diff)
		}
	})
}
