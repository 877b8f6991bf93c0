package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R19: an answerer from outside the scope cannot plant a standing right, nor a standing no, though
// the host lets it answer. Nothing is recorded, and the same person may answer for this once.
func TestPlantingAStandingRight(t *testing.T) {
	var effects counter
	store := newMem()
	g := open(t, store, gate.Options{
		Tools:           []*gate.Tool{remembering(&effects, nil)},
		AuthorizeAnswer: func(context.Context, gate.Answerer) error { return nil },
	})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	for _, payload := range []string{allowAlways, rejectAlways} {
		e := wantCode(t, payload, g.Answer(t.Context(), answers(p, "boss", payload)), gate.ErrUnauthorized)
		if !e.StillOpen || e.Question != p.Questions[0].ID || e.Interaction != p.Interaction {
			t.Errorf("%s: %+v", payload, e)
		}
		if in := recorded(t, store, p.Interaction); in.Status != checkpoint.Open || in.Revision != 1 {
			t.Errorf("%s: recorded %+v", payload, in)
		}
	}
	for _, scope := range []string{"ann", "boss"} {
		decisions(t, g, scope, 0)
	}
	if err := g.Answer(t.Context(), answers(p, "boss", allow)); err != nil {
		t.Fatal(err)
	}
	c.Token = p.Token
	mustFinish(t, g, c, `"deployed api"`)
	c.Token = ""
	mustAsk(t, g, c)
}

// R19: the host decides on its own what may be remembered, on both roads; a refusal and a panic
// leave the question open.
func TestAuthorizeRemember(t *testing.T) {
	var effects counter
	store := newMem()
	var asked []gate.Remembering
	var verdict func() error
	g := open(t, store, gate.Options{
		Tools: []*gate.Tool{permit("tool", &effects, &gate.ToolOptions{
			Remember: &gate.RememberOptions{Arguments: []string{"a"}},
		}, keyed("k", "rm", ""))},
		AuthorizeAnswer: func(context.Context, gate.Answerer) error { return nil },
		AuthorizeRemember: func(_ context.Context, r gate.Remembering) error {
			asked = append(asked, r)
			r.Arguments[0], r.Remember.Arguments[0] = 'x', "x" // its own copy
			return verdict()
		},
	})
	face, err := g.NewFace("mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := call("tool", `{"a":1,"b":2}`)
	p := mustAsk(t, face, c)
	want := gate.Remembering{
		Question: p.Questions[0].ID, Key: "k", ToolName: "rm", Kind: "allow_always",
		Remember:  checkpoint.Remember{Arguments: []string{"x"}, Seconds: 86400},
		Arguments: json.RawMessage(`x"a":1}`),
		Answerer:  gate.Answerer{Scope: "ann", SameScope: true, Face: "mcp", Interaction: p.Interaction, Tool: "tool"},
	}
	for name, refuse := range map[string]func() error{
		"an error": func() error { return errPrivate }, "a panic": func() error { panic("no") },
		"a question": func() error { return choose("a", "b") },
	} {
		verdict, asked = refuse, nil
		e := mustFail(t, face, with(c, p, allowAlways), gate.ErrUnauthorized)
		var question interrupt.Interrupt
		if !e.StillOpen || len(asked) != 1 || errors.As(e, &question) {
			t.Errorf("%s: %+v, asked %d times", name, e, len(asked))
		}
		if diff := cmp.Diff(want, asked[0]); diff != "" {
			t.Errorf("%s (-want +have):\n%s", name, diff)
		}
	}
	effects.want(t, 0)
	decisions(t, g, "ann", 0)
	verdict, asked = func() error { return nil }, nil
	if err := face.Answer(t.Context(), answers(p, "boss", allowAlways)); err != nil { // this host lets others plant
		t.Fatal(err)
	}
	want.Answerer = gate.Answerer{Scope: "boss", By: "boss@example.com", Face: "mcp", Interaction: p.Interaction, Tool: "tool"}
	if diff := cmp.Diff([]gate.Remembering{want}, asked); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
	asked = nil
	mustFinish(t, face, with(c, p, allowAlways), `"done"`) // recorded already: nothing is remembered by it
	mustFinish(t, face, c, `"done"`)
	c = call("tool", `{"a":3}`)
	mustFinish(t, face, with(c, mustAsk(t, face, c), allow), `"done"`)
	if len(asked) != 0 {
		t.Errorf("asked again: %+v", asked)
	}
}

// R19: a rejection beats an allowance: it replaces one, and is never replaced by one. The same kind
// again is renewed.
func TestRejectionBeatsAllowance(t *testing.T) {
	for name, test := range map[string]struct {
		first, second string
		want          string
		sameID        bool
		rejected      bool
	}{
		"allowed, then rejected": {allowAlways, rejectAlways, "reject_always", false, true},
		"rejected, then allowed": {rejectAlways, allowAlways, "reject_always", true, true},
		"allowed twice":          {allowAlways, allowAlways, "allow_always", true, false},
		"rejected twice":         {rejectAlways, rejectAlways, "reject_always", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			clock := newClock()
			g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{remembering(&effects, nil)}, Now: clock.Now})
			c := call("deploy", `{"service":"api"}`)
			first, second := mustAsk(t, g, c), mustAsk(t, g, c) // both are shown before anything is remembered
			mustAnswer(t, g, first, test.first)
			was := decisions(t, g, "ann", 1)[0]
			clock.add(time.Minute)
			mustAnswer(t, g, second, test.second)
			is := decisions(t, g, "ann", 1)[0]
			if is.Kind != test.want || (is.ID == was.ID) != test.sameID {
				t.Errorf("was %+v, is %+v", was, is)
			}
			if renewed := test.first == test.second || !test.sameID; renewed != is.Expires.After(was.Expires) {
				t.Errorf("was good until %v, is until %v", was.Expires, is.Expires)
			}
			// The answer itself is good for its own round, whatever stands.
			c.Token = second.Token
			if test.second == allowAlways {
				mustFinish(t, g, c, `"deployed api"`)
			} else {
				mustFail(t, g, c, gate.ErrRejected)
			}
			c.Token = ""
			if test.rejected {
				mustFail(t, g, c, gate.ErrRejected)
			} else {
				mustFinish(t, g, c, `"deployed api"`)
			}
		})
	}
}

