package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// Remembered decisions against a dumb model (R19): a table of what stands for whom and what, at two
// gates on one store, under a clock that goes on.

// A subject is what a decision is about: a scope and an argument.
type subject struct {
	scope string
	n     int
}

type standing struct {
	kind string
	due  time.Time
	id   checkpoint.ID // zero: not looked up yet
}

type rights struct {
	*rapid.T
	clock  *clock
	gates  [2]*gate.Gate
	stands map[subject]standing
	open   map[subject][]*gate.Prompt
}

func TestRememberModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &rights{T: t, clock: newClock(), stands: map[subject]standing{}, open: map[subject][]*gate.Prompt{}}
		memory := newMem()
		tool := gate.NewRawTool("tool", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "")); err != nil {
				return nil, err
			}
			return json.RawMessage(`"done"`), nil
		}, &gate.ToolOptions{Remember: &gate.RememberOptions{Lifetime: 5 * time.Minute}})
		for i := range w.gates {
			g, err := gate.Open(context.Background(), memory, &gate.Options{
				Keys: [][]byte{testKey}, Now: w.clock.Now, Tools: []*gate.Tool{tool}, Logger: slog.New(slog.DiscardHandler), Lifetime: gate.NoExpiry,
				AuthorizeAnswer: func(context.Context, gate.Answerer) error { return nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			w.gates[i] = g
		}
		t.Repeat(map[string]func(*rapid.T){
			"call":   func(*rapid.T) { w.invoke() },
			"answer": func(*rapid.T) { w.answer() },
			"plant":  func(*rapid.T) { w.plant() },
			"revoke": func(*rapid.T) { w.revoke() },
			"wait":   func(t *rapid.T) { w.clock.add(time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds")) * time.Second) },
			"":       func(*rapid.T) { w.list() },
		})
	})
}

func (w *rights) gate() *gate.Gate { return w.gates[rapid.IntRange(0, 1).Draw(w.T, "gate")] }

func (w *rights) subject() subject {
	return subject{rapid.SampledFrom([]string{"ann", "bob"}).Draw(w.T, "scope"), rapid.IntRange(0, 2).Draw(w.T, "argument")}
}

func (w *rights) of(s subject) gate.Call {
	c := call("tool", fmt.Sprintf(`{"n":%d}`, s.n))
	c.Scope = s.scope
	return c
}

// live is what stands now.
func (w *rights) live(s subject) (standing, bool) {
	r, ok := w.stands[s]
	return r, ok && w.clock.Now().Before(r.due)
}

func (w *rights) invoke() {
	s := w.subject()
	outcome, err := w.gate().Invoke(context.Background(), w.of(s))
	switch r, ok := w.live(s); {
	case !ok:
		if err != nil || outcome.Prompt == nil {
			w.Fatalf("nothing stands for %v: %+v, %v", s, outcome, err)
		}
		w.open[s] = append(w.open[s], outcome.Prompt)
	case r.kind == "allow_always":
		if err != nil || string(outcome.Result) != `"done"` {
			w.Fatalf("an allowance stands for %v: %+v, %v", s, outcome, err)
		}
	case !errors.Is(err, gate.ErrRejected):
		w.Fatalf("a rejection stands for %v: %+v, %v", s, outcome, err)
	}
}

// take draws an open prompt, and takes it away.
func (w *rights) take() (subject, *gate.Prompt) {
	s := w.subject()
	if len(w.open[s]) == 0 {
		w.Skip("nothing is open")
	}
	i := rapid.IntRange(0, len(w.open[s])-1).Draw(w.T, "prompt")
	p := w.open[s][i]
	w.open[s] = append(w.open[s][:i:i], w.open[s][i+1:]...)
	return s, p
}

func (w *rights) answer() {
	s, p := w.take()
	kind := rapid.SampledFrom([]string{"allow_once", "allow_always", "reject_once", "reject_always"}).Draw(w.T, "kind")
	payload := fmt.Sprintf(`{"optionId":%q}`, kind)
	var err error
	if rapid.Bool().Draw(w.T, "elsewhere") {
		err = w.gate().Answer(context.Background(), answers(p, s.scope, payload))
	} else {
		_, err = w.gate().Invoke(context.Background(), with(w.of(s), p, payload))
		if rejected := kind == "reject_once" || kind == "reject_always"; rejected != errors.Is(err, gate.ErrRejected) {
			w.Fatalf("%s: %v", kind, err)
		} else if rejected {
			err = nil
		}
	}
	if err != nil {
		w.Fatal(err)
	}
	was, ok := w.live(s)
	switch {
	case kind == "allow_once" || kind == "reject_once":
	case ok && was.kind == "reject_always" && kind == "allow_always":
	default:
		now := standing{kind: kind, due: w.clock.Now().Add(5 * time.Minute)}
		if ok && was.kind == kind {
			now.id = was.id
		}
		w.stands[s] = now
	}
}

// plant is an answer of an always kind from outside the scope.
func (w *rights) plant() {
	s, p := w.take()
	w.open[s] = append(w.open[s], p)
	payload := rapid.SampledFrom([]string{allowAlways, rejectAlways}).Draw(w.T, "payload")
	if err := w.gate().Answer(context.Background(), answers(p, "eve", payload)); !errors.Is(err, gate.ErrUnauthorized) {
		w.Fatalf("planted: %v", err)
	}
}

func (w *rights) revoke() {
	s := w.subject()
	r, ok := w.live(s)
	if !ok || r.id.IsZero() {
		w.Skip("nothing stands")
	}
	thief := "bob"
	if s.scope == thief {
		thief = "ann"
	}
	if err := w.gate().Revoke(context.Background(), thief, r.id); !errors.Is(err, gate.ErrInvalidContinuation) {
		w.Fatalf("another scope's: %v", err)
	}
	if err := w.gate().Revoke(context.Background(), s.scope, r.id); err != nil {
		w.Fatal(err)
	}
	if err := w.gate().Revoke(context.Background(), s.scope, r.id); !errors.Is(err, gate.ErrInvalidContinuation) {
		w.Fatalf("again: %v", err)
	}
	delete(w.stands, s)
}

// list holds the lists against the table.
func (w *rights) list() {
	for _, scope := range []string{"ann", "bob"} {
		want := 0
		for s := range w.stands {
			if _, ok := w.live(s); ok && s.scope == scope {
				want++
			}
		}
		page, err := w.gate().Decisions(context.Background(), gate.DecisionQuery{Scope: scope})
		if err != nil || len(page.Decisions) != want {
			w.Fatalf("want %d of %s, have %+v, %v", want, scope, page, err)
		}
		for _, d := range page.Decisions {
			var in struct{ N int }
			if err := json.Unmarshal(d.Arguments, &in); err != nil {
				w.Fatal(err)
			}
			s := subject{scope, in.N}
			r := w.stands[s]
			if d.Kind != r.kind || !d.Expires.Equal(r.due) || !r.id.IsZero() && d.ID != r.id {
				w.Fatalf("listed %+v, want %+v", d, r)
			}
			r.id = d.ID
			w.stands[s] = r
		}
	}
}
