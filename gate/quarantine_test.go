package gate_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// age makes of the recorded tickets what version 1 of their type, under its name of then, wrote.
func age(in *checkpoint.Interaction) {
	for i := range in.Rounds {
		q := &in.Rounds[i].Questions[0]
		q.Type, q.Version, q.Shown, q.Body = "gate_test_card", 1, nil, json.RawMessage(`{"name":"x"}`)
		q.Digest = checkpoint.Hash{1}
	}
}

// R14: a question that cannot be read back is quarantined: listed with the names of the types, in
// its place among the others; refused an answer and left open; and it expires.
func TestQuarantine(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(q *checkpoint.Question)
		types []string
	}{
		"as it was":             {func(*checkpoint.Question) {}, nil},
		"a former version":      {func(q *checkpoint.Question) { *q = aged(*q) }, nil},
		"not registered":        {func(q *checkpoint.Question) { q.Type = "gate_test_gone" }, []string{"gate_test_gone"}},
		"a newer version":       {func(q *checkpoint.Question) { q.Version = 3 }, []string{"gate_test_ticket"}},
		"not to be upgraded":    {func(q *checkpoint.Question) { q.Version = 0 }, []string{"gate_test_ticket"}},
		"a body it cannot read": {func(q *checkpoint.Question) { q.Body = json.RawMessage(`[]`) }, []string{"gate_test_ticket"}},
		"shown as what is gone": {func(q *checkpoint.Question) { q.Shown.Type = "gate_test_gone" }, []string{"gate_test_ticket"}},
		"not presented any more": {func(q *checkpoint.Question) {
			q.Type, q.Version, q.Body = "gate_test_foreign", 0, json.RawMessage(`{}`)
		},
			[]string{"gate_test_foreign"}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			store := newMem()
			g := open(t, store, gate.Options{Tools: []*gate.Tool{file(ticket{Title: "x"}, nil)}, Now: clock.Now})
			first, p, last := mustAsk(t, g, call("file", `{}`)), mustAsk(t, g, call("file", `{}`)), mustAsk(t, g, call("file", `{}`))
			rewrite(t, store, p.Interaction, func(in *checkpoint.Interaction) { test.spoil(&in.Rounds[0].Questions[0]) })
			page, err := g.List(t.Context(), gate.ListQuery{Scope: "ann"})
			if err != nil || len(page.Interactions) != 3 {
				t.Fatalf("%+v, %v", page, err)
			}
			listed := map[checkpoint.ID][]string{}
			for _, s := range page.Interactions {
				if s.Problem != nil || s.Prompt == nil || s.Status != checkpoint.Open {
					t.Errorf("listed: %+v", s)
				}
				listed[s.ID] = s.Quarantined
			}
			want := map[checkpoint.ID][]string{first.Interaction: nil, p.Interaction: test.types, last.Interaction: nil}
			if diff := cmp.Diff(want, listed); diff != "" {
				t.Errorf("quarantined (-want +have):\n%s", diff)
			}
			if test.types != nil {
				e := wantCode(t, "answer", g.Answer(t.Context(), answers(p, "ann", `{"selectionIdx":0}`)), gate.ErrRevisionChanged)
				if !e.StillOpen || recorded(t, store, p.Interaction).Status != checkpoint.Open {
					t.Errorf("the question is not open any more: %+v", e)
				}
			}
			clock.add(time.Hour)
			mustFail(t, g, call("no such tool, but it sweeps", `{}`), gate.ErrUnknownTool)
			if _, err := g.List(t.Context(), gate.ListQuery{Scope: "ann"}); err != nil {
				t.Fatal(err)
			}
			if in := recorded(t, store, p.Interaction); in.Status != checkpoint.Expired {
				t.Errorf("it does not expire: %v", in.Status)
			}
		})
	}
}

// aged is a question as version 1 of its type wrote it.
func aged(q checkpoint.Question) checkpoint.Question {
	in := checkpoint.Interaction{Rounds: []checkpoint.Round{{Questions: []checkpoint.Question{q}}}}
	age(&in)
	return in.Rounds[0].Questions[0]
}

// R14: a question that an earlier release asked, under the type's former name and in its former
// version, is shown as it was, answered, and found by the handler as what it asks today (R2).
func TestFormerVersionIsAnswered(t *testing.T) {
	for name, question := range map[string]ticket{"by what it shows": {Title: "x"}, "by its key": {Title: "y", Key: "k"}} {
		t.Run(name, func(t *testing.T) {
			store := newMem()
			g := open(t, store, gate.Options{Tools: []*gate.Tool{file(question, nil)}})
			c := call("file", `{}`)
			c.StartID = "work"
			p := mustAsk(t, g, c)
			rewrite(t, store, p.Interaction, age)
			c.Facilities = []interrupt.Facility{interrupt.FacilitySelection} // what it is presented as now, not then
			mustFail(t, g, c, gate.ErrConfirmationRequired)
			c.Facilities = []interrupt.Facility{"gate_test_ticket"}
			p = mustAsk(t, g, c)
			want := gate.Question{ID: p.Questions[0].ID, Type: "gate_test_card", Version: 1, Body: json.RawMessage(`{"name":"x"}`)}
			if diff := cmp.Diff(want, p.Questions[0]); diff != "" {
				t.Errorf("shown (-want +have):\n%s", diff)
			}
			if q, err := p.Questions[0].Interrupt(); err != nil || q.(*ticket).Title != "x" {
				t.Errorf("read %+v, %v", q, err)
			}
			mustAnswer(t, g, p, `{"Priority":"low"}`)
			mustFinish(t, g, c, `"low"`)
		})
	}
}

// R2, R14: an answer to a question that cannot be read back answers nothing that is asked now, not
// even under the same key or with the same body.
func TestUnreadableAnswerAnswersNothing(t *testing.T) {
	for name, question := range map[string]ticket{"by what it shows": {Title: "x"}, "by its key": {Title: "x", Key: "k"}} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			store := newMem()
			g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("file", func(ctx context.Context) (any, error) {
				_, err := interrupt.Ask(ctx, &question)
				if err == nil {
					effects.add()
				}
				return nil, err
			}, nil)}})
			c := call("file", `{}`)
			c.StartID = "work"
			mustAnswer(t, g, mustAsk(t, g, c), `{"selectionIdx":0}`)
			id := func() checkpoint.ID {
				s, err := g.Inspect(t.Context(), "ann", "work")
				if err != nil {
					t.Fatal(err)
				}
				return s.ID
			}()
			rewrite(t, store, id, func(in *checkpoint.Interaction) { in.Rounds[0].Questions[0].Version = 3 })
			if outcome, err := g.Invoke(t.Context(), c); err == nil && outcome.Prompt == nil {
				t.Errorf("the tool went on: %+v", outcome)
			}
			effects.want(t, 0)
		})
	}
}

// R2: a key that was used under a type's former name is used.
func TestKeyUnderAFormerName(t *testing.T) {
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("file", func(ctx context.Context) (any, error) {
		if _, resumed := interrupt.ResumeFrom(ctx); resumed {
			return nil, &ticket{Title: "another", Key: "k"}
		}
		return nil, &ticket{Title: "x", Key: "k"}
	}, nil)}})
	c := call("file", `{}`)
	c.StartID = "work"
	p := mustAsk(t, g, c)
	mustAnswer(t, g, p, `{"selectionIdx":0}`)
	rewrite(t, store, p.Interaction, age)
	mustFail(t, g, c, gate.ErrInvalidQuestion)
}
