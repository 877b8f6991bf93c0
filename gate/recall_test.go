package gate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R19, H9: the handler goes on in the same request, round after round; such rounds count as prompts
// do (R29), and a prompt that no decision answers is shown as the next round.
func TestRememberedRounds(t *testing.T) {
	for name, test := range map[string]struct {
		most int
		want gate.Code // empty: the prompt of round 3
	}{
		"one prompt more":   {0, ""},
		"not one more":      {2, gate.ErrInteractionLimit},
		"not even a second": {1, gate.ErrInteractionLimit},
	} {
		t.Run(name, func(t *testing.T) {
			var runs, effects counter
			store := newMem()
			handler := raw("tool", func(ctx context.Context) (any, error) {
				runs.add()
				for _, q := range []interrupt.Interrupt{keyed("a", "tool", ""), keyed("b", "tool", ""), choose("a", "b")} {
					if _, err := interrupt.Ask(ctx, q); err != nil {
						return nil, err
					}
				}
				effects.add()
				return "done", nil
			}, &gate.ToolOptions{Remember: &gate.RememberOptions{}})
			g := open(t, store, gate.Options{Tools: []*gate.Tool{handler}})
			c := call("tool", `{}`)
			p := mustAsk(t, g, c)
			p = mustAsk(t, g, with(c, p, allowAlways))
			mustAsk(t, g, with(c, p, allowAlways))
			runs.n = 0

			limited := open(t, store, gate.Options{Tools: []*gate.Tool{handler}, MaxPrompts: test.most})
			c.StartID = "work"
			if test.want != "" {
				e := mustFail(t, limited, c, test.want)
				if in := recorded(t, store, e.Interaction); in.Status != checkpoint.Failed || len(in.Rounds) != test.most {
					t.Errorf("recorded %+v", in)
				}
				return
			}
			p = mustAsk(t, limited, c)
			runs.want(t, 3)
			if p.Round != 3 || p.Questions[0].Type != interrupt.TypeUserSelection {
				t.Errorf("shown %+v", p)
			}
			in := recorded(t, store, p.Interaction)
			if in.Claim.Owner != "" || in.Claim.Epoch != 3 || len(in.Rounds[0].Answer.Remembered) != 1 || len(in.Rounds[1].Answer.Remembered) != 1 {
				t.Errorf("recorded %+v", in)
			}
			mustFinish(t, limited, with(c, p, `{"selectionIdx":0}`), `"done"`)
			effects.want(t, 1)
		})
	}
}

// R25: a round that a decision answers costs one durable commit, also where there was no record.
func TestCostOfARememberedRound(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	g, c, _ := remembered(t, store, &effects)
	before, _ := store.counts()
	mustFinish(t, g, c, `"deployed api"`)
	if after, _ := store.counts(); after != before+1 {
		t.Errorf("%d durable commits", after-before)
	}
}

// R24: the execution is authorized as with any answer, and knows that nobody was asked. Where it is
// refused nothing is recorded but the end of an attempt that was claimed.
func TestAuthorizationOfARememberedAnswer(t *testing.T) {
	for name, refuse := range map[string]func() error{
		"refused": func() error { return errPrivate }, "panics": func() error { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			var seen []gate.Execution
			store := newMem()
			g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{
				Remember: &gate.RememberOptions{},
				Authorize: func(_ context.Context, e gate.Execution) error {
					seen = append(seen, e)
					if e.Remembered {
						return refuse()
					}
					return nil
				},
			})}})
			c := call("deploy", `{"service":"api"}`)
			mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways), `"deployed api"`)
			seen = nil
			e := mustFail(t, g, c, gate.ErrUnauthorized)
			if len(seen) != 2 || seen[0].Round != 0 || seen[1].Round != 1 || len(seen[1].Answers) != 1 || !e.Interaction.IsZero() {
				t.Errorf("asked for %+v, told %+v", seen, e)
			}
			c.StartID = "work"
			e = mustFail(t, g, c, gate.ErrUnauthorized)
			if in := recorded(t, store, e.Interaction); in.Status != checkpoint.Failed || len(in.Rounds) != 0 {
				t.Errorf("recorded %+v", in)
			}
			effects.want(t, 1)
		})
	}
}

