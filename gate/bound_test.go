package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R31: the words under which things are found do not run together: one scope's start ID is not
// another scope's.
func TestScopesDoNotRunTogether(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	zeros := strings.Repeat("\x00", 8)
	for _, pair := range [][2][2]string{{{"ann", "a1"}, {"anna", "1"}}, {{"a", "b" + zeros + "c"}, {"a" + zeros + "b", "c"}}} {
		c := call("deploy", `{"service":"api"}`)
		c.Scope, c.StartID = pair[0][0], pair[0][1]
		p := mustAsk(t, g, c)
		_, err := g.Inspect(t.Context(), pair[1][0], pair[1][1])
		wantCode(t, "inspect", err, gate.ErrStartUnknown)
		c.Scope, c.StartID = pair[1][0], pair[1][1]
		if other := mustAsk(t, g, c); other.Interaction == p.Interaction {
			t.Error("another scope joined")
		}
	}
}

// R24: nobody answers, lists or inspects without a scope, whoever else the host lets answer.
func TestNoScope(t *testing.T) {
	var effects counter
	g := open(t, newMem(), gate.Options{
		Tools:           []*gate.Tool{deploy(&effects, nil)},
		AuthorizeAnswer: func(context.Context, gate.Answerer) error { return nil },
	})
	c := call("deploy", `{"service":"api"}`)
	c.StartID = "work"
	p := mustAsk(t, g, c)
	wantCode(t, "answer", g.Answer(t.Context(), answers(p, "", allow)), gate.ErrUnauthorized)
	_, err := g.List(t.Context(), gate.ListQuery{})
	wantCode(t, "list", err, gate.ErrUnauthorized)
	_, err = g.List(t.Context(), gate.ListQuery{Scope: "ann", AllScopes: true})
	wantCode(t, "list of one and of all", err, gate.ErrInvalidArguments)
	_, err = g.Inspect(t.Context(), "", "work")
	wantCode(t, "inspect", err, gate.ErrUnauthorized)
	_, err = g.InspectID(t.Context(), "", p.Interaction)
	wantCode(t, "inspect by id", err, gate.ErrInvalidContinuation)
}

// R21: a token stays bound to the session and face of its own round. Whoever took the interaction
// over cannot use the former one's.
func TestTakerHasNoFormerToken(t *testing.T) {
	var runs, effects counter
	g := openMem(t, twoRounds(&runs, &effects, nil))
	face, err := g.NewFace("mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, take := range map[string]func(gate.Call) (host, gate.Call){
		"session": func(c gate.Call) (host, gate.Call) { c.Session = "s2"; return g, c },
		"face":    func(c gate.Call) (host, gate.Call) { return face, c },
	} {
		c := call("tool", `{}`)
		c.StartID = name
		p1 := mustAsk(t, g, c)
		mustAsk(t, g, with(c, p1, `{"selectionIdx":0}`))
		taker, taken := take(c)
		p2 := mustAsk(t, taker, taken)
		mustFail(t, taker, with(taken, p1, `{"selectionIdx":0}`), gate.ErrInvalidContinuation)
		mustFinish(t, taker, with(taken, p2, allow), `"done"`)
	}
}

// R21: a token of a round or an interaction that is no longer in the store, as after a backup was
// put back, is one that is not good.
func TestTokenOfWhatIsGone(t *testing.T) {
	var runs, effects counter
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{twoRounds(&runs, &effects, nil)}})
	c := call("tool", `{}`)
	p1 := mustAsk(t, g, c)
	p2 := mustAsk(t, g, with(c, p1, `{"selectionIdx":0}`))
	rewrite(t, store, p2.Interaction, func(in *checkpoint.Interaction) {
		in.Rounds = in.Rounds[:1]
		in.Rounds[0].Answer = nil
	})
	mustFail(t, g, with(c, p2, allow), gate.ErrInvalidContinuation)
	wantCode(t, "from elsewhere", g.Answer(t.Context(), answers(p2, "ann", allow)), gate.ErrInvalidContinuation)
	in := recorded(t, store, p2.Interaction)
	batch := &checkpoint.Batch{Deletes: []checkpoint.Delete{{ID: in.ID, Revision: in.Revision}}}
	if err := store.Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	mustFail(t, g, with(c, p1, `{"selectionIdx":0}`), gate.ErrInvalidContinuation)
	wantCode(t, "from elsewhere", g.Answer(t.Context(), answers(p1, "ann", `{"selectionIdx":0}`)), gate.ErrInvalidContinuation)
}

