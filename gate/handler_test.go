package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// raw makes a tool of a function that takes no arguments.
func raw(name string, f func(ctx context.Context) (any, error), opts *gate.ToolOptions) *gate.Tool {
	return gate.NewRawTool(name, func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		result, err := f(ctx)
		if err != nil {
			return json.RawMessage(`"a result beside an error"`), err
		}
		return json.Marshal(result)
	}, opts)
}

func choose(titles ...string) *interrupt.UserSelectionInterrupt {
	var choices []interrupt.UserChoice
	for _, title := range titles {
		choices = append(choices, interrupt.UserChoice{Title: title})
	}
	return interrupt.UserSelection(choices...)
}

var errPrivate = errors.New("password of the database is hunter2")

// R1: what an error is, is decided by what stands at the leaves of its tree.
func TestWhatAnErrorIs(t *testing.T) {
	question := func() error { return choose("a", "b") }
	for name, test := range map[string]struct {
		err       error
		questions int // where it is a prompt
		code      gate.Code
	}{
		"an interrupt is a prompt":                              {err: question(), questions: 1},
		"a wrapped interrupt is a prompt":                       {err: fmt.Errorf("deploying: %w", fmt.Errorf("deeper: %w", question())), questions: 1},
		"joined interrupts are one prompt":                      {err: errors.Join(question(), fmt.Errorf("x: %w", interrupt.URL("see", "https://example.com"))), questions: 2},
		"an error is a failure":                                 {err: errPrivate, code: gate.ErrFailed},
		"an interrupt joined with a failed rollback is neither": {err: errors.Join(question(), errPrivate), code: gate.ErrInvalidQuestion},
		"a sentinel wrapped beside an interrupt is neither":     {err: fmt.Errorf("%w: %w", errPrivate, question()), code: gate.ErrInvalidQuestion},
		"a decision beside an interrupt is neither":             {err: errors.Join(interrupt.ErrDeclined, question()), code: gate.ErrInvalidQuestion},
		"rejected":                     {err: interrupt.ErrRejected, code: gate.ErrRejected},
		"declined, wrapped":            {err: fmt.Errorf("asking: %w", interrupt.ErrDeclined), code: gate.ErrDeclined},
		"cancelled":                    {err: interrupt.ErrCancelled, code: gate.ErrCancelled},
		"cancelled outweighs declined": {err: errors.Join(interrupt.ErrCancelled, interrupt.ErrDeclined), code: gate.ErrCancelled},
		"a decision beside another error is failure": {err: errors.Join(interrupt.ErrDeclined, errPrivate), code: gate.ErrFailed},
	} {
		t.Run(name, func(t *testing.T) {
			g := openMem(t, raw("tool", func(context.Context) (any, error) { return nil, test.err }, nil))
			if test.questions > 0 {
				if p := mustAsk(t, g, call("tool", `{}`)); len(p.Questions) != test.questions {
					t.Errorf("want %d questions, have %d", test.questions, len(p.Questions))
				}
				return
			}
			e := mustFail(t, g, call("tool", `{}`), test.code)
			var question interrupt.Interrupt
			if errors.As(e, &question) {
				t.Error("a refused question can be found in the error, as if it could be asked")
			}
			if list, err := g.List(t.Context(), gate.ListQuery{AllScopes: true}); err != nil || len(list.Interactions) != 0 {
				t.Errorf("something was stored: %v, %v", list, err)
			}
		})
	}
}

// R1: a mixed tree names the other leaf, to the host.
func TestMixedTreeNamesTheOtherLeaf(t *testing.T) {
	g := openMem(t, raw("tool", func(context.Context) (any, error) { return nil, errors.Join(choose("a", "b"), errPrivate) }, nil))
	if e := mustFail(t, g, call("tool", `{}`), gate.ErrInvalidQuestion); !errors.Is(e, errPrivate) {
		t.Errorf("the cause does not hold the other leaf: %v", errors.Unwrap(e))
	}
}

// R1: a failure keeps its private cause for the host, and tells the caller only what the tool made
// public.
func TestFailureIsPrivate(t *testing.T) {
	public := &interrupt.Failure{Text: "the region is full", Link: "https://status.example.com", Err: errPrivate}
	g := openMem(t,
		raw("private", func(context.Context) (any, error) { return nil, fmt.Errorf("connect: %w", errPrivate) }, nil),
		raw("public", func(context.Context) (any, error) { return nil, fmt.Errorf("deploy: %w", public) }, nil))
	e := mustFail(t, g, call("private", `{}`), gate.ErrFailed)
	if e.Error() != "failed: the tool failed" || !errors.Is(e, errPrivate) {
		t.Errorf("text %q, cause %v", e.Error(), errors.Unwrap(e))
	}
	e = mustFail(t, g, call("public", `{}`), gate.ErrFailed)
	if e.Message != public.Text || e.Link != public.Link || !errors.Is(e, errPrivate) {
		t.Errorf("message %q, link %q", e.Message, e.Link)
	}
}