// H6, H7, R32: what forbids a prompt forbids its remembered answer; so does a decision that expires
// meanwhile.
func TestNoRememberedAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		during func(clock *clock, face *gate.Face) // while the execution is authorized
		want   gate.Code                           // empty: the prompt is shown
	}{
		"the deadline passes":  {func(c *clock, _ *gate.Face) { c.add(10 * time.Minute) }, gate.ErrExpired},
		"the decision expires": {func(c *clock, _ *gate.Face) { c.add(2 * time.Minute) }, ""},
		"the face begins to close": {func(_ *clock, f *gate.Face) {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			_ = f.Close(ended) // it cannot wait for the request that closes it
		}, gate.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			clock := newClock()
			var face *gate.Face
			store := newMem()
			g := open(t, store, gate.Options{Now: clock.Now, Tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{
				Remember: &gate.RememberOptions{Lifetime: 2 * time.Minute},
				Authorize: func(_ context.Context, e gate.Execution) error {
					if e.Remembered {
						test.during(clock, face)
					}
					return nil
				},
			})}})
			var err error
			if face, err = g.NewFace("mcp", nil); err != nil {
				t.Fatal(err)
			}
			c := call("deploy", `{"service":"api"}`)
			mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways), `"deployed api"`)
			c.StartID = "work"
			if test.want == "" {
				mustAsk(t, face, c)
			} else {
				e := mustFail(t, face, c, test.want)
				if in := recorded(t, store, e.Interaction); in.Status != checkpoint.Failed || len(in.Rounds) != 0 {
					t.Errorf("recorded %+v", in)
				}
			}
			effects.want(t, 1)
		})
	}
}

// H6: a handler that asks after the deadline of its interaction gets no remembered answer.
func TestRememberedTooLate(t *testing.T) {
	var effects counter
	clock := newClock()
	late := false
	g := open(t, newMem(), gate.Options{Now: clock.Now, Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		if late {
			clock.add(time.Hour)
		}
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "")); err != nil {
			return nil, err
		}
		effects.add()
		return "done", nil
	}, &gate.ToolOptions{Remember: &gate.RememberOptions{}})}})
	c := call("tool", `{}`)
	choice := `{"selectionIdx":0}`
	mustFinish(t, g, with(c, mustAsk(t, g, with(c, mustAsk(t, g, c), choice)), allowAlways), `"done"`)
	mustFinish(t, g, with(c, mustAsk(t, g, c), choice), `"done"`)
	p := mustAsk(t, g, c)
	late = true
	mustFail(t, g, with(c, p, choice), gate.ErrExpired)
	effects.want(t, 2)
}

// H7: a recovery may only finish, though a decision would answer what it asks.
func TestRememberedInRecovery(t *testing.T) {
	asks := false
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		if asks {
			if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "")); err != nil {
				return nil, err
			}
			return "done", nil
		}
		return nil, errPrivate
	}, &gate.ToolOptions{Remember: &gate.RememberOptions{}, Replay: gate.Recover}))
	c := call("tool", `{}`)
	asks = true
	mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways), `"done"`)
	asks = false
	c.StartID = "work"
	mustFail(t, g, c, gate.ErrFailed)
	asks = true
	mustFail(t, g, c, gate.ErrRecoveryOnly)
}

// R25, R27, H9: while it is not known that the answered round is written the handler does not go
// on. Where it was, an attempt was made; the same call finds what was really written.
func TestUnknownCommitOfARememberedRound(t *testing.T) {
	for name, test := range map[string]struct {
		start         string
		lands         bool
		before, after error
		unreadable    bool
		now, later    gate.Code // empty: the result
	}{
		"written, and readable":             {"work", true, nil, errInjected, false, "", gate.ErrAlreadyCompleted},
		"written, and unreadable":           {"work", true, nil, errInjected, true, gate.ErrUnavailable, gate.ErrOutcomeUnknown},
		"not written":                       {"work", false, errInjected, nil, false, gate.ErrUnavailable, gate.ErrOutcomeUnknown},
		"refused as lapsed":                 {"work", false, checkpoint.ErrLapsed, nil, false, gate.ErrOutcomeUnknown, gate.ErrOutcomeUnknown},
		"no start id, written and readable": {"", true, nil, errInjected, false, "", ""},
		"no start id, written, unreadable":  {"", true, nil, errInjected, true, gate.ErrUnavailable, ""},
		"no start id, not written":          {"", false, errInjected, nil, false, gate.ErrUnavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			store := &faulty{Store: newMem()}
			g, c, _ := remembered(t, store, &effects)
			c.StartID = test.start
			store.untold(checkpoint.Running, test.before, test.after, test.unreadable)
			ran := 1
			for _, want := range []gate.Code{test.now, test.later} {
				if want == "" {
					mustFinish(t, g, c, `"deployed api"`)
					ran++
				} else {
					mustFail(t, g, c, want)
				}
				effects.want(t, ran)
				store.heal()
			}
		})
	}
}

