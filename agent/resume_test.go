package agent_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// R21: a run that is unknown, of another scope, swept or tampered with is refused, and loses nothing.
func TestResumeBadRuns(t *testing.T) {
	var effects atomic.Int64
	store := memstore.New()
	now := time.Now()
	w := open(t, store, worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, model: after(deploying("a")),
		gate: gate.Options{Now: func() time.Time { return now }},
	})
	run := w.start()
	yes := to(of(t, run, "a"), allow)
	_, err := w.tryResume(checkpoint.ID{1})
	wantCode(t, "unknown", err, gate.ErrInvalidContinuation)
	_, err = w.agent.Resume(t.Context(), agent.Resume{Scope: "bob", Run: run.ID, Answers: []agent.Answer{yes}}).Run()
	wantCode(t, "another scope", err, gate.ErrInvalidContinuation)
	foreign := yes
	foreign.Interaction = checkpoint.ID{2}
	_, err = w.tryResume(run.ID, foreign)
	wantCode(t, "an interaction that is not of the run", err, gate.ErrInvalidContinuation)
	_, err = w.tryResume(run.ID, yes, yes)
	wantCode(t, "answered twice", err, gate.ErrInvalidAnswer)

	record, err := store.Load(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := store.Rows(t.Context(), run.ID, "blob", 1)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	put := func(data []byte) {
		t.Helper()
		batch := &checkpoint.Batch{Time: now, Rows: []checkpoint.RowPut{{
			Row: checkpoint.Row{ID: run.ID, Name: rows[0].Name, Data: data}, Epoch: record.Claim.Epoch,
		}}}
		if err := store.Commit(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range map[string][]byte{"truncated": rows[0].Data[:40], "tampered": flip(rows[0].Data)} {
		put(data)
		_, err := w.tryResume(run.ID, yes)
		wantCode(t, name, err, gate.ErrUnavailable)
		if record, err = store.Load(t.Context(), run.ID); err != nil {
			t.Fatal(err)
		}
	}
	put(rows[0].Data)
	wantFinished(t, w.resume(run.ID, yes), "[deployed a]")
	if effects.Load() != 1 {
		t.Errorf("%d effects", effects.Load())
	}
	now = now.Add(25 * time.Hour)
	for range 3 {
		if _, err := w.agent.Runs(t.Context(), gate.RunQuery{Scope: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = w.tryResume(run.ID)
	wantCode(t, "swept", err, gate.ErrInvalidContinuation)
}

func flip(data []byte) []byte {
	data = bytes.Clone(data)
	data[len(data)/2] ^= 1
	return data
}

// A tool whose revision changed has a problem of its own; the rest of the run goes on.
func TestRevisionChanged(t *testing.T) {
	var effects atomic.Int64
	store := memstore.New()
	m := after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("p", "plan", struct{}{})))
	plan := gate.NewTool("plan", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := interrupt.Ask(ctx, interrupt.ToolPermission("plan", "Plan it"))
		return "planned", err
	}, nil)
	first := open(t, store, worldOptions{tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{Revision: "1"}), plan}, model: m})
	run := first.start()
	wantWaiting(t, run, "a", "p")
	w := open(t, store, worldOptions{tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{Revision: "2"}), plan}, model: m})
	again := w.resume(run.ID, to(of(t, run, "a"), allow), to(of(t, run, "p"), allow))
	if again.Status != agent.Waiting || len(again.Problems) != 1 || again.Problems[0].Call != "a" || len(again.Questions) != 0 {
		t.Fatalf("have %+v", again)
	}
	wantCode(t, "revision", again.Problems[0].Err, gate.ErrRevisionChanged)
	seen, err := w.agent.Inspect(t.Context(), "ann", run.ID)
	if err != nil || len(seen.Questions) != 1 || seen.Questions[0].Call != "a" {
		t.Errorf("inspect: %+v, %v", seen, err)
	}
	back := open(t, store, worldOptions{tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{Revision: "1"}), plan}, model: m})
	wantFinished(t, back.resume(run.ID, to(of(t, run, "a"), allow)), "[deployed a][planned]")
}
