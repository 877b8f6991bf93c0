package agent_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

// R25: a run stops at a question, survives the restart of everything, and goes on with the answer.
// A run that has ended tells how, and runs nothing.
func TestRunSurvivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "parley.db")
	var effects atomic.Int64
	m := after(scripted.Do(call("c1", "deploy", deployInput{"api"})))
	process := func(use func(w *world)) {
		store, err := boltstore.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := open(t, store, worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: m})
		use(w)
		w.close()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var run *agent.Run
	process(func(w *world) {
		run = w.start()
		wantWaiting(t, run, "c1")
	})
	process(func(w *world) {
		seen, err := w.agent.Inspect(t.Context(), "ann", run.ID)
		if err != nil || len(seen.Questions) != 1 || seen.Questions[0].Prompt.Token != "" || seen.Status != agent.Waiting {
			t.Fatalf("inspect: %+v, %v", seen, err)
		}
		wantTimes(t, run, seen)
		page, err := w.agent.Runs(t.Context(), gate.RunQuery{Scope: "ann"})
		if err != nil || len(page.Runs) != 1 || page.Runs[0].ID != run.ID {
			t.Fatalf("runs: %+v, %v", page, err)
		}
		last := w.resume(run.ID, to(of(t, run, "c1"), allow))
		wantFinished(t, last, "[deployed api]")
		seen, err = w.agent.Inspect(t.Context(), "ann", run.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantTimes(t, last, seen)
	})
	asked := m.Asked()
	process(func(w *world) {
		wantFinished(t, w.resume(run.ID), "[deployed api]")
		wantFinished(t, w.resume(run.ID, to(of(t, run, "c1"), allow)), "[deployed api]")
	})
	if effects.Load() != 1 || m.Asked() != asked {
		t.Errorf("want one effect and no more of the model, have %d, %d more", effects.Load(), m.Asked()-asked)
	}
}

// wantTimes compares the times of a run that stopped with those on record.
func wantTimes(t *testing.T, have, recorded *agent.Run) {
	t.Helper()
	if have.Created.IsZero() || !have.Created.Equal(recorded.Created) || !have.Updated.Equal(recorded.Updated) {
		t.Errorf("have a run from %v to %v, want %v to %v", have.Created, have.Updated, recorded.Created, recorded.Updated)
	}
}

// R31: of several questions of one turn each is answered alone; the others keep their tokens, and
// what has ended does not run again.
func TestParallelQuestions(t *testing.T) {
	for _, order := range [][]string{{"a", "b", "c"}, {"a", "c", "b"}, {"b", "a", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}} {
		for _, streaming := range []bool{false, true} {
			var effects, runs atomic.Int64
			m := after(scripted.Do(
				call("a", "deploy", deployInput{"a"}), call("s", "status", struct{}{}),
				call("b", "deploy", deployInput{"b"}), call("c", "deploy", deployInput{"c"}),
			))
			w := open(t, memstore.New(), worldOptions{
				tools: []*gate.Tool{deploy(&effects, nil), status(&runs, nil)}, model: m, streaming: streaming,
			})
			run := w.start()
			wantWaiting(t, run, "a", "b", "c")
			tokens := map[string]gate.Token{}
			for _, q := range run.Questions {
				tokens[q.Call] = q.Prompt.Token
			}
			for i, id := range order {
				run = w.resume(run.ID, to(of(t, run, id), allow))
				for _, q := range run.Questions {
					if q.Prompt.Token != tokens[q.Call] {
						t.Errorf("order %v: answering %q changed the token of %q", order, id, q.Call)
					}
				}
				if int(effects.Load()) != i+1 {
					t.Errorf("order %v: %d effects after %d answers", order, effects.Load(), i+1)
				}
			}
			wantFinished(t, run, "[deployed a][green][deployed b][deployed c]")
			if runs.Load() != 1 {
				t.Errorf("the sibling that did not ask ran %d times", runs.Load())
			}
		}
	}
}

// R25, R26: who was not told what came of an answer gives it again, and is told where the run stands:
// the other question with its token. The call that was answered does not run again, and the answer
// to an interaction that is none of the run's is still refused.
func TestSameAnswersAgain(t *testing.T) {
	var effects atomic.Int64
	store := memstore.New()
	process := func() *world {
		return open(t, store, worldOptions{
			tools: []*gate.Tool{deploy(&effects, nil)},
			model: after(deploying("a", "b")),
		})
	}
	run := process().start()
	yes, b := to(of(t, run, "a"), allow), of(t, run, "b")
	wantWaiting(t, process().resume(run.ID, yes), "b")
	byID := yes
	byID.Token, byID.By = "", "ann herself"
	for name, again := range map[string]agent.Answer{"the same": yes, "without its token": byID, "another one": to(of(t, run, "a"), reject)} {
		have := process().resume(run.ID, again)
		if len(have.Problems) != 1 || have.Problems[0].Interaction != again.Interaction || of(t, have, "b").Prompt.Token != b.Prompt.Token {
			t.Fatalf("%s: have %+v", name, have)
		}
		wantCode(t, name, have.Problems[0].Err, gate.ErrAlreadyAnswered)
	}
	wantFinished(t, process().resume(run.ID, yes, to(b, allow)), "[deployed a][deployed b]")
	if effects.Load() != 2 {
		t.Errorf("%d effects", effects.Load())
	}
}

// R2, R17: a person's no is told to the model, and which of them it was.
func TestNoIsTold(t *testing.T) {
	var effects atomic.Int64
	m := after(deploying("a", "b", "c"))
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: m})
	run := w.start()
	run = w.resume(run.ID, to(of(t, run, "a"), reject), to(of(t, run, "b"), `{"action":"decline"}`), to(of(t, run, "c"), `{"action":"cancel"}`))
	wantFinished(t, run, "[A person was asked and rejected this call. It was not carried out. Do not make this call again.]"+
		"[A person was asked about this call and declined to answer. It was not carried out. Do not make this call again.]"+
		"[The person who was asked about this call broke off. It was not carried out. Do not make this call again.]")
	if effects.Load() != 0 {
		t.Errorf("a no had %d effects", effects.Load())
	}
}
