package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// twoRounds asks twice and counts its runs and its effect.
func twoRounds(runs, effects *counter, opts *gate.ToolOptions) *gate.Tool {
	return raw("tool", func(ctx context.Context) (any, error) {
		runs.add()
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "")); err != nil {
			return nil, err
		}
		effects.add()
		return "done", nil
	}, opts)
}

// R26: the same answer again while the next prompt is open gives the same prompt, token and
// deadline; the handler does not run. R28: another answer is a conflict, at any time after.
func TestReplayWhileTheNextPromptIsOpen(t *testing.T) {
	var runs, effects counter
	authorized := 0
	g := openMem(t, twoRounds(&runs, &effects, &gate.ToolOptions{Authorize: func(context.Context, gate.Execution) error {
		authorized++
		return nil
	}}))
	c := call("tool", `{}`)
	p1 := mustAsk(t, g, c)
	first := with(c, p1, `{"selectionIdx":0}`)
	p2 := mustAsk(t, g, first)
	runs.want(t, 2)
	was := authorized
	again := mustAsk(t, g, first)
	if again.Token != p2.Token || again.Round != 2 || !again.Expires.Equal(p2.Expires) || again.Questions[0].ID != p2.Questions[0].ID {
		t.Errorf("replay gives %+v, was %+v", again, p2)
	}
	if authorized == was {
		t.Error("the replay was not authorized anew")
	}
	runs.want(t, 2)
	mustFail(t, g, with(c, p1, `{"selectionIdx":1}`), gate.ErrAnswerConflict)
	mustFinish(t, g, with(c, p2, allow), `"done"`)
	mustFail(t, g, with(c, p1, `{"selectionIdx":1}`), gate.ErrAnswerConflict)
	mustFail(t, g, first, gate.ErrAlreadyCompleted)
	runs.want(t, 3)
	effects.want(t, 1)
}

// How an attempt can end, for R27.
var attempts = map[string]struct {
	end   func() (any, error)
	first gate.Code // what the first caller gets; empty: the result
}{
	"finished":            {func() (any, error) { return "done", nil }, ""},
	"failed":              {func() (any, error) { return nil, errPrivate }, gate.ErrFailed},
	"panicked":            {func() (any, error) { panic("no") }, gate.ErrFailed},
	"cancelled":           {func() (any, error) { return nil, context.Canceled }, gate.ErrFailed},
	"outcome was refused": {func() (any, error) { return nil, errors.Join(choose("x", "y"), errPrivate) }, gate.ErrInvalidQuestion},
	"rejected":            {func() (any, error) { return nil, interrupt.ErrRejected }, gate.ErrRejected},
}

// R27: the same answer after an attempt was made is never an ordinary second run, unless the tool
// says that this is safe.
func TestReplayAfterAnAttempt(t *testing.T) {
	for name, attempt := range attempts {
		for choice, replay := range map[string]gate.Replay{"never again": gate.NeverAgain, "repeatable": gate.Repeatable, "recover": gate.Recover} {
			t.Run(name+"/"+choice, func(t *testing.T) {
				var runs, recoveries counter
				opts := &gate.ToolOptions{Replay: replay}
				if replay == gate.Recover {
					opts.Recover = func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
						recoveries.add()
						r, ok := interrupt.ResumeFrom(ctx)
						if !ok || !r.Recovery || r.Round != 1 || len(r.Answers) != 1 {
							t.Errorf("recovery resumes %+v", r)
						}
						return json.RawMessage(`"recovered"`), nil
					}
				}
				g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
					if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
						return nil, err
					}
					runs.add()
					return attempt.end()
				}, opts))
				c := call("tool", `{}`)
				answer := with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)
				if attempt.first == "" {
					mustFinish(t, g, answer, `"done"`)
				} else {
					mustFail(t, g, answer, attempt.first)
				}
				finished := name == "finished" || name == "rejected"
				switch {
				case replay == gate.Recover && name != "rejected": // a no began nothing
					mustFinish(t, g, answer, `"recovered"`)
					mustFinish(t, g, answer, `"recovered"`)
					runs.want(t, 1)
					recoveries.want(t, 2)
				case finished:
					if e := mustFail(t, g, answer, gate.ErrAlreadyCompleted); e.Ended != attempt.first {
						t.Errorf("ended %q, want %q", e.Ended, attempt.first)
					}
					runs.want(t, 1)
				case replay == gate.Repeatable:
					mustFail(t, g, answer, attempt.first) // an ordinary attempt, which ends as the first one did
					runs.want(t, 2)
				default:
					if e := mustFail(t, g, answer, gate.ErrOutcomeUnknown); e.Ended != attempt.first {
						t.Errorf("ended %q, want %q", e.Ended, attempt.first)
					}
					runs.want(t, 1)
				}
			})
		}
	}
}

