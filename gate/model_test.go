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

// The lifecycle of interactions against a dumb model (R16, R21, R24, R26–R28, R30): random requests
// to two gates on one store, that die in the middle of a run and come again, under a clock that
// goes on.

const modelRounds = 3

// A life is what the model knows of one interaction.
type life struct {
	id        checkpoint.ID
	call      gate.Call
	replay    gate.Replay
	tokens    []gate.Token // by round
	answers   []int        // the recorded choices, by round
	elsewhere []bool       // whether they came by another road
	deadline  time.Time
	state     string // open, answered, attempted (nothing is known of the run) or finished
	runs      int
	effects   int
	deaths    int
}

type world struct {
	*rapid.T
	clock  *clock
	under  [2]checkpoint.Store // what the gates stand on: one store, or two ways to one
	stores [2]*faulty
	gates  [2]*gate.Gate
	lives  []*life
}

func TestModel(t *testing.T) {
	model(t, func() [2]checkpoint.Store { memory := newMem(); return [2]checkpoint.Store{memory, memory} })
}

func model(t *testing.T, newStores func() [2]checkpoint.Store) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t, clock: newClock(), under: newStores()}
		w.open(0)
		w.open(1)
		t.Repeat(map[string]func(*rapid.T){
			"begin":          func(*rapid.T) { w.begin() },
			"answer":         func(*rapid.T) { w.answer() },
			"answer and die": func(*rapid.T) { w.die() },
			"look":           func(*rapid.T) { l := w.pick(0); w.stand(l, l.with(len(l.tokens), -1)) },
			"repeat":         func(*rapid.T) { l := w.pick(1); r := w.round(l); w.stand(l, l.with(r, l.answers[r-1])) },
			"contradict":     func(*rapid.T) { w.contradict() },
			"elsewhere":      func(*rapid.T) { w.answerElsewhere() },
			"garbage":        func(*rapid.T) { w.garbage() },
			"steal":          func(*rapid.T) { w.steal() },
			"wait":           func(t *rapid.T) { w.clock.add(time.Duration(rapid.IntRange(1, 240).Draw(t, "seconds")) * time.Second) },
			"":               func(*rapid.T) { w.check() },
		})
	})
}

func (w *world) open(i int) {
	w.stores[i] = &faulty{Store: w.under[i]}
	opts := &gate.Options{Keys: [][]byte{testKey}, Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler), Retention: 1000 * time.Hour}
	for _, replay := range []gate.Replay{gate.NeverAgain, gate.Repeatable, gate.Recover} {
		opts.Tools = append(opts.Tools, w.tool(replay))
	}
	g, err := gate.Open(context.Background(), w.stores[i], opts)
	if err != nil {
		w.Fatal(err)
	}
	w.gates[i] = g
}

// tool asks modelRounds times and then has its effect; in recovery it only finishes.
func (w *world) tool(replay gate.Replay) *gate.Tool {
	return gate.NewRawTool(fmt.Sprint(replay), func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		var in struct{ N int }
		if err := json.Unmarshal(arguments, &in); err != nil {
			return nil, err
		}
		l := w.lives[in.N]
		l.runs++
		if r, _ := interrupt.ResumeFrom(ctx); r.Recovery {
			return json.RawMessage(`"recovered"`), nil
		}
		picks := []string{}
		for n := range modelRounds {
			picked, err := interrupt.Ask(ctx, choose("0", "1", fmt.Sprint("of round ", n)))
			if err != nil {
				return nil, err
			}
			picks = append(picks, picked.ConfirmedChoice.Title)
		}
		l.effects++
		return json.Marshal(picks)
	}, &gate.ToolOptions{Replay: replay})
}

// pick draws an interaction that has that many recorded answers at least.
func (w *world) pick(answers int) *life {
	var fit []*life
	for _, l := range w.lives {
		if len(l.answers) >= answers {
			fit = append(fit, l)
		}
	}
	if len(fit) == 0 {
		w.Skip("there is none")
	}
	return rapid.SampledFrom(fit).Draw(w.T, "interaction")
}

