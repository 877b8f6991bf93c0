package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// effect is a step that has an effect, and fails with err.
func effect(effects *counter, result string, err error) func(ctx context.Context, stepID string) (string, error) {
	return func(context.Context, string) (string, error) {
		effects.add()
		return result, err
	}
}

// starting is a call with a start ID, which can come again at any time.
func starting() gate.Call {
	c := call("tool", `{}`)
	c.StartID = "work"
	return c
}

// R4: a finished step is not repeated, neither in the same run, nor in the next attempt, nor in a
// later round, nor in recovery; what Once returns is the same each time.
func TestFinishedStepIsNotRepeated(t *testing.T) {
	for name, opts := range map[string]*interrupt.OnceOptions[string]{"default": nil, "idempotent": {Idempotent: true}} {
		for _, replay := range []gate.Replay{gate.Repeatable, gate.Recover} {
			t.Run(fmt.Sprint(name, " ", replay), func(t *testing.T) {
				var first, second, runs counter
				ids := map[string]bool{}
				g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
					runs.add()
					for range 2 {
						got, err := interrupt.Once(ctx, "first", func(_ context.Context, stepID string) (string, error) {
							first.add()
							ids[stepID] = true
							return fmt.Sprint("run ", runs.n), nil
						}, opts)
						if err != nil || got != "run 1" {
							return nil, fmt.Errorf("first step: %q, %w", got, err)
						}
					}
					r, _ := interrupt.ResumeFrom(ctx)
					if !r.Recovery {
						if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
							return nil, err
						}
					}
					got, err := interrupt.Once(ctx, "second", effect(&second, "x", nil), opts)
					if err == nil && runs.n < 3 {
						err = errPrivate
					}
					return got, err
				}, &gate.ToolOptions{Replay: replay}))
				c := call("tool", `{}`)
				p := mustAsk(t, g, c)
				mustFail(t, g, with(c, p, `{"selectionIdx":0}`), gate.ErrFailed)
				mustFinish(t, g, with(c, p, `{"selectionIdx":0}`), `"x"`)
				runs.want(t, 3)
				first.want(t, 1)
				second.want(t, 1)
				if len(ids) != 1 {
					t.Errorf("step IDs are %v", ids)
				}
			})
		}
	}
}

// R4, O4 to O7: what a step that failed is in the next run. Its error is the handler's, and the
// mark, not the error, decides.
func TestStepThatFailed(t *testing.T) {
	found := func(done bool, err error) func(context.Context, string) (string, bool, error) {
		return func(context.Context, string) (string, bool, error) { return "found", done, err }
	}
	for name, test := range map[string]struct {
		opts    *interrupt.OnceOptions[string]
		code    gate.Code // of the second request; empty: it finishes
		result  string
		effects int
	}{
		"default":                    {nil, gate.ErrOutcomeUnknown, "", 1},
		"idempotent":                 {&interrupt.OnceOptions[string]{Idempotent: true}, "", `"done"`, 2},
		"the check finds it done":    {&interrupt.OnceOptions[string]{Check: found(true, nil)}, "", `"found"`, 1},
		"the check finds it undone":  {&interrupt.OnceOptions[string]{Check: found(false, nil)}, "", `"done"`, 2},
		"the check cannot tell":      {&interrupt.OnceOptions[string]{Check: found(true, errPrivate)}, gate.ErrFailed, "", 1},
		"the check does not know it": {&interrupt.OnceOptions[string]{Check: found(true, interrupt.ErrOutcomeUnknown)}, gate.ErrOutcomeUnknown, "", 1},
		"the check asks":             {&interrupt.OnceOptions[string]{Check: found(false, choose("a", "b"))}, gate.ErrFailed, "", 1},
		"the check finds far too much": {&interrupt.OnceOptions[string]{Check: func(context.Context, string) (string, bool, error) {
			return strings.Repeat("x", 1<<16), true, nil
		}}, gate.ErrFailed, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			ids := map[string]bool{}
			g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
				return interrupt.Once(ctx, "step", func(_ context.Context, stepID string) (string, error) {
					effects.add()
					ids[stepID] = true
					if effects.n == 1 {
						return "", errPrivate
					}
					return "done", nil
				}, test.opts)
			}, &gate.ToolOptions{Replay: gate.Repeatable}))
			if e := mustFail(t, g, starting(), gate.ErrFailed); !errors.Is(e, errPrivate) {
				t.Errorf("the step's error is lost: %v", errors.Unwrap(e))
			}
			if test.code != "" {
				mustFail(t, g, starting(), test.code)
				mustFail(t, g, starting(), test.code) // and stays so
			} else {
				mustFinish(t, g, starting(), test.result)
			}
			effects.want(t, test.effects)
			if len(ids) != 1 {
				t.Errorf("step IDs are %v", ids)
			}
		})
	}
}

