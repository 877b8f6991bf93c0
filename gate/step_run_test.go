package gate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R4: several goroutines run steps of different keys at once; the first of them makes the record,
// and only one does.
func TestStepsAtOnce(t *testing.T) {
	const n = 20
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: newMem()}
		creates := 0
		store.set(func(b *checkpoint.Batch) (before, after error) {
			if writes(b, checkpoint.Started) {
				creates++
				time.Sleep(time.Second) // of the bubble: the others come meanwhile
			}
			return nil, nil
		})
		g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
			var all sync.WaitGroup
			errs := make([]error, n)
			for i := range n {
				all.Go(func() {
					opts := &interrupt.OnceOptions[int]{Idempotent: i%2 == 0}
					got, err := interrupt.Once(ctx, fmt.Sprint(i), func(context.Context, string) (int, error) { return i, nil }, opts)
					if err == nil && got != i {
						err = fmt.Errorf("step %d returned %d", i, got)
					}
					errs[i] = err
				})
			}
			all.Wait()
			return "done", errors.Join(errs...)
		}, nil)}})
		outcome, err := g.Invoke(t.Context(), call("tool", `{}`))
		if err != nil {
			t.Fatal(err, errors.Unwrap(err))
		}
		rows, err := store.Rows(t.Context(), outcome.Interaction, "", 1000)
		if err != nil || len(rows) != n || creates != 1 {
			t.Errorf("%d rows, %d creates, %v", len(rows), creates, err)
		}
	})
}

// R4: a key that is being run is refused, and free again afterwards.
func TestStepTwiceAtOnce(t *testing.T) {
	var effects counter
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		outer := ctx // inside the step this is what another goroutine has
		_, err := interrupt.Once(ctx, "a", func(context.Context, string) (string, error) {
			var refused *interrupt.StepError
			_, err := interrupt.Once(ctx, "a", effect(&effects, "", nil), nil)
			if !errors.As(err, &refused) || refused.Key != "a" || !errors.Is(err, interrupt.ErrInvalidStep) {
				return "", fmt.Errorf("the same key at once: %w", err)
			}
			return interrupt.Once(outer, "b", effect(&effects, "", nil), nil)
		}, nil)
		if err != nil {
			return nil, err
		}
		return interrupt.Once(ctx, "a", effect(&effects, "", nil), nil)
	}, nil))
	mustFinish(t, g, call("tool", `{}`), `""`)
	effects.want(t, 1)
}

// R3, R4: after the handler returned no step begins, and the result of one that goes on is not
// recorded: it stays begun.
func TestStepAfterTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMem()
		running, goOn := make(chan struct{}), make(chan struct{})
		late := make(chan error, 2)
		g := open(t, memory, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
			go func() {
				_, err := interrupt.Once(ctx, "a", func(context.Context, string) (string, error) {
					close(running)
					<-goOn
					return "x", nil
				}, nil)
				late <- err
				_, err = interrupt.Once(ctx, "b", func(context.Context, string) (string, error) { panic("it ran") }, nil)
				late <- err
			}()
			<-running
			return nil, errPrivate
		}, nil)}})
		mustFail(t, g, starting(), gate.ErrFailed)
		close(goOn)
		for range 2 {
			if err := <-late; !errors.Is(err, interrupt.ErrRunEnded) {
				t.Errorf("after the handler: %v", err)
			}
		}
		s, err := g.Inspect(t.Context(), "ann", "work")
		if err != nil || s.Status != checkpoint.Failed {
			t.Fatalf("%+v, %v", s, err)
		}
		rows, err := memory.Rows(t.Context(), s.ID, "", 10)
		if err != nil || len(rows) != 1 {
			t.Fatalf("rows %v, %v", rows, err)
		}
		if step, err := checkpoint.DecodeStep(rows[0]); err != nil || step.Result != nil {
			t.Errorf("recorded %+v, %v", step, err)
		}
	})
}