// R27: as above, where the attempt's process died: with the answer committed and no ending.
func TestReplayAfterTheProcessDied(t *testing.T) {
	for choice, replay := range map[string]gate.Replay{"never again": gate.NeverAgain, "repeatable": gate.Repeatable, "recover": gate.Recover} {
		t.Run(choice, func(t *testing.T) {
			var runs, effects counter
			store := &faulty{Store: newMem()}
			tools := gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
				if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
					return nil, err
				}
				runs.add()
				if r, _ := interrupt.ResumeFrom(ctx); r.Recovery {
					return "recovered", nil
				}
				if _, err := interrupt.Ask(ctx, choose("c", "d")); err != nil {
					return nil, err
				}
				effects.add()
				return "done", nil
			}, &gate.ToolOptions{Replay: replay})}}
			c := call("tool", `{}`)
			answer := with(c, mustAsk(t, open(t, store, tools), c), `{"selectionIdx":0}`)

			// The process dies in the handler's second run, before it recorded anything.
			dying := open(t, store, tools)
			store.set(func(b *checkpoint.Batch) (before, after error) {
				if writes(b, checkpoint.Open) {
					store.crash()
				}
				return nil, nil
			})
			mustFail(t, dying, answer, gate.ErrOutcomeUnknown)
			store.set(nil)
			runs.want(t, 1)

			g := open(t, store, tools)
			switch replay {
			case gate.NeverAgain:
				if e := mustFail(t, g, answer, gate.ErrOutcomeUnknown); e.Interaction.IsZero() {
					t.Error("the error does not name the interaction")
				}
				runs.want(t, 1)
			case gate.Recover:
				mustFinish(t, g, answer, `"recovered"`)
				runs.want(t, 2)
			case gate.Repeatable: // an ordinary attempt, that may ask on
				p2 := mustAsk(t, g, answer)
				mustFinish(t, g, with(c, p2, `{"selectionIdx":0}`), `"done"`)
				runs.want(t, 3)
				effects.want(t, 1)
			}
		})
	}
}

// R27: recovery may only finish.
func TestRecoveryDoesNotAsk(t *testing.T) {
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		if r, _ := interrupt.ResumeFrom(ctx); r.Recovery {
			_, err := interrupt.Ask(ctx, choose("c", "d"))
			return nil, err
		}
		return nil, errPrivate
	}, &gate.ToolOptions{Replay: gate.Recover}))
	c := call("tool", `{}`)
	answer := with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)
	mustFail(t, g, answer, gate.ErrFailed)
	mustFail(t, g, answer, gate.ErrRecoveryOnly)
	mustFail(t, g, answer, gate.ErrRecoveryOnly)
}

// R27: a tool may keep its bounded result; a larger one is not kept.
func TestKeptResult(t *testing.T) {
	var effects counter
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{KeepResult: true})}, Limits: gate.Limits{Result: 20}})
	c := call("deploy", `{"service":"api"}`)
	answer := with(c, mustAsk(t, g, c), allow)
	mustFinish(t, g, answer, `"deployed api"`)
	mustFinish(t, g, answer, `"deployed api"`)
	effects.want(t, 1)
	c = call("deploy", `{"service":"a service with a long name"}`)
	answer = with(c, mustAsk(t, g, c), allow)
	mustFinish(t, g, answer, `"deployed a service with a long name"`)
	mustFail(t, g, answer, gate.ErrAlreadyCompleted)
	effects.want(t, 2)
}

// R29: ten prompts by default; the last answer may finish; one more prompt is the limit.
func TestInteractionLimit(t *testing.T) {
	asksTimes := func(n int) *gate.Tool {
		return raw("tool", func(ctx context.Context) (any, error) {
			for range n {
				if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
					return nil, err
				}
			}
			return "done", nil
		}, nil)
	}
	for _, test := range []struct{ asks, limit, most int }{{10, 0, 10}, {11, 0, 10}, {2, 2, 2}, {3, 2, 2}, {12, 12, 12}} {
		g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{asksTimes(test.asks)}, MaxPrompts: test.limit})
		c := call("tool", `{}`)
		p := mustAsk(t, g, c)
		for range min(test.asks, test.most) - 1 {
			p = mustAsk(t, g, with(c, p, `{"selectionIdx":0}`))
		}
		if last := with(c, p, `{"selectionIdx":0}`); test.asks > test.most {
			mustFail(t, g, last, gate.ErrInteractionLimit)
		} else {
			mustFinish(t, g, last, `"done"`)
		}
	}
}