// R2: a handler that asks in a row is run again from the top with all answers so far, each given to
// its own question.
func TestQuestionsInARow(t *testing.T) {
	type result struct{ Region, Size string }
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		region, err := interrupt.Ask(ctx, choose("eu", "us"))
		if err != nil {
			return nil, err
		}
		size, err := interrupt.Ask(ctx, choose("small", "large"))
		if err != nil {
			return nil, err
		}
		return result{region.ConfirmedChoice.Title, size.ConfirmedChoice.Title}, nil
	}, nil))
	c := call("tool", `{}`)
	p := mustAsk(t, g, c)
	p = mustAsk(t, g, with(c, p, `{"selectionIdx":1}`))
	if p.Round != 2 {
		t.Errorf("want round 2, have %d", p.Round)
	}
	mustFinish(t, g, with(c, p, `{"selectionIdx":0}`), `{"Region":"us","Size":"small"}`)
}

// R2: a question that changed between runs is a new question; the old answer is not given to it.
func TestChangedQuestionIsANewOne(t *testing.T) {
	runs := 0
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		runs++
		picked, err := interrupt.Ask(ctx, choose("a", "b", fmt.Sprintf("run %d", min(runs, 2))))
		if err != nil {
			return nil, err
		}
		return picked.ConfirmedChoice.Title, nil
	}, nil))
	c := call("tool", `{}`)
	first := mustAsk(t, g, c)
	second := mustAsk(t, g, with(c, first, `{"selectionIdx":2}`))
	mustFinish(t, g, with(c, second, `{"selectionIdx":2}`), `"run 2"`)
}

// R2: equal questions are told apart by their occurrence, a keyed one by its key although it shows
// something else.
func TestMatching(t *testing.T) {
	runs := 0
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		runs++
		var picked []string
		for range 2 {
			answered, err := interrupt.Ask(ctx, choose("a", "b"))
			if err != nil {
				return nil, err
			}
			picked = append(picked, answered.ConfirmedChoice.Title)
		}
		keyed := choose("x", fmt.Sprintf("at run %d", runs))
		keyed.Key = "the one"
		answered, err := interrupt.Ask(ctx, keyed)
		if err != nil {
			return nil, err
		}
		return append(picked, answered.ConfirmedChoice.Title), nil
	}, nil))
	c := call("tool", `{}`)
	p := mustAsk(t, g, c)
	p = mustAsk(t, g, with(c, p, `{"selectionIdx":0}`))
	p = mustAsk(t, g, with(c, p, `{"selectionIdx":1}`))
	mustFinish(t, g, with(c, p, `{"selectionIdx":1}`), `["a","b","at run 3"]`)
}

// R2: one answer is never given to two questions, nor a permission for one tool to another, because
// they have one key.
func TestKeyIsAskedOnce(t *testing.T) {
	permit := func(tool string) *interrupt.ToolPermissionInterrupt {
		p := interrupt.ToolPermission(tool, "May I?")
		p.Key = "the key"
		return p
	}
	for name, second := range map[string]*interrupt.ToolPermissionInterrupt{
		"twice in a run":      permit("read"),
		"of another tool too": permit("drop"),
	} {
		var effects counter
		g := openMem(t, raw("twice", func(ctx context.Context) (any, error) {
			for _, q := range []*interrupt.ToolPermissionInterrupt{permit("read"), second} {
				if _, err := interrupt.Ask(ctx, q); err != nil {
					return nil, err
				}
			}
			effects.add()
			return nil, nil
		}, nil))
		c := call("twice", `{}`)
		t.Log(name)
		mustFail(t, g, with(c, mustAsk(t, g, c), allow), gate.ErrInvalidQuestion)
		effects.want(t, 0)
	}
	runs := 0
	g := openMem(t, raw("changes", func(ctx context.Context) (any, error) {
		runs++
		_, err := interrupt.Ask(ctx, permit([]string{"read", "drop"}[runs-1]))
		return nil, err
	}, nil))
	c := call("changes", `{}`)
	mustFail(t, g, with(c, mustAsk(t, g, c), allow), gate.ErrInvalidQuestion)
}