// R21, R22: a token is made anew 65535 times at most: one more would bring the first back to life.
func TestMintsAreCounted(t *testing.T) {
	var effects counter
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	c := call("deploy", `{"service":"api"}`)
	c.StartID = "work"
	p := mustAsk(t, g, c)
	rewrite(t, store, p.Interaction, func(in *checkpoint.Interaction) { in.Rounds[0].Mint.Count = 1<<16 - 1 })
	moved := c
	moved.Session = "s2"
	mustFail(t, g, moved, gate.ErrInteractionLimit)
	mustFail(t, g, with(c, p, allow), gate.ErrInvalidContinuation)
	mustFinish(t, g, with(c, mustAsk(t, g, c), allow), `"deployed api"`)
}

// R22: a token leads to a later round only where that round's key is in the ring; it is never the
// one for which a new token is made.
func TestKeyOfALaterRoundLeft(t *testing.T) {
	var runs, effects counter
	k1, k2 := gate.NewKey(), gate.NewKey()
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{twoRounds(&runs, &effects, nil)}, Keys: [][]byte{k1}})
	c := call("tool", `{}`)
	first := with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)
	if err := g.SetKeys([][]byte{k2, k1}); err != nil {
		t.Fatal(err)
	}
	p2 := mustAsk(t, g, first)
	if err := g.SetKeys([][]byte{k1}); err != nil {
		t.Fatal(err)
	}
	before := recorded(t, store, p2.Interaction).Revision
	mustFail(t, g, first, gate.ErrInvalidContinuation)
	if after := recorded(t, store, p2.Interaction).Revision; after != before {
		t.Error("something was written")
	}
}

// R21, R27: under another revision nothing is run again and nothing that was answered is carried
// out.
func TestRevisionChangedAfterTheAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		replay   gate.Replay
		answered bool // from elsewhere; else an attempt failed
	}{
		"answered":   {gate.NeverAgain, true},
		"recover":    {gate.Recover, false},
		"repeatable": {gate.Repeatable, false},
	} {
		t.Run(name, func(t *testing.T) {
			var runs counter
			store := newMem()
			at := func(revision string) *gate.Gate {
				return open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
					if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
						return nil, err
					}
					runs.add()
					return nil, errPrivate
				}, &gate.ToolOptions{Replay: test.replay, Revision: revision})}})
			}
			was, is := at("1"), at("2")
			c := call("tool", `{}`)
			c.StartID = "work"
			p := mustAsk(t, was, c)
			answer := with(c, p, `{"selectionIdx":0}`)
			ran := 0
			if test.answered {
				mustAnswer(t, was, p, `{"selectionIdx":0}`)
			} else {
				mustFail(t, was, answer, gate.ErrFailed)
				ran++
			}
			look := c
			look.Token = p.Token
			for _, request := range []gate.Call{c, look, answer} {
				mustFail(t, is, request, gate.ErrRevisionChanged)
			}
			runs.want(t, ran)
		})
	}
}

// R27, R36: whoever cannot go on is told the application's own key, and only by who named it.
func TestOwnKeyIsTold(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil), raw("fails", func(context.Context) (any, error) { return nil, errPrivate }, nil))
	for tool, want := range map[string]gate.Code{"deploy": gate.ErrAlreadyCompleted, "fails": gate.ErrOutcomeUnknown} {
		c := call(tool, `{"service":"api"}`)
		c.StartID = "work-" + tool
		if tool == "deploy" {
			mustFinish(t, g, with(c, mustAsk(t, g, c), allow), `"deployed api"`)
		} else {
			mustFail(t, g, c, gate.ErrFailed)
		}
		if e := mustFail(t, g, c, want); !strings.Contains(e.Message, `start id "work-`+tool+`"`) {
			t.Errorf("%v", e)
		}
	}
	c := call("deploy", `{"service":"api"}`)
	c.StartID = "private"
	p := mustAsk(t, g, c)
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
	e := wantCode(t, "another answer", g.Answer(t.Context(), answers(p, "ann", reject)), gate.ErrAnswerConflict)
	if strings.Contains(e.Error(), "private") || strings.Contains(e.Error(), "start id") || e.Ended != "" {
		t.Errorf("%v", e)
	}
}