// R4: a commit of a step that is on its way when the handler returns comes before the handler's
// row; a step whose mark it was does not run any more.
func TestStepOnItsWayWhenTheHandlerReturns(t *testing.T) {
	for _, when := range []string{"mark", "result"} {
		for _, start := range []bool{false, true} {
			t.Run(fmt.Sprint("the ", when, ", start ID ", start), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := &faulty{Store: newMem()}
					writing, goOn := make(chan struct{}), make(chan struct{})
					late := make(chan error, 1)
					var effects counter
					store.set(func(b *checkpoint.Batch) (before, after error) {
						if len(b.Rows) > 0 && (when == "mark") == (effects.n == 0) {
							close(writing)
							<-goOn
						}
						return nil, nil
					})
					g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
						go func() {
							_, err := interrupt.Once(ctx, "a", effect(&effects, "x", nil), nil)
							late <- err
						}()
						<-writing
						return nil, errPrivate
					}, nil)}})
					c := call("tool", `{}`)
					if start {
						c = starting()
					}
					ended := invoke(g, c)
					synctest.Wait()
					select {
					case e := <-ended:
						t.Fatalf("it did not wait: %+v", e)
					default:
					}
					close(goOn)
					e := <-ended
					failed := wantCode(t, "the handler", e.err, gate.ErrFailed)
					s, err := g.InspectID(t.Context(), "ann", failed.Interaction)
					if err != nil || s.Status != checkpoint.Failed {
						t.Errorf("it is %+v, %v", s, err)
					}
					err = <-late
					if when == "result" && err != nil || when == "mark" && (!errors.Is(err, interrupt.ErrRunEnded) || effects.n > 0) {
						t.Errorf("the step: %v, %d effects", err, effects.n)
					}
				})
			})
		}
	}
}

// R4: on a context that has ended no step begins; what a step brought after its context ended is
// recorded.
func TestStepWithACancelledContext(t *testing.T) {
	var effects counter
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		cancelled, cancel := context.WithCancel(ctx)
		first, err := interrupt.Once(cancelled, "a", func(context.Context, string) (string, error) { cancel(); return "x", nil }, nil)
		if err != nil || first != "x" {
			return nil, fmt.Errorf("cancelled within: %q, %w", first, err)
		}
		if _, err := interrupt.Once(cancelled, "b", effect(&effects, "y", nil), nil); !errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("cancelled before: %w", err)
		}
		if again, err := interrupt.Once(ctx, "a", effect(&effects, "y", nil), nil); err != nil || again != "x" {
			return nil, fmt.Errorf("again: %q, %w", again, err)
		}
		return interrupt.Once(ctx, "b", effect(&effects, "y", nil), nil)
	}, nil))
	mustFinish(t, g, call("tool", `{}`), `"y"`)
	effects.want(t, 1)
}

// A tally counts what a store is asked and given.
type tally struct {
	checkpoint.Store
	calls, bytes int
}

func (s *tally) Commit(ctx context.Context, b *checkpoint.Batch) error {
	s.calls++
	for _, p := range b.Puts {
		s.bytes += len(p.Record.Data)
	}
	for _, r := range b.Rows {
		s.bytes += len(r.Row.Data)
	}
	return s.Store.Commit(ctx, b)
}

func (s *tally) Rows(ctx context.Context, id checkpoint.ID, from string, limit int) ([]checkpoint.Row, error) {
	s.calls++
	rows, err := s.Store.Rows(ctx, id, from, limit)
	for _, row := range rows {
		s.bytes += len(row.Data)
	}
	return rows, err
}

func (s *tally) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Record, error) {
	s.calls++
	r, err := s.Store.Load(ctx, id)
	s.bytes += len(r.Data)
	return r, err
}

// R4, R25: the cost of a step does not grow with the steps before it: one look, and a commit for
// the mark and for the result, of this step only.
func TestCostOfAStep(t *testing.T) {
	for name, test := range map[string]struct {
		opts  *interrupt.OnceOptions[string]
		calls int
	}{"default": {nil, 3}, "idempotent": {&interrupt.OnceOptions[string]{Idempotent: true}, 2}} {
		t.Run(name, func(t *testing.T) {
			store := &tally{Store: newMem()}
			g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
				var first, last tally
				for i := range 1000 {
					before := *store
					if _, err := interrupt.Once(ctx, fmt.Sprintf("%04d", i), func(context.Context, string) (string, error) {
						return "result", nil
					}, test.opts); err != nil {
						return nil, err
					}
					last = tally{calls: store.calls - before.calls, bytes: store.bytes - before.bytes}
					if i == 0 {
						first = last
					}
				}
				if first.calls != test.calls || last.calls != test.calls {
					t.Errorf("%d calls at first, %d at last, want %d", first.calls, last.calls, test.calls)
				}
				if first.bytes == 0 || last.bytes > first.bytes+200 { // a look may see the neighbour's row instead of none
					t.Errorf("%d bytes at first, %d at last", first.bytes, last.bytes)
				}
				before := *store
				_, err := interrupt.Once(ctx, "0500", effect(nil, "", nil), test.opts)
				if n := store.calls - before.calls; err != nil || n != 1 {
					t.Errorf("a done step costs %d calls, %v", n, err)
				}
				return "done", nil
			}, nil)}})
			mustFinish(t, g, starting(), `"done"`)
		})
	}
}