// R2: Ask fails closed, and a handler that wants to go on looks with errors.Is.
func TestAskFailsClosed(t *testing.T) {
	for name, test := range map[string]struct {
		payload string
		code    gate.Code
	}{
		"reject":  {`{"optionId":"reject_once"}`, gate.ErrRejected},
		"decline": {`{"action":"decline"}`, gate.ErrDeclined},
		"cancel":  {`{"action":"cancel"}`, gate.ErrCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			g := openMem(t, deploy(&effects, nil), raw("goes on", func(ctx context.Context) (any, error) {
				_, err := interrupt.Ask(ctx, interrupt.ToolPermission("x", ""))
				if errors.Is(err, interrupt.ErrRejected) || errors.Is(err, interrupt.ErrDeclined) || errors.Is(err, interrupt.ErrCancelled) {
					return "without", nil
				}
				return "with", err
			}, nil))
			c := call("deploy", `{"service":"api"}`)
			e := mustFail(t, g, with(c, mustAsk(t, g, c), test.payload), test.code)
			effects.want(t, 0)
			if e.Interaction.IsZero() {
				t.Error("the error does not name the interaction")
			}
			c = call("goes on", `{}`)
			mustFinish(t, g, with(c, mustAsk(t, g, c), test.payload), `"without"`)
		})
	}
}

// R2: several questions at once are one prompt, and come back in their order.
func TestAskAll(t *testing.T) {
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		answered, err := interrupt.AskAll(ctx, choose("a", "b"), interrupt.ToolPermission("x", ""), choose("a", "b"))
		if err != nil {
			return nil, err
		}
		first, last := answered[0].(*interrupt.UserSelectionInterrupt), answered[2].(*interrupt.UserSelectionInterrupt)
		return first.ConfirmedChoice.Title + last.ConfirmedChoice.Title, nil
	}, nil))
	c := call("tool", `{}`)
	p := mustAsk(t, g, c)
	mustFinish(t, g, with(c, p, `{"selectionIdx":1}`, allow, `{"selectionIdx":0}`), `"ba"`)
	p = mustAsk(t, g, c)
	mustFail(t, g, with(c, p, `{"selectionIdx":1}`, reject, `{"action":"decline"}`), gate.ErrDeclined)
}

// R2: a handler that asked and then returned success swallowed its question.
func TestSwallowedQuestion(t *testing.T) {
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		_, _ = interrupt.Ask(ctx, choose("a", "b"))
		return "done", nil
	}, nil))
	mustFail(t, g, call("tool", `{}`), gate.ErrInvalidQuestion)
}

// R3: a handler reads the verified resume itself, detached; R6: its private state comes back to it
// alone, and null is a state.
func TestResumeFrom(t *testing.T) {
	for name, state := range map[string]json.RawMessage{"an object": json.RawMessage(`{"n":1}`), "null": json.RawMessage(`null`), "none": nil} {
		t.Run(name, func(t *testing.T) {
			var seen []interrupt.Resume
			g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
				if r, ok := interrupt.ResumeFrom(ctx); ok {
					seen = append(seen, r)
					r.Answers[0].Payload[0] = 'X' // its own copy
					again, _ := interrupt.ResumeFrom(ctx)
					seen = append(seen, again)
					return nil, nil
				}
				if state == nil {
					return nil, choose("a", "b")
				}
				return nil, interrupt.WithState(choose("a", "b"), state)
			}, nil))
			c := call("tool", `{}`)
			p := mustAsk(t, g, c)
			shown, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			if state != nil && string(state) != "null" && json.Valid(shown) && contains(shown, state) {
				t.Errorf("private state is shown: %s", shown)
			}
			mustFinish(t, g, with(c, p, `{"selectionIdx":1}`), `null`)
			want := interrupt.Resume{Round: 1, Attempt: 1, State: state, Answers: []interrupt.Answered{{
				InterruptID: p.Questions[0].ID, Type: interrupt.TypeUserSelection, Action: interrupt.ActionAccept,
				Payload: json.RawMessage(`{"action":"accept","interruptId":"` + p.Questions[0].ID + `","selectionIdx":1}`),
			}}}
			if diff := cmp.Diff(want, seen[1]); diff != "" {
				t.Errorf("resume (-want +have):\n%s", diff)
			}
		})
	}
}

func contains(whole, part []byte) bool {
	for i := range whole {
		if i+len(part) <= len(whole) && string(whole[i:i+len(part)]) == string(part) {
			return true
		}
	}
	return false
}

// R6: state that is not JSON makes the prompt invalid; empty bytes are not JSON.
func TestStateMustBeJSON(t *testing.T) {
	for _, state := range []string{"", "{", "1 2"} {
		g := openMem(t, raw("tool", func(context.Context) (any, error) {
			return nil, interrupt.WithState(choose("a", "b"), json.RawMessage(state))
		}, nil))
		mustFail(t, g, call("tool", `{}`), gate.ErrInvalidQuestion)
	}
}