// R4, R36, H4u: a handler that returns the unknown outcome of a step unchanged ends with it, also
// where the tool chose nothing for an answer that comes again; one that does not may go on.
func TestUnknownOutcomeIsTold(t *testing.T) {
	var effects counter
	unknown := func(ctx context.Context) error {
		_, err := interrupt.Once(ctx, "step", effect(&effects, "", errPrivate), nil)
		if err == nil || errors.Is(err, interrupt.ErrOutcomeUnknown) {
			return fmt.Errorf("a failure is no unknown outcome: %w", err)
		}
		_, err = interrupt.Once(ctx, "step", effect(&effects, "", nil), nil)
		var step *interrupt.StepError
		if !errors.As(err, &step) || step.Key != "step" {
			return fmt.Errorf("the step is not named: %w", err)
		}
		return err
	}
	g := openMem(t,
		raw("tool", func(ctx context.Context) (any, error) { return nil, fmt.Errorf("shipping: %w", unknown(ctx)) }, nil),
		raw("goes on", func(ctx context.Context) (any, error) {
			if err := unknown(ctx); !errors.Is(err, interrupt.ErrOutcomeUnknown) {
				return nil, err
			}
			return "looked it up", nil
		}, nil),
		raw("asks", func(ctx context.Context) (any, error) { return nil, errors.Join(unknown(ctx), choose("a", "b")) }, nil),
		raw("rolls back", func(ctx context.Context) (any, error) { return nil, errors.Join(unknown(ctx), errPrivate) }, nil))
	e := mustFail(t, g, starting(), gate.ErrOutcomeUnknown)
	if !errors.Is(e, interrupt.ErrOutcomeUnknown) || e.Interaction.IsZero() || !strings.Contains(e.Message, `"work"`) {
		t.Errorf("have %+v", e)
	}
	if e := mustFail(t, g, starting(), gate.ErrOutcomeUnknown); e.Ended != gate.ErrOutcomeUnknown { // E3
		t.Errorf("it ended with %q", e.Ended)
	}
	mustFinish(t, g, call("goes on", `{}`), `"looked it up"`)
	mustFail(t, g, call("asks", `{}`), gate.ErrInvalidQuestion)
	mustFail(t, g, call("rolls back", `{}`), gate.ErrFailed)
	effects.want(t, 4)
}

