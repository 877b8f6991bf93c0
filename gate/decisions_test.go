package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// remembered is a gate and the one decision of Ann's in it, an allowance.
func remembered(t *testing.T, store checkpoint.Store, effects *counter) (*gate.Gate, gate.Call, checkpoint.ID) {
	t.Helper()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{remembering(effects, nil)}})
	c := call("deploy", `{"service":"api"}`)
	mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways), `"deployed api"`)
	return g, c, decisions(t, g, "ann", 1)[0].ID
}

// R19, V4: decisions are listed page by page, of one scope; masked arguments stay hidden, and all
// are where the tool is not known.
func TestListOfDecisions(t *testing.T) {
	var effects counter
	store := newMem()
	tools := []*gate.Tool{
		deploy(&effects, &gate.ToolOptions{Mask: []string{"secret"}, Remember: &gate.RememberOptions{}}),
		permit("any", &effects, &gate.ToolOptions{Remember: &gate.RememberOptions{AnyArguments: true}}, keyed("k", "rm", "Remove")),
	}
	g := open(t, store, gate.Options{Tools: tools})
	for i := range 3 {
		c := call("deploy", fmt.Sprintf(`{"service":"api%d","secret":"hunter2"}`, i))
		mustAnswer(t, g, mustAsk(t, g, c), allowAlways)
	}
	mustAnswer(t, g, mustAsk(t, g, call("any", `{"x":1}`)), rejectAlways)
	bob := call("any", `{}`)
	bob.Scope = "bob"
	mustAsk(t, g, bob)

	q := gate.DecisionQuery{Scope: "ann", Limit: 3}
	var all []gate.Decision
	for pages := 0; pages == 0 || q.After != ""; pages++ {
		page, err := g.Decisions(t.Context(), q)
		if err != nil || pages > 10 {
			t.Fatal(err)
		}
		all = append(all, page.Decisions...)
		q.After = page.Next
	}
	if len(all) != 4 {
		t.Fatalf("listed %+v", all)
	}
	seen := map[string]bool{}
	for _, d := range all {
		seen[string(d.Arguments)] = true
		if d.Tool == "any" && (d.Arguments != nil || d.Key != "k" || d.ToolName != "rm" || d.Title != "Remove" || !d.Remember.Widened()) {
			t.Errorf("listed %+v", d)
		}
	}
	for i := range 3 {
		if shown := fmt.Sprintf(`{"secret":"[hidden]","service":"api%d"}`, i); !seen[shown] {
			t.Errorf("%s is not in %v", shown, seen)
		}
	}
	decisions(t, g, "bob", 0)
	for _, d := range decisions(t, open(t, store, gate.Options{}), "ann", 4) {
		if d.Tool == "deploy" && string(d.Arguments) != `"[hidden]"` || d.Tool == "any" && d.Arguments != nil {
			t.Errorf("without the tool: %s", d.Arguments)
		}
	}
	for name, test := range map[string]struct {
		q    gate.DecisionQuery
		code gate.Code
	}{
		"no scope":           {gate.DecisionQuery{}, gate.ErrUnauthorized},
		"a scope too long":   {gate.DecisionQuery{Scope: string(make([]byte, 2000))}, gate.ErrTooLarge},
		"a negative limit":   {gate.DecisionQuery{Scope: "ann", Limit: -1}, gate.ErrInvalidArguments},
		"a foreign position": {gate.DecisionQuery{Scope: "ann", After: "page two"}, gate.ErrInvalidArguments},
	} {
		_, err := g.Decisions(t.Context(), test.q)
		wantCode(t, name, err, test.code)
	}
}