// R27, H9: a process that dies after a decision answered leaves an attempt that was made, for the
// same start ID and for the answer to the round before.
func TestDeathAfterARememberedRound(t *testing.T) {
	for _, replay := range []gate.Replay{gate.NeverAgain, gate.Repeatable, gate.Recover} {
		for _, before := range []checkpoint.Status{checkpoint.Running, checkpoint.Finished} { // which write it dies at
			var runs, effects counter
			store := &faulty{Store: newMem()}
			opts := gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
				runs.add()
				if r, _ := interrupt.ResumeFrom(ctx); r.Recovery {
					return "recovered", nil
				}
				if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
					return nil, err
				}
				if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "")); err != nil {
					return nil, err
				}
				effects.add()
				return "done", nil
			}, &gate.ToolOptions{Replay: replay, Remember: &gate.RememberOptions{}})}}
			g := open(t, store, opts)
			c := call("tool", `{}`)
			choice := `{"selectionIdx":0}`
			mustFinish(t, g, with(c, mustAsk(t, g, with(c, mustAsk(t, g, c), choice)), allowAlways), `"done"`)
			c = with(c, mustAsk(t, g, c), choice)
			n := 0
			store.set(func(b *checkpoint.Batch) (_, _ error) {
				if writes(b, before) {
					if n++; before == checkpoint.Finished || n == 2 { // the first Running is the person's answer
						store.crash()
					}
				}
				return nil, nil
			})
			mustFail(t, g, c, gate.ErrOutcomeUnknown)
			store.set(nil)
			again := open(t, store.Store, opts)
			switch replay {
			case gate.NeverAgain:
				mustFail(t, again, c, gate.ErrOutcomeUnknown)
			case gate.Repeatable:
				mustFinish(t, again, c, `"done"`)
			case gate.Recover:
				mustFinish(t, again, c, `"recovered"`)
			}
		}
	}
}

// R23: while a handler runs that a decision let go on, the same start ID is busy.
func TestBusyInARememberedRound(t *testing.T) {
	var effects counter
	var g *gate.Gate
	c := call("tool", `{}`)
	c.StartID = "work"
	nested := false
	g = openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "")); err != nil {
			return nil, err
		}
		effects.add()
		if nested {
			_, err := g.Invoke(ctx, c)
			if !errors.Is(err, gate.ErrBusy) {
				t.Errorf("want busy, have %v", err)
			}
		}
		return "done", nil
	}, &gate.ToolOptions{Remember: &gate.RememberOptions{}}))
	first := call("tool", `{}`)
	mustFinish(t, g, with(first, mustAsk(t, g, first), allowAlways), `"done"`)
	nested = true
	mustFinish(t, g, c, `"done"`)
	effects.want(t, 2)
}

// R19: where it cannot be looked whether there is a decision, a person is asked, and an answer is
// not remembered half.
func TestDecisionsCannotBeFound(t *testing.T) {
	var effects counter
	store := &unfindable{Store: newMem()}
	g, c, _ := remembered(t, store, &effects)
	store.fault = errInjected
	p := mustAsk(t, g, c)
	e := mustFail(t, g, with(c, p, rejectAlways), gate.ErrUnavailable)
	if !errors.Is(e, errInjected) {
		t.Errorf("the host is not told why: %v", errors.Unwrap(e))
	}
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
}

// R25, N1, N3: an answer and what is remembered of it are one commit; the same request settles what
// became of it.
func TestUnknownCommitOfADecision(t *testing.T) {
	for name, test := range map[string]struct {
		before, after error
		remembered    int
	}{
		"written": {nil, errInjected, 1}, "not written": {errInjected, nil, 0},
	} {
		for _, elsewhere := range []bool{false, true} {
			var effects counter
			store := &faulty{Store: newMem()}
			g := open(t, store, gate.Options{Tools: []*gate.Tool{remembering(&effects, nil)}})
			c := call("deploy", `{"service":"api"}`)
			p := mustAsk(t, g, c)
			store.set(func(*checkpoint.Batch) (before, after error) {
				store.failLoads(errInjected)
				return test.before, test.after
			})
			answer := func() error {
				if elsewhere {
					return g.Answer(t.Context(), answers(p, "ann", allowAlways))
				}
				_, err := g.Invoke(t.Context(), with(c, p, allowAlways))
				return err
			}
			wantCode(t, name, answer(), gate.ErrUnavailable)
			store.heal()
			decisions(t, g, "ann", test.remembered)
			if err := answer(); err != nil && (elsewhere || test.remembered == 0 || !errors.Is(err, gate.ErrOutcomeUnknown)) {
				t.Errorf("%s, elsewhere %v: %v", name, elsewhere, err)
			}
			decisions(t, g, "ann", 1)
		}
	}
}