// R4: what cannot be a step is refused by name and does not run, or is not recorded.
func TestStepIsRefused(t *testing.T) {
	type step struct {
		key  string
		fn   func(ctx context.Context, stepID string) (any, error)
		opts *interrupt.OnceOptions[any]
	}
	check := func(context.Context, string) (any, bool, error) { return nil, false, nil }
	for name, test := range map[string]struct {
		step step
		runs bool
	}{
		"no key":               {step{key: ""}, false},
		"a key too long":       {step{key: strings.Repeat("x", 1<<10+1)}, false},
		"a key of other bytes": {step{key: "\xff"}, false},
		"idempotent and a check": {step{
			key: "a", opts: &interrupt.OnceOptions[any]{Idempotent: true, Check: check}}, false},
		"a result that is no JSON": {step{key: "a", fn: func(context.Context, string) (any, error) { return func() {}, nil }}, true},
		"a result too large": {step{key: "a", fn: func(context.Context, string) (any, error) {
			return strings.Repeat("x", 1<<16-1), nil
		}}, true},
		"a question is returned": {step{key: "a", fn: func(context.Context, string) (any, error) { return nil, choose("a", "b") }}, true},
		"a question is returned beside an error": {step{key: "a", fn: func(context.Context, string) (any, error) {
			return nil, errors.Join(errPrivate, choose("a", "b"))
		}}, true},
		"a question is asked": {step{key: "a", fn: func(ctx context.Context, _ string) (any, error) {
			_, err := interrupt.Ask(ctx, choose("a", "b"))
			var question interrupt.Interrupt
			if errors.As(err, &question) {
				return nil, errors.New("it could be returned as a question")
			}
			return nil, err
		}}, true},
		"questions are asked": {step{key: "a", fn: func(ctx context.Context, _ string) (any, error) {
			_, err := interrupt.AskAll(ctx, choose("a", "b"), choose("c", "d"))
			var question interrupt.Interrupt
			if errors.As(err, &question) {
				return nil, errors.New("they could be returned as questions")
			}
			return nil, err
		}}, true},
		"a step inside": {step{key: "a", fn: func(ctx context.Context, _ string) (any, error) {
			return interrupt.Once(ctx, "b", func(context.Context, string) (any, error) {
				panic("it ran")
			}, nil)
		}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var runs counter
			g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
				return interrupt.Once(ctx, test.step.key, func(ctx context.Context, stepID string) (any, error) {
					runs.add()
					if test.step.fn == nil {
						return nil, nil
					}
					return test.step.fn(ctx, stepID)
				}, test.step.opts)
			}, &gate.ToolOptions{Replay: gate.Repeatable}))
			e := mustFail(t, g, starting(), gate.ErrFailed)
			var refused *interrupt.StepError
			if !errors.As(e, &refused) || !errors.Is(e, interrupt.ErrInvalidStep) {
				t.Fatalf("cause %v", errors.Unwrap(e))
			}
			var question interrupt.Interrupt
			if errors.As(e, &question) {
				t.Error("the question can still be found")
			}
			if refused.Key != test.step.key && refused.Key != "b" {
				t.Errorf("step %q is named", refused.Key)
			}
			if !test.runs {
				runs.want(t, 0)
				return
			}
			// Its effect may exist: it is not repeated.
			mustFail(t, g, starting(), gate.ErrOutcomeUnknown)
			runs.want(t, 1)
		})
	}
}

// R4: a step without a function is refused, before its mark.
func TestStepWithoutFunction(t *testing.T) {
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		return interrupt.Once[string](ctx, "a", nil, nil)
	}, nil)}})
	if e := mustFail(t, g, call("tool", `{}`), gate.ErrFailed); !errors.Is(e, interrupt.ErrInvalidStep) {
		t.Errorf("cause %v", errors.Unwrap(e))
	}
	if n, _ := store.counts(); n != 0 {
		t.Errorf("%d commits", n)
	}
}

// R4: on a context that no gate made a step does not run. A tool that is invoked inside a step has
// steps and questions of its own.
func TestStepOfWhichRun(t *testing.T) {
	var effects counter
	if _, err := interrupt.Once(t.Context(), "a", effect(&effects, "", nil), nil); !errors.Is(err, interrupt.ErrInvalidStep) {
		t.Errorf("without a gate: %v", err)
	}
	effects.want(t, 0)
	var g *gate.Gate
	ids := map[string]bool{}
	g = openMem(t,
		raw("inner", func(ctx context.Context) (any, error) {
			got, err := interrupt.Once(ctx, "a", func(_ context.Context, stepID string) (string, error) {
				effects.add()
				ids[stepID] = true
				return "inner", nil
			}, nil)
			if err != nil {
				return nil, err
			}
			_, err = interrupt.Ask(ctx, choose("a", "b"))
			return got, err
		}, nil),
		raw("outer", func(ctx context.Context) (any, error) {
			return interrupt.Once(ctx, "a", func(ctx context.Context, stepID string) (string, error) {
				effects.add()
				ids[stepID] = true
				outcome, err := g.Invoke(ctx, call("inner", `{}`))
				if err != nil || outcome.Prompt == nil {
					return "", fmt.Errorf("inner call: %+v, %w", outcome, err)
				}
				return "outer", nil
			}, nil)
		}, nil))
	mustFinish(t, g, call("outer", `{}`), `"outer"`)
	effects.want(t, 2)
	if len(ids) != 2 {
		t.Errorf("steps of two interactions have the IDs %v", ids)
	}
}

