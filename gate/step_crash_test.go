package gate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A mortal is a gate whose process dies at its nth commit: right before it or right after. From
// then on it reads and writes nothing.
type mortal struct {
	store   *faulty
	commits int
	at      int
	after   bool
	dead    bool
}

func newMortal(memory checkpoint.Store, at int, after bool) *mortal {
	m := &mortal{store: &faulty{Store: memory}, at: at, after: after}
	m.store.set(func(*checkpoint.Batch) (before, after error) {
		if m.dead {
			return errInjected, nil
		}
		if m.commits++; m.commits != m.at {
			return nil, nil
		}
		m.dead = true
		m.store.failLoads(errInjected)
		if m.after {
			return nil, errInjected
		}
		return errInjected, nil
	})
	return m
}

// R4, R25, O1 to O6: whichever commit a process dies beside, a step that is not idempotent has its
// effect at most once, a finished one is not repeated, and the next run says which of them is not
// known. The commits are: started; mark and result of a and b; the prompt; the answer; mark and
// result of c; the end.
func TestStepsSurviveEveryDeath(t *testing.T) {
	const commits = 10
	keys := []string{"a", "b", "c"}
	for _, after := range []bool{false, true} {
		for at := 1; at <= commits; at++ {
			// The mark of a step was written and its result was not.
			unknown := map[bool]map[int]bool{false: {3: true, 5: true, 9: true}, true: {2: true, 4: true, 8: true}}[after][at]
			for _, checks := range []bool{false, true} {
				t.Run(fmt.Sprintf("at %d, after %v, checks %v", at, after, checks), func(t *testing.T) {
					effects := map[string]int{}
					tool := raw("tool", func(ctx context.Context) (any, error) {
						for _, key := range keys {
							opts := &interrupt.OnceOptions[string]{}
							if checks {
								opts.Check = func(context.Context, string) (string, bool, error) { return key, effects[key] > 0, nil }
							}
							got, err := interrupt.Once(ctx, key, func(context.Context, string) (string, error) { effects[key]++; return key, nil }, opts)
							if err != nil || got != key {
								return nil, fmt.Errorf("step %q returned %q: %w", key, got, err)
							}
							if key == "b" {
								if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
									return nil, err
								}
							}
						}
						return "done", nil
					}, &gate.ToolOptions{Replay: gate.Repeatable})
					memory := newMem()
					m := newMortal(memory, at, after)
					g := open(t, m.store, gate.Options{Tools: []*gate.Tool{tool}})
					_, err := throughPrompts(t, g, starting())
					if at < commits && err == nil {
						t.Fatal("it did not die")
					}
					m.store.crash()
					g = open(t, memory, gate.Options{Tools: []*gate.Tool{tool}})
					outcome, err := throughPrompts(t, g, starting())
					switch {
					case unknown && !checks:
						wantCode(t, fmt.Sprintf("%+v", outcome), err, gate.ErrOutcomeUnknown)
					case at == commits && after:
						wantCode(t, fmt.Sprintf("%+v", outcome), err, gate.ErrAlreadyCompleted)
					case err != nil || string(outcome.Result) != `"done"`:
						t.Fatalf("%+v, %v, %v", outcome, err, errors.Unwrap(err))
					}
					for _, key := range keys {
						if n := effects[key]; n > 1 || n < 1 && err == nil {
							t.Errorf("step %q had %d effects", key, n)
						}
					}
				})
			}
		}
	}
}

// throughPrompts invokes and answers until there is something else.
func throughPrompts(t *testing.T, g *gate.Gate, c gate.Call) (gate.Outcome, error) {
	t.Helper()
	for {
		outcome, err := g.Invoke(t.Context(), c)
		if err != nil || outcome.Prompt == nil {
			return outcome, err
		}
		c = with(c, outcome.Prompt, `{"selectionIdx":0}`)
	}
}