// R19: a decision is no interaction: no list, no inspection and no answer finds it as one, and no
// interaction is revoked.
func TestDecisionIsNoInteraction(t *testing.T) {
	var effects counter
	store := newMem()
	g, c, id := remembered(t, store, &effects)
	for _, q := range []gate.ListQuery{{Scope: "ann"}, {AllScopes: true}} {
		if page, err := g.List(t.Context(), q); err != nil || len(page.Interactions) != 0 {
			t.Errorf("listed %+v, %v", page, err)
		}
	}
	_, err := g.List(t.Context(), gate.ListQuery{AllScopes: true, Statuses: []checkpoint.Status{checkpoint.Open, checkpoint.Remembered}})
	wantCode(t, "list", err, gate.ErrInvalidArguments)
	_, err = g.InspectID(t.Context(), "ann", id)
	wantCode(t, "inspect", err, gate.ErrInvalidContinuation)
	p := &gate.Prompt{Interaction: id, Round: 1, Questions: []gate.Question{{ID: "x"}}}
	wantCode(t, "answer", g.Answer(t.Context(), answers(p, "ann", allow)), gate.ErrInvalidContinuation)
	c.Scope = "bob"
	open := mustAsk(t, g, c)
	for _, scope := range []string{"ann", "bob"} {
		wantCode(t, "revoke an interaction", g.Revoke(t.Context(), scope, open.Interaction), gate.ErrInvalidContinuation)
	}
	mustFinish(t, g, with(c, open, allow), `"deployed api"`)
}

// R19, D5: a decision can be revoked by its scope, once; from then on it answers nothing.
func TestRevoke(t *testing.T) {
	var effects counter
	store := newMem()
	g, c, id := remembered(t, store, &effects)
	reader := open(t, store, gate.Options{Tools: []*gate.Tool{remembering(&effects, nil)}, ReadOnly: true})
	decisions(t, reader, "ann", 1)
	wantCode(t, "at a read-only gate", reader.Revoke(t.Context(), "ann", id), gate.ErrUnavailable)
	wantCode(t, "another scope's", g.Revoke(t.Context(), "bob", id), gate.ErrInvalidContinuation)
	wantCode(t, "nobody's", g.Revoke(t.Context(), "", id), gate.ErrUnauthorized)
	wantCode(t, "no id", g.Revoke(t.Context(), "ann", checkpoint.ID{}), gate.ErrInvalidContinuation)
	mustFinish(t, g, c, `"deployed api"`) // it still stands
	if err := g.Revoke(t.Context(), "ann", id); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "again", g.Revoke(t.Context(), "ann", id), gate.ErrInvalidContinuation)
	decisions(t, g, "ann", 0)
	mustAsk(t, g, c)
}

// R19: one that is renewed while it is being revoked is revoked; a rejection that took its place
// stays.
func TestRevokeWhileItChanges(t *testing.T) {
	for payload, want := range map[string]gate.Code{allowAlways: "", rejectAlways: gate.ErrInvalidContinuation} {
		var effects counter
		store := &faulty{Store: newMem()}
		g := open(t, store, gate.Options{Tools: []*gate.Tool{remembering(&effects, nil)}})
		c := call("deploy", `{"service":"api"}`)
		p1, p2 := mustAsk(t, g, c), mustAsk(t, g, c)
		mustAnswer(t, g, p1, allowAlways)
		id := decisions(t, g, "ann", 1)[0].ID
		store.set(func(*checkpoint.Batch) (before, after error) {
			store.set(nil)
			mustAnswer(t, g, p2, payload)
			return nil, nil
		})
		if err := g.Revoke(t.Context(), "ann", id); want == "" && err != nil || want != "" && !errors.Is(err, want) {
			t.Errorf("%s: want %q, have %v", payload, want, err)
		}
		if want == "" {
			decisions(t, g, "ann", 0)
		} else if d := decisions(t, g, "ann", 1)[0]; d.Kind != "reject_always" {
			t.Errorf("left %+v", d)
		}
	}
}