// R4, R33: a step's bytes count in what the store holds of the scope, and the interaction that a
// step makes counts once while its handler runs.
func TestStepsAreCounted(t *testing.T) {
	store := newMem()
	var usage []int64
	look := func() {
		u, err := store.Usage(t.Context(), checkpoint.Hash{})
		if err != nil || u.Active > 1 {
			t.Errorf("usage %+v, %v", u, err)
		}
		usage = append(usage, u.Bytes)
	}
	var g *gate.Gate
	g = open(t, store, gate.Options{Capacity: gate.Capacity{Open: 2}, Tools: []*gate.Tool{
		raw("tool", func(ctx context.Context) (any, error) {
			look()
			for _, key := range []string{"a", "b"} {
				if _, err := interrupt.Once(ctx, key, func(context.Context, string) (string, error) { return "result", nil }, nil); err != nil {
					return nil, err
				}
				look()
			}
			if _, err := g.Invoke(ctx, call("other", `{}`)); err != nil {
				return nil, fmt.Errorf("there is room for two: %w", err)
			}
			return "done", nil
		}, nil),
		raw("other", func(context.Context) (any, error) { return "done", nil }, nil),
	}})
	mustFinish(t, g, call("tool", `{}`), `"done"`)
	if usage[0] != 0 || usage[1] <= 2*checkpoint.Charge || usage[2]-usage[1] <= checkpoint.Charge {
		t.Errorf("usage %v", usage)
	}
}