// R19: in one prompt, too: several questions of which all would be one decision are one, and a
// rejection where one of them is.
func TestOnePromptOneDecision(t *testing.T) {
	for name, test := range map[string]struct {
		payloads []string
		want     string
	}{
		"allowed and rejected":           {[]string{allowAlways, rejectAlways}, "reject_always"},
		"rejected and allowed":           {[]string{rejectAlways, allowAlways}, "reject_always"},
		"allowed, rejected and allowed":  {[]string{allowAlways, rejectAlways, allowAlways}, "reject_always"},
		"rejected, allowed and rejected": {[]string{rejectAlways, allowAlways, rejectAlways}, "reject_always"},
		"allowed twice":                  {[]string{allowAlways, allowAlways}, "allow_always"},
		"once and always":                {[]string{reject, allowAlways}, "allow_always"},
	} {
		t.Run(name, func(t *testing.T) {
			g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
				var questions []interrupt.Interrupt
				for range test.payloads {
					questions = append(questions, interrupt.ToolPermission("tool", ""))
				}
				_, err := interrupt.AskAll(ctx, questions...)
				return "done", err
			}, &gate.ToolOptions{Remember: &gate.RememberOptions{}}))
			c := call("tool", `{}`)
			mustAnswer(t, g, mustAsk(t, g, c), test.payloads...)
			if d := decisions(t, g, "ann", 1)[0]; d.Kind != test.want {
				t.Errorf("remembered %+v", d)
			}
			if _, err := g.Invoke(t.Context(), c); (err == nil) != (test.want == "allow_always") {
				t.Errorf("later: %v", err)
			}
		})
	}
}