// R3: a nested call inherits nothing of the outer one's resume, and neither do the host's
// callbacks.
func TestNestedCallInheritsNothing(t *testing.T) {
	var g *gate.Gate
	inner := raw("inner", func(ctx context.Context) (any, error) {
		if _, ok := interrupt.ResumeFrom(ctx); ok {
			return "inherited", nil
		}
		_, err := interrupt.Ask(ctx, choose("a", "b"))
		return nil, err
	}, &gate.ToolOptions{Authorize: func(ctx context.Context, _ gate.Execution) error {
		if _, ok := interrupt.ResumeFrom(ctx); ok {
			return errors.New("inherited")
		}
		return nil
	}})
	outer := raw("outer", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		outcome, err := g.Invoke(ctx, call("inner", `{}`))
		if err != nil {
			return nil, err
		}
		return outcome.Prompt != nil, nil
	}, nil)
	g = openMem(t, inner, outer)
	c := call("outer", `{}`)
	mustFinish(t, g, with(c, mustAsk(t, g, c), `{"selectionIdx":0}`), `true`)
}

// R3: after the handler returned, its context is no good for asking.
func TestAskAfterReturn(t *testing.T) {
	var leaked context.Context
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		leaked = ctx
		return nil, nil
	}, nil))
	mustFinish(t, g, call("tool", `{}`), `null`)
	if _, err := interrupt.Ask(leaked, choose("a", "b")); !errors.Is(err, interrupt.ErrRunEnded) {
		t.Errorf("want ErrRunEnded, have %v", err)
	}
}

// R5: a handler can ask what the host can show; R13: what it cannot show is not stored, and the
// tool's guidance is told.
func TestFacilities(t *testing.T) {
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{
		raw("looks", func(ctx context.Context) (any, error) {
			return []bool{interrupt.Supports(ctx, interrupt.FacilityForm), interrupt.Supports(ctx, interrupt.FacilityURL)}, nil
		}, nil),
		raw("asks", func(context.Context) (any, error) { return nil, choose("a", "b") },
			&gate.ToolOptions{Guidance: "use the console", Link: "https://console.example.com"}),
		raw("needs", func(context.Context) (any, error) { return "ran", nil },
			&gate.ToolOptions{Needs: []interrupt.Facility{interrupt.FacilityURL}}),
	}})
	only := func(tool string, facilities ...interrupt.Facility) gate.Call {
		c := call(tool, `{}`)
		c.Facilities = facilities
		return c
	}
	mustFinish(t, g, only("looks", interrupt.FacilityForm), `[true,false]`)
	mustFinish(t, g, only("looks"), `[false,false]`)
	e := mustFail(t, g, only("asks", interrupt.FacilityForm), gate.ErrConfirmationRequired)
	if e.Message != "use the console" || e.Link != "https://console.example.com" {
		t.Errorf("guidance: %q, link %q", e.Message, e.Link)
	}
	if e.Missing != interrupt.FacilitySelection {
		t.Errorf("missing: %q", e.Missing)
	}
	e = mustFail(t, g, only("needs", interrupt.FacilityForm), gate.ErrConfirmationRequired)
	if e.Missing != interrupt.FacilityURL {
		t.Errorf("missing: %q", e.Missing)
	}
	mustFinish(t, g, only("needs", interrupt.FacilityURL), `"ran"`)
	if durable, _ := store.counts(); durable != 0 {
		t.Errorf("%d commits for questions that could not be shown", durable)
	}
	outcome, err := g.Invoke(t.Context(), only("asks", interrupt.FacilityOutOfBand))
	if err != nil || outcome.Prompt == nil || !outcome.OutOfBand {
		t.Errorf("out of band: %+v, %v", outcome, err)
	}
	if list, err := g.List(t.Context(), gate.ListQuery{Scope: "ann", Statuses: []checkpoint.Status{checkpoint.Open}}); err != nil || len(list.Interactions) != 1 {
		t.Errorf("out of band: want one open question, have %v, %v", list, err)
	}
}

// A face finds the gate's tools by their names, and learns the type of their results.
func TestToolOfGate(t *testing.T) {
	typed := gate.NewTool("typed", func(context.Context, struct{}) (map[string]int, error) { return nil, nil }, nil)
	untyped := gate.NewRawTool("untyped", func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }, nil)
	g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{typed, untyped}})
	if g.Tool("typed") != typed || g.Tool("untyped") != untyped || g.Tool("none") != nil {
		t.Error("another tool")
	}
	if got := typed.Output(); got != reflect.TypeFor[map[string]int]() || untyped.Output() != nil {
		t.Errorf("results of type %v and %v", got, untyped.Output())
	}
}