// R23, H9: a run that a decision let go on is held also where the call has no start ID: a sweep
// that comes late does not abandon it.
func TestRememberedRoundIsHeld(t *testing.T) {
	var effects counter
	clock := newClock()
	store := newMem()
	var g *gate.Gate
	sweeps := false
	g = open(t, store, gate.Options{Now: clock.Now, Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "")); err != nil {
			return nil, err
		}
		if sweeps {
			page, err := store.List(ctx, checkpoint.Query{Statuses: []checkpoint.Status{checkpoint.Running}})
			if err != nil || len(page.Records) != 1 || !page.Records[0].Due.Equal(clock.Now().Add(10*time.Minute)) {
				t.Errorf("while it runs: %+v, %v", page, err)
			}
			clock.add(time.Hour)
			decisions(t, g, "ann", 1)
		}
		effects.add()
		return "done", nil
	}, &gate.ToolOptions{Remember: &gate.RememberOptions{}})}})
	c := call("tool", `{}`)
	mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways), `"done"`)
	sweeps = true
	outcome, err := g.Invoke(t.Context(), c)
	if err != nil || string(outcome.Result) != `"done"` {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if in := recorded(t, store, outcome.Interaction); in.Status != checkpoint.Finished {
		t.Errorf("recorded %v", in.Status)
	}
}

// R21: what a question says of remembering is part of what the person was shown, and so of the
// token.
func TestTokenIsBoundToWhatIsRemembered(t *testing.T) {
	for name, change := range map[string]func(*checkpoint.Remember){
		"any":        func(r *checkpoint.Remember) { r.Arguments, r.AnyArguments = nil, true },
		"fewer":      func(r *checkpoint.Remember) { r.Arguments = nil },
		"longer":     func(r *checkpoint.Remember) { r.Seconds++ },
		"not at all": nil,
	} {
		var effects counter
		store := newMem()
		g := open(t, store, gate.Options{Tools: []*gate.Tool{remembering(&effects, &gate.RememberOptions{Arguments: []string{"service"}})}})
		c := call("deploy", `{"service":"api"}`)
		p := mustAsk(t, g, c)
		rewrite(t, store, p.Interaction, func(in *checkpoint.Interaction) {
			q := &in.Rounds[0].Questions[0]
			if change == nil {
				q.Remember = nil
			} else {
				change(q.Remember)
			}
		})
		t.Log(name)
		mustFail(t, g, with(c, p, allowAlways), gate.ErrInvalidContinuation)
	}
}

// R19: who answered is recorded where it was one person by one face; else the decisions tell.
func TestWhoAnsweredARememberedRound(t *testing.T) {
	a, b := keyed("a", "tool", ""), keyed("b", "tool", "")
	store := newMem()
	questions := []interrupt.Interrupt{a, b}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		_, err := interrupt.AskAll(ctx, questions...)
		return "done", err
	}, &gate.ToolOptions{Remember: &gate.RememberOptions{}})}})
	c := call("tool", `{}`)
	mustAnswer(t, g, mustAsk(t, g, c), allowAlways, allowAlways)
	for _, want := range []string{"ann@example.com", ""} {
		if want == "" { // b is renewed by the caller, who has no name here
			questions = []interrupt.Interrupt{b, choose("a", "b")}
			mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways, `{"selectionIdx":0}`), `"done"`)
			questions = []interrupt.Interrupt{a, b}
		}
		outcome, err := g.Invoke(t.Context(), c)
		if err != nil || outcome.Prompt != nil {
			t.Fatalf("%+v, %v", outcome, err)
		}
		answer := recorded(t, store, outcome.Interaction).Rounds[0].Answer
		if answer.By != want || len(answer.Remembered) != 2 || answer.Remembered[0] == answer.Remembered[1] {
			t.Errorf("recorded %+v, want %q", answer, want)
		}
	}
}
