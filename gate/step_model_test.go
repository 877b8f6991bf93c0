package gate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A saga is a handler of random steps and questions, and the dumb model of its steps: how often
// each had its effect, and what a handler was once told of it.
type saga struct {
	*rapid.T
	program []deed
	effects map[string]int
	told    map[string]int
	ids     map[string]string
}

type deed struct {
	key    string // empty: a question
	kind   string // mark, idempotent, check
	breaks bool   // the first effect ends in an error
	twice  bool   // Once is called twice
}

func drawProgram(t *rapid.T) []deed {
	program := make([]deed, rapid.IntRange(1, 6).Draw(t, "length"))
	for i := range program {
		if rapid.IntRange(0, 2).Draw(t, "what") == 0 {
			continue
		}
		program[i] = deed{
			key:    fmt.Sprint("step ", i),
			kind:   rapid.SampledFrom([]string{"mark", "idempotent", "check"}).Draw(t, "kind"),
			breaks: rapid.IntRange(0, 5).Draw(t, "breaks") == 0,
			twice:  rapid.Bool().Draw(t, "twice"),
		}
	}
	return program
}

func (s *saga) handler(ctx context.Context) (any, error) {
	for _, d := range s.program {
		if d.key == "" {
			if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
				return nil, err
			}
			continue
		}
		calls := 1
		if d.twice {
			calls = 2
		}
		for range calls {
			if err := s.once(ctx, d); err != nil {
				return nil, err
			}
		}
	}
	return "done", nil
}

var errBroken = errors.New("broken")

// once runs a step and holds what comes against the model.
func (s *saga) once(ctx context.Context, d deed) error {
	opts := &interrupt.OnceOptions[int]{Idempotent: d.kind == "idempotent"}
	if d.kind == "check" {
		opts.Check = func(_ context.Context, id string) (int, bool, error) {
			s.named(d, id)
			return s.effects[d.key], s.effects[d.key] > 0, nil
		}
	}
	got, err := interrupt.Once(ctx, d.key, func(_ context.Context, id string) (int, error) {
		s.named(d, id)
		if _, told := s.told[d.key]; told {
			s.Fatalf("%+v: a done step ran again", d)
		}
		s.effects[d.key]++
		if d.kind != "idempotent" && s.effects[d.key] > 1 {
			s.Fatalf("%+v: it had its effect twice", d)
		}
		if d.breaks && s.effects[d.key] == 1 {
			return 0, errBroken
		}
		return s.effects[d.key], nil
	}, opts)
	switch was, told := s.told[d.key]; {
	case err != nil && told && !errors.Is(err, gate.ErrUnavailable) && !errors.Is(err, gate.ErrOutcomeUnknown):
		s.Fatalf("%+v: a done step is %v", d, err)
	case err == nil && told && was != got:
		s.Fatalf("%+v: result %d was %d", d, got, was)
	case err == nil && s.effects[d.key] == 0:
		s.Fatalf("%+v: done without an effect", d)
	case err == nil:
		s.told[d.key] = got
	}
	return err
}

func (s *saga) named(d deed, id string) {
	if was := s.ids[d.key]; was != "" && was != id {
		s.Fatalf("%+v: its ID is %s and was %s", d, id, was)
	}
	s.ids[d.key] = id
}

// R4, R23, R25: random handlers at gates that die beside random commits, against the model: no step
// that is not idempotent has its effect twice, a done one never again, and the end is that all are
// done or that one of them is not known.
func TestStepModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &saga{T: t, program: drawProgram(t), effects: map[string]int{}, told: map[string]int{}, ids: map[string]string{}}
		memory := newMem()
		tool := raw("tool", s.handler, &gate.ToolOptions{Replay: gate.Repeatable})
		c := starting()
		if rapid.Bool().Draw(t, "by token") && s.program[0].key == "" {
			c = call("tool", `{}`)
		}
		var err error
		lives := rapid.IntRange(0, 5).Draw(t, "deaths")
		for life := range lives + 20 { // broken steps take some more
			at, after := 0, false
			if life < lives {
				at, after = rapid.IntRange(1, 8).Draw(t, "at"), rapid.Bool().Draw(t, "after")
			}
			m := newMortal(memory, at, after)
			g, openErr := gate.Open(context.Background(), m.store, &gate.Options{
				Tools: []*gate.Tool{tool}, Keys: [][]byte{testKey}, Logger: slog.New(slog.DiscardHandler),
			})
			if openErr != nil {
				t.Fatal(openErr)
			}
			for {
				var outcome gate.Outcome
				if outcome, err = g.Invoke(context.Background(), c); err != nil || outcome.Prompt == nil {
					break
				}
				c.Token = outcome.Prompt.Token
				c.Answers = gate.Answers{outcome.Prompt.Questions[0].ID: []byte(`{"selectionIdx":0}`)}
			}
			m.store.crash()
			if life >= lives && !errors.Is(err, errBroken) {
				break
			}
		}
		s.settled(err)
	})
}

// settled holds the end against the model.
func (s *saga) settled(err error) {
	unknown := 0
	for _, d := range s.program {
		if _, told := s.told[d.key]; d.kind == "mark" && !told {
			unknown++
		}
		if d.key != "" && s.effects[d.key] == 0 && err == nil {
			s.Fatalf("finished, and %+v had no effect", d)
		}
	}
	switch {
	case err == nil, errors.Is(err, gate.ErrAlreadyCompleted):
	case errors.Is(err, gate.ErrOutcomeUnknown) && unknown > 0:
	default:
		s.Fatalf("it ended with %v (%v)", err, errors.Unwrap(err))
	}
}