func (w *world) round(l *life) int { return rapid.IntRange(1, len(l.answers)).Draw(w.T, "round") }

func (w *world) gate() *gate.Gate { return w.gates[rapid.IntRange(0, 1).Draw(w.T, "gate")] }

// with is the call with the token of a round and, where choice is one, its answer.
func (l *life) with(round, choice int) gate.Call {
	c := l.call
	c.Token = l.tokens[round-1]
	if choice >= 0 {
		c.Answers = gate.Answers{l.question(round): fmt.Appendf(nil, `{"selectionIdx":%d}`, choice)}
	}
	return c
}

func (l *life) question(round int) string { return fmt.Sprintf("%s.%d.1", l.id, round) }

func (w *world) late(l *life) bool { return !w.clock.Now().Before(l.deadline) }

func (w *world) begin() {
	l := &life{replay: rapid.SampledFrom([]gate.Replay{gate.NeverAgain, gate.Repeatable, gate.Recover}).Draw(w.T, "replay"), state: "open"}
	l.call = call(fmt.Sprint(l.replay), fmt.Sprintf(`{"N":%d}`, len(w.lives)))
	l.deadline = w.clock.Now().Add(10 * time.Minute)
	w.lives = append(w.lives, l)
	outcome, err := w.gate().Invoke(context.Background(), l.call)
	if err != nil || outcome.Prompt == nil {
		w.Fatalf("begin: %+v, %v", outcome, err)
	}
	l.id, l.tokens = outcome.Interaction, []gate.Token{outcome.Prompt.Token}
}

// answer gives a new answer to the open round.
func (w *world) answer() {
	l := w.pick(0)
	if l.state != "open" {
		w.Skip("it is not open")
	}
	choice := rapid.IntRange(0, 1).Draw(w.T, "choice")
	c := l.with(len(l.tokens), choice)
	if w.late(l) {
		w.fails(c, gate.ErrExpired)
		return
	}
	l.answers, l.elsewhere, l.state = append(l.answers, choice), append(l.elsewhere, false), "answered"
	w.stand(l, c)
}

// die gives a new answer at a gate that dies before it can record what came of it.
func (w *world) die() {
	l := w.pick(0)
	if l.state != "open" || w.late(l) {
		w.Skip("it is not open")
	}
	i := rapid.IntRange(0, 1).Draw(w.T, "gate")
	choice := rapid.IntRange(0, 1).Draw(w.T, "choice")
	w.stores[i].set(func(b *checkpoint.Batch) (before, after error) {
		if len(b.Puts) > 0 && b.Puts[0].Record.ID == l.id && !writes(b, checkpoint.Running) {
			w.stores[i].crash()
		}
		return nil, nil
	})
	_, err := w.gates[i].Invoke(context.Background(), l.with(len(l.tokens), choice))
	if !errors.Is(err, gate.ErrOutcomeUnknown) {
		w.Fatalf("a gate that died: %v", err)
	}
	l.answers, l.elsewhere, l.state = append(l.answers, choice), append(l.elsewhere, false), "attempted"
	l.deaths++
	w.open(i)
}

// stand makes a request that stands for the recorded answers, and holds what comes against where
// the interaction stands.
func (w *world) stand(l *life, c gate.Call) {
	switch again := l.state == "attempted" || l.state == "finished"; {
	case w.late(l):
		w.fails(c, gate.ErrExpired)
	case again && l.replay == gate.Recover:
		w.finishes(l, c, `"recovered"`)
	case l.state == "finished":
		w.fails(c, gate.ErrAlreadyCompleted)
	case l.state == "attempted" && l.replay == gate.NeverAgain:
		w.fails(c, gate.ErrOutcomeUnknown)
	case len(l.answers) == modelRounds:
		want, err := json.Marshal(l.picks())
		if err != nil {
			w.Fatal(err)
		}
		w.finishes(l, c, string(want))
	default:
		w.asks(l, c)
	}
}