// R25, R4: a commit of a step whose outcome the store does not tell is settled by reading back. A
// step whose mark may not be there does not run.
func TestUnknownCommitOfAStep(t *testing.T) {
	const mark, result = 2, 3 // after started
	for name, test := range map[string]struct {
		at            int
		before, after error
		times         int
		unreadable    bool
		code          gate.Code // of the request; empty: it finishes
		later         gate.Code // of the same later
		effects       int       // after the first request
		total         int
	}{
		"mark written, and readable":           {mark, nil, errInjected, 1, false, "", gate.ErrAlreadyCompleted, 1, 1},
		"mark written, and unreadable":         {mark, nil, errInjected, 1, true, gate.ErrUnavailable, gate.ErrOutcomeUnknown, 0, 0},
		"mark not written":                     {mark, errInjected, nil, 1, false, gate.ErrUnavailable, "", 0, 1},
		"mark refused as read-only":            {mark, checkpoint.ErrReadOnly, nil, 1, false, gate.ErrUnavailable, "", 0, 1},
		"mark refused as a conflict":           {mark, &checkpoint.ConflictError{}, nil, 1, false, gate.ErrOutcomeUnknown, "", 0, 1},
		"mark refused as invalid":              {mark, checkpoint.ErrInvalidBatch, nil, 1, false, gate.ErrFailed, "", 0, 1},
		"result written, and readable":         {result, nil, errInjected, 1, false, "", gate.ErrAlreadyCompleted, 1, 1},
		"result written, and unreadable":       {result, nil, errInjected, 2, true, gate.ErrOutcomeUnknown, "", 1, 1},
		"result not written once":              {result, errInjected, nil, 1, false, "", gate.ErrAlreadyCompleted, 1, 1},
		"result not written twice":             {result, errInjected, nil, 2, false, gate.ErrOutcomeUnknown, gate.ErrOutcomeUnknown, 1, 1},
		"result refused as invalid":            {result, checkpoint.ErrInvalidBatch, nil, 1, false, gate.ErrFailed, gate.ErrOutcomeUnknown, 1, 1},
		"result not written, the store closed": {result, checkpoint.ErrUnavailable, nil, 2, false, gate.ErrOutcomeUnknown, gate.ErrOutcomeUnknown, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			store := &faulty{Store: newMem()}
			runs := 0
			g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
				runs++
				got, err := interrupt.Once(ctx, "a", effect(&effects, "x", nil), nil)
				if runs == 1 && err != nil && !errors.Is(err, interrupt.ErrInvalidStep) {
					// Whatever it does then, no other step is begun.
					if _, err := interrupt.Once(ctx, "b", effect(&effects, "x", nil), nil); err == nil {
						return nil, errors.New("another step went on")
					}
				}
				return got, err
			}, &gate.ToolOptions{Replay: gate.Repeatable})}})
			commits := 0
			store.set(func(*checkpoint.Batch) (before, after error) {
				if commits++; commits < test.at || commits >= test.at+test.times {
					if commits > test.at {
						store.failLoads(nil)
					}
					return nil, nil
				}
				if test.unreadable {
					store.failLoads(errInjected)
				}
				return test.before, test.after
			})
			if test.code == "" {
				mustFinish(t, g, starting(), `"x"`)
			} else {
				mustFail(t, g, starting(), test.code)
			}
			effects.want(t, test.effects)
			store.heal()
			if test.later == "" {
				mustFinish(t, g, starting(), `"x"`)
			} else {
				mustFail(t, g, starting(), test.later)
			}
			effects.want(t, test.total)
		})
	}
}