// R34: every bound is exact: what just fits is taken.
func TestBoundsAreExact(t *testing.T) {
	var effects counter
	g := open(t, newMem(), gate.Options{
		Tools:  []*gate.Tool{deploy(&effects, nil), raw("deep", func(context.Context) (any, error) { return nil, nil }, nil)},
		Limits: gate.Limits{Arguments: 20, Answer: 100, Name: 6, Depth: 3},
	})
	word := func(n int) string { return strings.Repeat("x", n) }
	arguments := func(n int) string { return fmt.Sprintf(`{"service":%q}`, word(n-len(`{"service":""}`))) }
	for name, test := range map[string]struct {
		change func(c *gate.Call, over int)
		code   gate.Code
	}{
		"arguments": {func(c *gate.Call, over int) { c.Arguments = json.RawMessage(arguments(20 + over)) }, gate.ErrTooLarge},
		"scope":     {func(c *gate.Call, over int) { c.Scope = word(6 + over) }, gate.ErrTooLarge},
		"session":   {func(c *gate.Call, over int) { c.Session = word(6 + over) }, gate.ErrTooLarge},
		"start id":  {func(c *gate.Call, over int) { c.StartID = word(6 + over) }, gate.ErrTooLarge},
		"depth": {func(c *gate.Call, over int) {
			c.Tool, c.Arguments = "deep", json.RawMessage(`{"a":[`+[]string{`0`, `[]`, `[[]]`}[1+over]+`]}`)
		}, gate.ErrInvalidArguments},
	} {
		c := call("deploy", `{"service":"a"}`)
		test.change(&c, 0)
		if _, err := g.Invoke(t.Context(), c); err != nil {
			t.Errorf("%s: what just fits: %v", name, err)
		}
		test.change(&c, 1)
		if _, err := g.Invoke(t.Context(), c); !errors.Is(err, test.code) {
			t.Errorf("%s: what does not fit: %v", name, err)
		}
	}
	c := call("deploy", `{"service":"a"}`)
	p := mustAsk(t, g, c)
	payload := func(over int) string {
		return allow + strings.Repeat(" ", 100+over-len(allow)-len(p.Questions[0].ID))
	}
	mustFail(t, g, with(c, p, payload(1)), gate.ErrTooLarge)
	a := answers(p, "ann", payload(1))
	a.By = "ann"
	wantCode(t, "from elsewhere", g.Answer(t.Context(), a), gate.ErrTooLarge)
	a = answers(p, word(7), allow)
	a.By = "ann"
	wantCode(t, "scope from elsewhere", g.Answer(t.Context(), a), gate.ErrTooLarge)
	a.Scope, a.By = "ann", word(7)
	wantCode(t, "who", g.Answer(t.Context(), a), gate.ErrTooLarge)
	mustFail(t, g, with(c, p, `{"optionId":[[[]]]}`), gate.ErrInvalidAnswer)
	mustFinish(t, g, with(c, p, payload(0)), `"deployed a"`)
}

// R34: the whole public form of a prompt, its token included, fits the limit; one that would not is
// too_large, and nothing is stored.
func TestWholePromptFits(t *testing.T) {
	const limit = 4096
	title := strings.Repeat("t", 100)
	tool := raw("tool", func(context.Context) (any, error) {
		return nil, errors.Join(choose("a", "b"), interrupt.ToolPermission("tool", "Go on"), interrupt.URL("m", "https://example.com"))
	}, &gate.ToolOptions{Title: title})
	g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{tool}, Limits: gate.Limits{Prompt: limit}})
	largest := 0
	for n := 0; n < limit; n += 7 {
		c := call("tool", fmt.Sprintf(`{"a":"%s"}`, strings.Repeat("x", n)))
		outcome, err := g.Invoke(t.Context(), c)
		if errors.Is(err, gate.ErrTooLarge) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		form, err := json.Marshal(outcome.Prompt)
		if err != nil {
			t.Fatal(err)
		}
		if size := len(form) + gate.TokenLength; size > limit {
			t.Fatalf("%d bytes of arguments: the prompt has %d bytes", n, size)
		}
		largest = max(largest, n)
	}
	if largest < limit/2 || largest > limit-500 {
		t.Errorf("the largest arguments that fit have %d bytes", largest)
	}
}