// R19, R23: two answers at once, at two gates, do not lose the rejection.
func TestDecisionsAtOnce(t *testing.T) {
	for name, test := range map[string]struct{ stands, slow, quick string }{
		"nothing stands, allowed slowly":     {"", allowAlways, rejectAlways},
		"nothing stands, rejected slowly":    {"", rejectAlways, allowAlways},
		"an allowance stands, renewed":       {allowAlways, allowAlways, rejectAlways},
		"an allowance stands, rejected":      {allowAlways, rejectAlways, allowAlways},
		"an allowance stands, rejected both": {allowAlways, rejectAlways, rejectAlways},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			store := &faulty{Store: newMem()}
			opts := gate.Options{Tools: []*gate.Tool{remembering(&effects, nil)}}
			g := open(t, store, opts)
			other := open(t, store.Store, opts)
			c := call("deploy", `{"service":"api"}`)
			p0, p1, p2 := mustAsk(t, g, c), mustAsk(t, g, c), mustAsk(t, g, c)
			if test.stands != "" {
				mustAnswer(t, g, p0, test.stands)
			}
			store.set(func(b *checkpoint.Batch) (before, after error) {
				store.set(nil)
				mustAnswer(t, other, p2, test.quick) // between the look and the commit
				return nil, nil
			})
			mustAnswer(t, g, p1, test.slow)
			if d := decisions(t, g, "ann", 1)[0]; d.Kind != "reject_always" {
				t.Errorf("remembered %+v", d)
			}
		})
	}
}

// R19, R30: a decision expires at the store's time, 24 hours after its answer, and a clock that
// steps back brings it not back. Then anything takes its place, and a sweep removes it.
func TestDecisionExpires(t *testing.T) {
	for _, payload := range []string{allowAlways, rejectAlways} {
		var effects counter
		clock := newClock()
		store := &faulty{Store: newMem(), blind: true}
		looked := false
		g := open(t, store, gate.Options{Now: clock.Now, Tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{
			Remember: &gate.RememberOptions{},
			Authorize: func(_ context.Context, e gate.Execution) error {
				looked = looked || e.Remembered
				return nil
			},
		})}})
		c := call("deploy", `{"service":"api"}`)
		mustAnswer(t, g, mustAsk(t, g, c), payload)
		was := decisions(t, g, "ann", 1)[0]
		clock.add(24*time.Hour - time.Millisecond)
		decisions(t, g, "ann", 1)
		if _, err := g.Invoke(t.Context(), c); err != nil && !errors.Is(err, gate.ErrRejected) {
			t.Fatal(err)
		}
		if !looked {
			t.Error("not authorized as a remembered answer")
		}
		looked = false
		clock.add(time.Millisecond)
		decisions(t, g, "ann", 0)
		p := mustAsk(t, g, c)
		clock.add(-time.Hour)
		mustAsk(t, g, c)
		decisions(t, g, "ann", 0)
		if looked {
			t.Error("an expired one was about to answer")
		}
		mustAnswer(t, g, p, allowAlways)
		is := decisions(t, g, "ann", 1)[0]
		if is.Kind != "allow_always" || is.ID == was.ID {
			t.Errorf("was %+v, is %+v", was, is)
		}
		if _, err := store.Load(t.Context(), was.ID); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("the expired one is still there: %v", err)
		}
		mustFinish(t, g, c, `"deployed api"`)
		clock.add(26 * time.Hour)
		store.blind = false
		decisions(t, g, "ann", 0) // sweeps
		decisions(t, g, "ann", 0)
		if _, err := store.Load(t.Context(), is.ID); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("a sweep left it: %v", err)
		}
	}
}

// R19, R22: decisions are the ledger's: they outlive gates and every key of the ring, and all gates
// of the store have them.
func TestDecisionsOutliveKeysAndGates(t *testing.T) {
	var effects counter
	store := newMem()
	opts := gate.Options{Tools: []*gate.Tool{remembering(&effects, nil)}}
	first, err := gate.Open(t.Context(), store, &gate.Options{Tools: opts.Tools, Keys: [][]byte{testKey}})
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, store, opts)
	c := call("deploy", `{"service":"api"}`)
	mustFinish(t, first, with(c, mustAsk(t, first, c), allowAlways), `"deployed api"`)
	mustFinish(t, other, c, `"deployed api"`)
	if err := first.SetKeys([][]byte{gate.NewKey()}); err != nil {
		t.Fatal(err)
	}
	mustFinish(t, first, c, `"deployed api"`)
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	opts.Keys = [][]byte{gate.NewKey()}
	again := open(t, store, opts)
	mustFinish(t, again, c, `"deployed api"`)
	d := decisions(t, again, "ann", 1)[0]
	if err := other.Revoke(t.Context(), "ann", d.ID); err != nil {
		t.Fatal(err)
	}
	mustAsk(t, again, c)
}