// R25, R4: the commit that makes the record with its first step may be unknown too. The step does
// not run then, and what the handler asks all the same makes no second record and runs nothing
// again.
func TestUnknownCommitOfTheFirstStep(t *testing.T) {
	for name, test := range map[string]struct {
		before, after error
		times         int
		unreadable    bool
		code          gate.Code // empty: it asks
		records       int
	}{
		"written, and readable":       {nil, errInjected, 1, false, "", 1},
		"not written once":            {errInjected, nil, 1, false, "", 1},
		"written, and unreadable":     {nil, errInjected, 2, true, gate.ErrUnavailable, 1},
		"not written":                 {errInjected, nil, 2, false, gate.ErrUnavailable, 0},
		"refused, the owner has left": {checkpoint.ErrLapsed, nil, 2, false, gate.ErrUnavailable, 0},
	} {
		for _, join := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", join ", join), func(t *testing.T) {
				var runs, effects counter
				store := &faulty{Store: newMem()}
				g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
					runs.add()
					interrupt.Once(ctx, "a", effect(&effects, "x", nil), nil) // whatever came of it
					return interrupt.Ask(ctx, choose("a", "b"))
				}, nil)}})
				commits := 0
				store.set(func(*checkpoint.Batch) (before, after error) {
					if commits++; commits > test.times {
						store.failLoads(nil)
						return nil, nil
					}
					if test.unreadable {
						store.failLoads(errInjected)
					}
					return test.before, test.after
				})
				c := call("tool", `{}`)
				c.Join = join
				if test.code == "" {
					mustAsk(t, g, c)
					effects.want(t, 1)
				} else {
					mustFail(t, g, c, test.code)
					effects.want(t, 0)
				}
				runs.want(t, 1)
				list, err := g.List(t.Context(), gate.ListQuery{AllScopes: true})
				if err != nil || len(list.Interactions) != test.records {
					t.Errorf("%d records, want %d, %v", len(list.Interactions), test.records, err)
				}
			})
		}
	}
}

// R4: where the store cannot be read, or a row holds another step, a step does not run.
func TestUnreadableStep(t *testing.T) {
	for name, spoil := range map[string]func(store *faulty, row *checkpoint.Row){
		"the store fails": func(store *faulty, _ *checkpoint.Row) { store.failLoads(errInjected) },
		"it is no step":   func(_ *faulty, row *checkpoint.Row) { row.Data = []byte(`{"v":2}`) },
		"it is another step": func(_ *faulty, row *checkpoint.Row) {
			row.Data = bytes.Replace(row.Data, []byte(`"key":"a"`), []byte(`"key":"b"`), 1)
		},
		"it is the step of another interaction": func(_ *faulty, row *checkpoint.Row) {
			row.Data = bytes.Replace(row.Data, []byte(`"id":"`), []byte(`"id":"0`), 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			memory := memstore.New()
			store := &faulty{Store: memory}
			spoiling := false
			g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
				if !spoiling {
					_, err := interrupt.Once(ctx, "a", effect(&effects, "x", nil), nil)
					return nil, errors.Join(err, errPrivate)
				}
				page, err := memory.List(ctx, checkpoint.Query{})
				if err != nil {
					return nil, err
				}
				record := page.Records[0]
				rows, err := memory.Rows(ctx, record.ID, "", 1)
				if err != nil {
					return nil, err
				}
				spoil(store, &rows[0])
				batch := &checkpoint.Batch{Rows: []checkpoint.RowPut{{Row: rows[0], Epoch: record.Claim.Epoch}}}
				if err := memory.Commit(ctx, batch); err != nil {
					return nil, err
				}
				return interrupt.Once(ctx, "a", effect(&effects, "x", nil), nil)
			}, &gate.ToolOptions{Replay: gate.Repeatable})}})
			mustFail(t, g, starting(), gate.ErrFailed)
			spoiling = true
			mustFail(t, g, starting(), gate.ErrUnavailable)
			effects.want(t, 1)
			store.failLoads(nil)
		})
	}
}