// R25: that a decision is revoked is told only when it is known.
func TestUnknownCommitOfARevocation(t *testing.T) {
	for name, test := range map[string]struct {
		before, after error
		unreadable    bool
		now, later    gate.Code
	}{
		"written, and readable":     {nil, errInjected, false, "", gate.ErrInvalidContinuation},
		"written, and unreadable":   {nil, errInjected, true, gate.ErrUnavailable, gate.ErrInvalidContinuation},
		"not written, and readable": {errInjected, nil, false, gate.ErrUnavailable, ""},
		"refused as lapsed":         {checkpoint.ErrLapsed, nil, false, gate.ErrUnavailable, ""},
		"refused as read-only":      {checkpoint.ErrReadOnly, nil, false, gate.ErrUnavailable, ""},
		"a conflict for ever":       {&checkpoint.ConflictError{}, nil, false, gate.ErrBusy, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			store := &faulty{Store: newMem()}
			g, _, id := remembered(t, store, &effects)
			store.set(func(*checkpoint.Batch) (before, after error) {
				if test.unreadable {
					store.failLoads(errInjected)
				}
				return test.before, test.after
			})
			for _, want := range []gate.Code{test.now, test.later} {
				if err := g.Revoke(t.Context(), "ann", id); want == "" && err != nil || want != "" && !errors.Is(err, want) {
					t.Errorf("want %q, have %v", want, err)
				}
				store.heal()
			}
		})
	}
}

// R19: a decision that is revoked while it is on its way to answer does not answer, though it was
// looked up before; one that answered already does not stop the run.
func TestRevokeWhileRunning(t *testing.T) {
	for _, stage := range []string{"while authorizing", "right before the commit", "after it"} {
		t.Run(stage, func(t *testing.T) {
			var effects counter
			var g *gate.Gate
			var id checkpoint.ID
			store := &faulty{Store: newMem()}
			revoke := func(at string) {
				if at != stage || id.IsZero() {
					return
				}
				store.set(nil)
				if err := g.Revoke(context.Background(), "ann", id); err != nil {
					t.Error(err)
				}
				id = checkpoint.ID{}
			}
			var opts gate.ToolOptions
			opts.Remember = &gate.RememberOptions{}
			opts.Authorize = func(_ context.Context, e gate.Execution) error {
				if e.Remembered {
					revoke("while authorizing")
				}
				return nil
			}
			g = open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, &opts)}})
			c := call("deploy", `{"service":"api"}`)
			mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways), `"deployed api"`)
			id = decisions(t, g, "ann", 1)[0].ID
			store.set(func(b *checkpoint.Batch) (before, after error) {
				switch {
				case writes(b, checkpoint.Running):
					revoke("right before the commit")
				case writes(b, checkpoint.Finished):
					revoke("after it")
				}
				return nil, nil
			})
			if stage == "after it" {
				mustFinish(t, g, c, `"deployed api"`)
			} else {
				p := mustAsk(t, g, c)
				effects.want(t, 1)
				mustFinish(t, g, with(c, p, allow), `"deployed api"`)
			}
			effects.want(t, 2)
			decisions(t, g, "ann", 0)
		})
	}
}

// R19: what cannot be read answers nothing. It is listed as such, is no reason to let an allowance
// through where it may be a rejection, gives way to a rejection, and can be revoked.
func TestUnreadableDecision(t *testing.T) {
	var effects counter
	store := newMem()
	g, c, id := remembered(t, store, &effects)
	record, err := store.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	spoil := func() {
		record.Revision++
		record.Data = json.RawMessage(`{"v":9}`)
		if err := store.Commit(t.Context(), &checkpoint.Batch{Puts: []checkpoint.Put{{Record: record}}}); err != nil {
			t.Fatal(err)
		}
	}
	spoil()
	if d := decisions(t, g, "ann", 1)[0]; d.ID != id || d.Problem == nil || d.Kind != "" || d.Expires.IsZero() {
		t.Errorf("listed %+v", d)
	}
	p := mustAsk(t, g, c)
	mustFail(t, g, with(c, p, allowAlways), gate.ErrUnavailable)
	wantCode(t, "elsewhere", g.Answer(t.Context(), answers(p, "ann", allowAlways)), gate.ErrUnavailable)
	mustFail(t, g, with(c, p, rejectAlways), gate.ErrRejected)
	d := decisions(t, g, "ann", 1)[0]
	if d.Kind != "reject_always" || d.ID == id {
		t.Errorf("listed %+v", d)
	}
	if record, err = store.Load(t.Context(), d.ID); err != nil {
		t.Fatal(err)
	}
	spoil()
	if err := g.Revoke(t.Context(), "ann", d.ID); err != nil {
		t.Error(err)
	}
	decisions(t, g, "ann", 0)
}