// R19: what one scope and one tool decided is nothing to another, and takes nothing from it.
func TestDecisionsStandSideBySide(t *testing.T) {
	var effects counter
	q := keyed("k", "rm", "")
	g := openMem(t, permit("a", &effects, nil, q), permit("b", &effects, nil, q))
	calls := map[string]gate.Call{}
	for payload, who := range map[string][2]string{allowAlways: {"ann", "bob"}, rejectAlways: {"bob", "ann"}} {
		for i, tool := range []string{"a", "b"} {
			c := call(tool, `{}`)
			c.Scope = who[i]
			calls[tool+who[i]] = c
			p := mustAsk(t, g, c)
			if err := g.Answer(t.Context(), answers(p, c.Scope, payload)); err != nil {
				t.Fatal(err)
			}
		}
	}
	mustFinish(t, g, calls["aann"], `"done"`)
	mustFail(t, g, calls["abob"], gate.ErrRejected)
	mustFinish(t, g, calls["bbob"], `"done"`)
	mustFail(t, g, calls["bann"], gate.ErrRejected)
	decisions(t, g, "ann", 2)
	decisions(t, g, "bob", 2)
}

// R19: code of a newer revision does not use what the revision was told under which its interaction
// began.
func TestNewerCodeUsesNoFormerDecision(t *testing.T) {
	store := newMem()
	at := func(revision string) *gate.Gate {
		return open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
			if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
				return nil, err
			}
			_, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", ""))
			return "done", err
		}, &gate.ToolOptions{Revision: revision, FormerRevisions: []string{"1"}, Remember: &gate.RememberOptions{}})}})
	}
	c, choice := call("tool", `{}`), `{"selectionIdx":0}`
	old := at("1")
	mustFinish(t, old, with(c, mustAsk(t, old, with(c, mustAsk(t, old, c), choice)), allowAlways), `"done"`)
	p := mustAsk(t, old, c)
	mustAsk(t, at("2"), with(c, p, choice))
	mustFinish(t, old, with(c, mustAsk(t, old, c), choice), `"done"`)
}

// R19, R25: decisions are in the file: they outlive the process, and one that is revoked right
// before the commit that would use it is not used there either.
func TestDecisionsInAFile(t *testing.T) {
	var effects counter
	path := filepath.Join(t.TempDir(), "ledger.db")
	c := call("deploy", `{"service":"api"}`)
	var id checkpoint.ID
	for process, step := range []func(g *gate.Gate, faults *faulty){
		func(g *gate.Gate, _ *faulty) {
			mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways), `"deployed api"`)
			id = decisions(t, g, "ann", 1)[0].ID
		},
		func(g *gate.Gate, _ *faulty) { mustFinish(t, g, c, `"deployed api"`) },
		func(g *gate.Gate, faults *faulty) {
			faults.set(func(*checkpoint.Batch) (_, _ error) {
				faults.set(nil)
				return g.Revoke(t.Context(), "ann", id), nil
			})
			mustAsk(t, g, c)
		},
		func(g *gate.Gate, _ *faulty) { decisions(t, g, "ann", 0); mustAsk(t, g, c) },
	} {
		store, err := boltstore.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		faults := &faulty{Store: store}
		g, err := gate.Open(t.Context(), faults, &gate.Options{Tools: []*gate.Tool{remembering(&effects, nil)}, Keys: [][]byte{testKey}})
		if err != nil {
			t.Fatal(err)
		}
		step(g, faults)
		if err := errors.Join(g.Close(t.Context()), store.Close()); err != nil {
			t.Fatalf("process %d: %v", process+1, err)
		}
	}
	effects.want(t, 2)
}

// R9, R14, R19: a question of another type that presents itself as a permission has no options of
// an always kind, and no decision answers it.
func TestPresentedPermissionIsNotRemembered(t *testing.T) {
	var question interrupt.Interrupt
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		_, err := interrupt.Ask(ctx, question)
		return "done", err
	}, &gate.ToolOptions{Remember: &gate.RememberOptions{AnyArguments: true}}))
	c := call("tool", `{}`)
	question = interrupt.ToolPermission("ticket", "x")
	mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways), `"done"`)
	question = &ticket{Title: "x", As: "permission"}
	q := mustAsk(t, g, c).Questions[0]
	if q.PresentedBy == "" || q.Remember != nil || strings.Contains(string(q.Body), "always") {
		t.Errorf("shown %+v", q)
	}
}