// R23, O9, H8: a step whose mark is refused because the claim was lost does not run, and the result
// of one that is running then is not recorded. The handler's context is cancelled, and whatever it
// returns, the outcome is unknown.
func TestStepOfAStalledOwner(t *testing.T) {
	for name, returns := range map[string]func(err error) (any, error){
		"the error":  func(err error) (any, error) { return nil, err },
		"a result":   func(error) (any, error) { return "done", nil },
		"a question": func(error) (any, error) { return nil, choose("a", "b") },
		"a decision": func(error) (any, error) { return nil, interrupt.ErrDeclined },
	} {
		for _, when := range []string{"before the mark", "before the result"} {
			t.Run(name+", "+when, func(t *testing.T) {
				memory := newMem()
				stalled := &faulty{Store: memory}
				var first, second counter
				var ended error
				took := false // the successor took over, and did not come to its step yet
				tool := func(effects *counter, stall func(at string), returns func(err error) (any, error)) *gate.Tool {
					return raw("tool", func(ctx context.Context) (any, error) {
						stall("before the mark")
						got, err := interrupt.Once(ctx, "a", func(context.Context, string) (string, error) {
							effects.add()
							stall("before the result")
							return "x", nil
						}, nil)
						if returns == nil {
							return got, err
						}
						if err == nil || ctx.Err() == nil {
							t.Errorf("the step returned %v, the context's error is %v", err, ctx.Err())
						}
						ended = err
						return returns(err)
					}, &gate.ToolOptions{Replay: gate.Repeatable})
				}
				successor := open(t, memory, gate.Options{Tools: []*gate.Tool{tool(&second, func(at string) {
					if at == when && !took {
						took = true
						panic("no further")
					}
				}, nil)}})
				var late error
				g := open(t, stalled, gate.Options{Tools: []*gate.Tool{tool(&first, func(at string) {
					if at == when {
						stalled.crash()
						_, late = successor.Invoke(t.Context(), starting())
					}
				}, returns)}})
				mustFail(t, g, starting(), gate.ErrOutcomeUnknown)
				if !errors.Is(ended, gate.ErrOutcomeUnknown) {
					t.Errorf("the step returned %v", ended)
				}
				if when == "before the mark" {
					wantCode(t, "the successor", late, gate.ErrFailed)
					mustFinish(t, successor, starting(), `"x"`)
					first.want(t, 0)
					second.want(t, 1)
					return
				}
				wantCode(t, "the successor", late, gate.ErrOutcomeUnknown)
				mustFail(t, successor, starting(), gate.ErrOutcomeUnknown) // the late result is not there
				first.want(t, 1)
				second.want(t, 0)
			})
		}
	}
}

// R4, O6: a step that is run once more because it was found undone takes the claim's epoch first,
// so that it does not run for an owner that has lost the claim.
func TestCheckedStepIsFenced(t *testing.T) {
	store := &faulty{Store: newMem()}
	var effects counter
	g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		return interrupt.Once(ctx, "a", effect(&effects, "", errPrivate), &interrupt.OnceOptions[string]{
			Check: func(context.Context, string) (string, bool, error) {
				store.crash()
				return "", false, nil
			},
		})
	}, &gate.ToolOptions{Replay: gate.Repeatable})}})
	mustFail(t, g, starting(), gate.ErrFailed)
	mustFail(t, g, starting(), gate.ErrOutcomeUnknown)
	effects.want(t, 1)
}

// R4, R1: a step that panics is begun, and its handler has failed.
func TestStepPanics(t *testing.T) {
	var effects counter
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		return interrupt.Once(ctx, "a", func(context.Context, string) (string, error) {
			effects.add()
			panic("no")
		}, nil)
	}, &gate.ToolOptions{Replay: gate.Repeatable}))
	e := mustFail(t, g, starting(), gate.ErrFailed)
	var panicked *gate.PanicError
	if !errors.As(e, &panicked) {
		t.Errorf("cause %v", errors.Unwrap(e))
	}
	mustFail(t, g, starting(), gate.ErrOutcomeUnknown)
	effects.want(t, 1)
}