func (l *life) picks() []string {
	picks := []string{}
	for _, choice := range l.answers {
		picks = append(picks, fmt.Sprint(choice))
	}
	return picks
}

func (w *world) fails(c gate.Call, code gate.Code) {
	w.Helper()
	if outcome, err := w.gate().Invoke(context.Background(), c); !errors.Is(err, code) {
		w.Fatalf("want %s, have %+v, %v", code, outcome, err)
	}
}

func (w *world) finishes(l *life, c gate.Call, want string) {
	w.Helper()
	outcome, err := w.gate().Invoke(context.Background(), c)
	if err != nil || string(outcome.Result) != want {
		w.Fatalf("want result %s, have %+v, %v", want, outcome, err)
	}
	l.state = "finished"
}

func (w *world) asks(l *life, c gate.Call) {
	w.Helper()
	runs, was := l.runs, l.state
	outcome, err := w.gate().Invoke(context.Background(), c)
	p := outcome.Prompt
	if err != nil || p == nil || p.Round != len(l.answers)+1 || !p.Expires.Equal(l.deadline) {
		w.Fatalf("want the prompt of round %d, have %+v, %v", len(l.answers)+1, outcome, err)
	}
	if len(l.tokens) < p.Round {
		l.tokens = append(l.tokens, p.Token)
	}
	if l.tokens[p.Round-1] != p.Token {
		w.Fatalf("round %d has another token", p.Round)
	}
	if was == "open" && l.runs != runs {
		w.Fatalf("the handler ran for an open prompt")
	}
	l.state = "open"
}

// contradict gives another answer to an answered round.
func (w *world) contradict() {
	l := w.pick(1)
	r := w.round(l)
	c := l.with(r, 1-l.answers[r-1])
	switch {
	case w.late(l):
		w.fails(c, gate.ErrExpired)
	case l.elsewhere[r-1]:
		w.fails(c, gate.ErrAlreadyAnswered)
	default:
		w.fails(c, gate.ErrAnswerConflict)
	}
}

// answerElsewhere answers the latest round by another road.
func (w *world) answerElsewhere() {
	l := w.pick(0)
	choice, round := rapid.IntRange(0, 1).Draw(w.T, "choice"), len(l.tokens)
	err := w.gate().Answer(context.Background(), gate.AnswerRequest{
		Interaction: l.id, Round: round, Scope: "ann", Answers: l.with(round, choice).Answers,
	})
	switch {
	case w.late(l):
		if !errors.Is(err, gate.ErrExpired) {
			w.Fatalf("want expired, have %v", err)
		}
	case len(l.answers) >= round: // answered already
		if same := l.answers[round-1] == choice; same != (err == nil) || !same && !errors.Is(err, gate.ErrAnswerConflict) {
			w.Fatalf("the recorded answer again (%v): %v", same, err)
		}
	case err != nil:
		w.Fatal(err)
	default:
		l.answers, l.elsewhere, l.state = append(l.answers, choice), append(l.elsewhere, true), "answered"
	}
}

// garbage gives an invalid answer to the latest round.
func (w *world) garbage() {
	l := w.pick(0)
	c := l.with(len(l.tokens), 7)
	if w.late(l) {
		w.fails(c, gate.ErrExpired)
		return
	}
	w.fails(c, gate.ErrInvalidAnswer)
}

// steal shows a token that is good to somebody for whom it is not.
func (w *world) steal() {
	l := w.pick(0)
	c := l.with(len(l.tokens), 0)
	switch rapid.IntRange(0, 2).Draw(w.T, "thief") {
	case 0:
		c.Scope = "bob"
	case 1:
		c.Session = "s2"
	default:
		c.Arguments = json.RawMessage(`{"N":-1}`)
	}
	w.fails(c, gate.ErrInvalidContinuation)
}

// check holds the effects against R27.
func (w *world) check() {
	for _, l := range w.lives {
		if l.effects > 1 && (l.replay != gate.Repeatable || l.effects > 1+l.deaths) {
			w.Fatalf("%d effects after %d deaths, replay %d", l.effects, l.deaths, l.replay)
		}
	}
}