// R39, X4, X6: the steps of an interaction go with it, also where a tombstone stays, and where it
// could not be read.
func TestStepsAreRemoved(t *testing.T) {
	for i := range 4 {
		start, unreadable := i%2 == 0, i/2 == 0
		t.Run(fmt.Sprintf("start ID %v, unreadable %v", start, unreadable), func(t *testing.T) {
			clock, store := newClock(), memstore.New()
			g := open(t, store, gate.Options{Now: clock.Now, Tools: []*gate.Tool{
				raw("tool", func(ctx context.Context) (any, error) {
					for i := range 40 {
						if _, err := interrupt.Once(ctx, fmt.Sprint(i), func(context.Context, string) (string, error) { return "", nil }, nil); err != nil {
							return nil, err
						}
					}
					return "done", nil
				}, nil),
				raw("idle", func(context.Context) (any, error) { return "done", nil }, nil),
			}})
			c := call("tool", `{}`)
			if start {
				c = starting()
			}
			outcome, err := g.Invoke(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if unreadable {
				spoil(t, store, outcome.Interaction)
			}
			clock.add(25 * time.Hour)
			for range 10 {
				mustFinish(t, g, call("idle", `{}`), `"done"`)
			}
			rows, err := store.Rows(t.Context(), outcome.Interaction, "", 1000)
			if err != nil || len(rows) > 0 {
				t.Errorf("%d rows are left, %v", len(rows), err)
			}
			record, err := store.Load(t.Context(), outcome.Interaction)
			if start != (err == nil) || start && record.Status != checkpoint.Tombstone {
				t.Errorf("left is %+v, %v", record, err)
			}
		})
	}
}

// X3, R39: a record that a step made, whose process died before the first prompt, is abandoned and
// removed; while its handler runs no sweep touches it.
func TestOrphanOfAStep(t *testing.T) {
	clock, memory := newClock(), newMem()
	dying := &faulty{Store: memory}
	tools := func(meanwhile func()) []*gate.Tool {
		return []*gate.Tool{
			raw("tool", func(ctx context.Context) (any, error) {
				return interrupt.Once(ctx, "a", func(context.Context, string) (string, error) { meanwhile(); return "x", nil }, nil)
			}, nil),
			raw("idle", func(context.Context) (any, error) { return "done", nil }, nil),
		}
	}
	other := open(t, memory, gate.Options{Now: clock.Now, Tools: tools(nil)})
	status := func(want checkpoint.Status) {
		t.Helper()
		page, err := memory.List(t.Context(), checkpoint.Query{})
		if err != nil || len(page.Records) != 1 || page.Records[0].Status != want {
			t.Errorf("records %v, %v, want one that is %s", page.Records, err, want)
		}
	}
	var g *gate.Gate
	g = open(t, dying, gate.Options{Now: clock.Now, Tools: tools(func() {
		clock.add(time.Hour)
		for _, sweeper := range []*gate.Gate{g, other} {
			mustFinish(t, sweeper, call("idle", `{}`), `"done"`)
		}
		status(checkpoint.Started)
		dying.crash()
	})})
	mustFail(t, g, call("tool", `{}`), gate.ErrOutcomeUnknown)
	status(checkpoint.Started)
	mustFinish(t, other, call("idle", `{}`), `"done"`)
	status(checkpoint.Abandoned)
	clock.add(25 * time.Hour)
	for range 3 {
		mustFinish(t, other, call("idle", `{}`), `"done"`)
	}
	if page, err := memory.List(t.Context(), checkpoint.Query{}); err != nil || len(page.Records) > 0 {
		t.Errorf("left is %v, %v", page.Records, err)
	}
}

// R37: with data keys a step's key and result are sealed, and one that was moved to another place
// is refused; a ledger that is taken under a new data key keeps its steps.
func TestStepsAreSealed(t *testing.T) {
	for _, moved := range []bool{false, true} {
		t.Run(fmt.Sprint("moved ", moved), func(t *testing.T) {
			store := memstore.New()
			var effects counter
			runs := 0
			var id checkpoint.ID
			tools := []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
				for _, key := range []string{"secret-a", "secret-b"} {
					got, err := interrupt.Once(ctx, key, effect(&effects, key+"-result", nil), nil)
					if err != nil || got != key+"-result" {
						return nil, fmt.Errorf("%s is %q: %w", key, got, err)
					}
				}
				if runs++; runs == 1 {
					return nil, errPrivate
				}
				return "done", nil
			}, &gate.ToolOptions{Replay: gate.Repeatable})}
			g := open(t, store, gate.Options{Tools: tools, DataKeys: [][]byte{dataKey}})
			id = mustFail(t, g, starting(), gate.ErrFailed).Interaction
			rows := func() []checkpoint.Row {
				t.Helper()
				rows, err := store.Rows(t.Context(), id, "", 10)
				if err != nil || len(rows) != 2 {
					t.Fatalf("rows %v, %v", rows, err)
				}
				for _, row := range rows {
					if bytes.Contains(row.Data, []byte("secret")) {
						t.Errorf("in plain text: %q", row.Data)
					}
				}
				return rows
			}
			stored := rows()
			if moved {
				stored[0].Data, stored[1].Data = stored[1].Data, stored[0].Data
				batch := &checkpoint.Batch{Rows: []checkpoint.RowPut{{Row: stored[0], Epoch: 1}, {Row: stored[1], Epoch: 1}}}
				if err := store.Commit(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
				mustFail(t, g, starting(), gate.ErrUnavailable)
				return
			}
			other := []byte("another data key, of 32 bytes too")
			if _, err := gate.Reencrypt(t.Context(), store, &gate.ReencryptOptions{DataKeys: [][]byte{other, dataKey}}); err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(rows()[0].Data, stored[0].Data) {
				t.Error("the row was not sealed anew")
			}
			mustFinish(t, open(t, store, gate.Options{Tools: tools, DataKeys: [][]byte{other}}), starting(), `"done"`)
			effects.want(t, 2)
		})
	}
}

// R38: the record that a step makes leaves an entry like any other.
func TestAuditOfAStep(t *testing.T) {
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		return interrupt.Once(ctx, "a", effect(new(counter), "x", nil), nil)
	}, nil))
	face, err := g.NewFace("mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	mustFinish(t, face, call("tool", `{}`), `"x"`)
	page, err := g.Audit(t.Context(), gate.AuditQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range page.Entries {
		have = append(have, fmt.Sprint(e.Action, " ", e.Face))
	}
	if diff := cmp.Diff([]string{"started mcp", "ended mcp"}, have); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
}
