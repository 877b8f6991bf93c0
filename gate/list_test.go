package gate_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A list goes page by page through one scope or, for an operator, through all; it shows no token,
// and masked arguments stay hidden.
func TestList(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, &gate.ToolOptions{Mask: []string{"secret"}}))
	want := map[checkpoint.ID]bool{}
	for _, scope := range []string{"ann", "bob", "ann", "ann"} {
		c := call("deploy", `{"service":"api","secret":"hunter2"}`)
		c.Scope = scope
		if p := mustAsk(t, g, c); scope == "ann" {
			want[p.Interaction] = true
		}
	}
	q := gate.ListQuery{Scope: "ann", Limit: 2}
	for range 2 {
		page, err := g.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.Interactions {
			if !want[s.ID] || s.Status != checkpoint.Open || s.Prompt == nil || s.Prompt.Token != "" {
				t.Errorf("listed: %+v", s)
			}
			if hidden := `{"secret":"[hidden]","service":"api"}`; string(s.Arguments) != hidden || string(s.Prompt.Arguments) != hidden {
				t.Errorf("arguments: %s, %s", s.Arguments, s.Prompt.Arguments)
			}
			delete(want, s.ID)
		}
		q.After = page.Next
	}
	if len(want) > 0 || q.After != "" {
		t.Errorf("not listed: %v, next %q", want, q.After)
	}
	if page, err := g.List(t.Context(), gate.ListQuery{AllScopes: true}); err != nil || len(page.Interactions) != 4 {
		t.Errorf("all: %d, %v", len(page.Interactions), err)
	}
	for name, test := range map[string]struct {
		q    gate.ListQuery
		code gate.Code
	}{
		"no scope":           {gate.ListQuery{}, gate.ErrUnauthorized},
		"a scope and all":    {gate.ListQuery{Scope: "ann", AllScopes: true}, gate.ErrInvalidArguments},
		"a negative limit":   {gate.ListQuery{Scope: "ann", Limit: -1}, gate.ErrInvalidArguments},
		"a foreign position": {gate.ListQuery{Scope: "ann", After: "page two"}, gate.ErrInvalidArguments},
	} {
		_, err := g.List(t.Context(), test.q)
		wantCode(t, name, err, test.code)
	}
}

// R27: whether the same call can still lead to a result is the tool's choice, and told in the list.
func TestGoesOn(t *testing.T) {
	for replay, afterFailure := range map[gate.Replay]bool{gate.NeverAgain: false, gate.Repeatable: true, gate.Recover: true} {
		clock := newClock()
		fails := false
		g := open(t, newMem(), gate.Options{Now: clock.Now, Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
			if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
				return nil, err
			}
			if fails {
				return nil, errPrivate
			}
			return nil, nil
		}, &gate.ToolOptions{Replay: replay})}})
		goesOn := func(p *gate.Prompt) bool {
			t.Helper()
			s, err := g.InspectID(t.Context(), "ann", p.Interaction)
			if err != nil {
				t.Fatal(err)
			}
			return s.GoesOn
		}
		c := call("tool", `{}`)
		p := mustAsk(t, g, c)
		if !goesOn(p) {
			t.Error("an open one does not go on")
		}
		fails = true
		mustFail(t, g, with(c, p, `{"selectionIdx":0}`), gate.ErrFailed)
		if goesOn(p) != afterFailure {
			t.Errorf("replay %d: goes on after a failure: %v", replay, !afterFailure)
		}
		fails = false
		p = mustAsk(t, g, c)
		mustFinish(t, g, with(c, p, `{"selectionIdx":0}`), `null`)
		if goesOn(p) {
			t.Error("a finished one goes on")
		}
		p = mustAsk(t, g, c)
		clock.add(time.Hour)
		if goesOn(p) {
			t.Error("an expired one goes on")
		}
	}
}

// An interaction that cannot be read is in the list with its problem, and does not keep the others
// from it (R14).
func TestListUnreadable(t *testing.T) {
	var effects counter
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	good := mustAsk(t, g, call("deploy", `{"service":"api"}`))
	bad := mustAsk(t, g, call("deploy", `{"service":"db"}`))
	record, err := store.Load(t.Context(), bad.Interaction)
	if err != nil {
		t.Fatal(err)
	}
	record.Revision++
	record.Data = []byte(`{"v":99}`)
	if err := store.Commit(t.Context(), &checkpoint.Batch{Puts: []checkpoint.Put{{Record: record}}}); err != nil {
		t.Fatal(err)
	}
	page, err := g.List(t.Context(), gate.ListQuery{Scope: "ann"})
	if err != nil || len(page.Interactions) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	for _, s := range page.Interactions {
		if (s.ID == bad.Interaction) != (s.Problem != nil) {
			t.Errorf("listed: %+v", s)
		}
	}
	mustFail(t, g, with(call("deploy", `{"service":"db"}`), bad, allow), gate.ErrUnavailable)
	mustFinish(t, g, with(call("deploy", `{"service":"api"}`), good, allow), `"deployed api"`)
}

// Another scope's interaction is not told from one that does not exist.
func TestInspect(t *testing.T) {
	g := openMem(t, raw("tool", func(context.Context) (any, error) { return nil, choose("a", "b") }, nil))
	c := call("tool", `{}`)
	c.StartID = "work"
	p := mustAsk(t, g, c)
	if s, err := g.InspectID(t.Context(), "ann", p.Interaction); err != nil || s.ID != p.Interaction {
		t.Errorf("%+v, %v", s, err)
	}
	_, err := g.InspectID(t.Context(), "bob", p.Interaction)
	stranger := wantCode(t, "another scope", err, gate.ErrInvalidContinuation)
	_, err = g.InspectID(t.Context(), "bob", checkpoint.ID{1})
	if nobody := wantCode(t, "no such", err, gate.ErrInvalidContinuation); nobody.Error() != stranger.Error() {
		t.Errorf("told apart: %q and %q", nobody.Error(), stranger.Error())
	}
	for scope, id := range map[string]string{"bob": "work", "ann": "other", "": "work"} {
		if _, err := g.Inspect(t.Context(), scope, id); err == nil {
			t.Errorf("scope %q, start id %q: no error", scope, id)
		}
	}
	if shown, err := json.Marshal(p); err != nil || contains(shown, []byte(p.Token)) {
		t.Errorf("%s, %v", shown, err)
	}
}