// R4: what Once returns is what JSON keeps of the result, in the first run as in every other.
func TestStepResultIsWhatJSONKeeps(t *testing.T) {
	type result struct {
		Shown  json.RawMessage
		hidden string
		N      any
	}
	runs := 0
	var have []result
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		runs++
		got, err := interrupt.Once(ctx, "a", func(context.Context, string) (result, error) {
			return result{json.RawMessage(`{"a": "<"}`), "lost", 1}, nil
		}, nil)
		if err != nil {
			return nil, err
		}
		have = append(have, got)
		nothing, err := interrupt.Once(ctx, "b", func(context.Context, string) (*result, error) { return nil, nil }, nil)
		if err != nil || nothing != nil {
			return nil, fmt.Errorf("nil is %v, %w", nothing, err)
		}
		large := strings.Repeat("x", 1<<16-2) // with its quotes as large as it may be
		if got, err := interrupt.Once(ctx, large[:1<<10], effect(new(counter), large, nil), nil); err != nil || got != large {
			return nil, fmt.Errorf("large is %d bytes, %w", len(got), err)
		}
		if runs == 1 {
			return nil, errPrivate
		}
		return "done", nil
	}, &gate.ToolOptions{Replay: gate.Repeatable}))
	mustFail(t, g, starting(), gate.ErrFailed)
	mustFinish(t, g, starting(), `"done"`)
	want := result{json.RawMessage(`{"a":"<"}`), "", 1.0}
	if diff := cmp.Diff([]result{want, want}, have, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
}

// R4: a recorded result that the type of today cannot hold is refused, not half read.
func TestStepOfAnotherType(t *testing.T) {
	runs := 0
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		if runs++; runs == 1 {
			_, err := interrupt.Once(ctx, "a", func(context.Context, string) (string, error) { return "text", nil }, nil)
			return nil, errors.Join(err, errPrivate)
		}
		return interrupt.Once(ctx, "a", func(context.Context, string) (int, error) { panic("it ran") }, nil)
	}, &gate.ToolOptions{Replay: gate.Repeatable}))
	mustFail(t, g, starting(), gate.ErrFailed)
	if e := mustFail(t, g, starting(), gate.ErrFailed); !errors.Is(e, interrupt.ErrInvalidStep) {
		t.Errorf("cause %v", errors.Unwrap(e))
	}
}

// R4, R31: a step before the first prompt creates the interaction's record, which ends with the run
// and goes on with its prompt; so the step is not repeated after the answer.
func TestStepBeforeTheFirstPrompt(t *testing.T) {
	var effects counter
	asks := true
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		got, err := interrupt.Once(ctx, "a", effect(&effects, "x", nil), nil)
		if err != nil || !asks {
			return got, err
		}
		_, err = interrupt.Ask(ctx, choose("a", "b"))
		return got, err
	}, nil))
	for _, join := range []bool{false, true} {
		c := call("tool", `{}`)
		c.Join = join
		asks = true
		p := mustAsk(t, g, c)
		if join {
			if again := mustAsk(t, g, c); again.Token != p.Token {
				t.Error("it cannot be joined")
			}
		}
		mustFinish(t, g, with(c, p, `{"selectionIdx":0}`), `"x"`)
		asks = false
		outcome, err := g.Invoke(t.Context(), c)
		if err != nil || outcome.Interaction.IsZero() || outcome.Interaction == p.Interaction {
			t.Errorf("without a prompt: %+v, %v", outcome, err)
		}
		s, err := g.InspectID(t.Context(), "ann", outcome.Interaction)
		if err != nil || s.Status != checkpoint.Finished {
			t.Errorf("it is %+v, %v", s, err)
		}
	}
	effects.want(t, 4)
}

// R4: a store's rows tell nothing of a step's key, and hold no more than one step.
func TestStepRows(t *testing.T) {
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		for _, key := range []string{"secret a", "secret b"} {
			if _, err := interrupt.Once(ctx, key, func(context.Context, string) (string, error) { return key, nil }, nil); err != nil {
				return nil, err
			}
		}
		return "done", nil
	}, nil)}})
	outcome, err := g.Invoke(t.Context(), call("tool", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := store.Rows(t.Context(), outcome.Interaction, "", 10)
	if err != nil || len(rows) != 2 {
		t.Fatalf("rows %v, %v", rows, err)
	}
	for _, row := range rows {
		step, err := checkpoint.DecodeStep(row)
		if err != nil || strings.Contains(row.Name, "secret") || strings.Contains(step.ID, "secret") || string(step.Result) != `"`+step.Key+`"` {
			t.Errorf("row %q holds %+v, %v", row.Name, step, err)
		}
	}
}
