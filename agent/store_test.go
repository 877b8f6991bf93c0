package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

// A stubborn store refuses the commits that stop a run, while it is told to.
type stubborn struct {
	checkpoint.Store
	down atomic.Bool
}

func (s *stubborn) Commit(ctx context.Context, b *checkpoint.Batch) error {
	if s.down.Load() && len(b.Puts) > 0 && b.Puts[0].Record.Status == checkpoint.RunLive {
		return errors.New("disk full")
	}
	return s.Store.Commit(ctx, b)
}

// R25: a store that fails in the middle is told, nothing is shown, and nothing is lost.
func TestStoreThatFails(t *testing.T) {
	var effects, runs atomic.Int64
	store := &stubborn{Store: memstore.New()}
	down := gate.NewTool("down", func(context.Context, struct{}) (string, error) {
		runs.Add(1)
		store.down.Store(true) // from here on
		return "down", nil
	}, &gate.ToolOptions{KeepResult: true})
	w := open(t, store, worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil), down},
		model: after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("d", "down", struct{}{}))),
	})
	run, err := w.agent.Start(t.Context(), releaseIt).Run()
	if !errors.Is(err, gate.ErrUnavailable) || run == nil || len(run.Questions) > 0 {
		t.Fatalf("have %+v, %v", run, err)
	}
	if _, err := w.tryResume(run.ID); !errors.Is(err, gate.ErrUnavailable) && !errors.Is(err, gate.ErrBusy) {
		t.Errorf("while it is down: %v", err)
	}
	store.down.Store(false)
	run = w.resume(run.ID)
	wantWaiting(t, run, "a")
	wantFinished(t, w.resume(run.ID, to(of(t, run, "a"), allow)), "[deployed a][down]")
	if effects.Load() != 1 || runs.Load() != 1 {
		t.Errorf("%d effects, %d runs", effects.Load(), runs.Load())
	}
}

// A hurried store calls a function when a run is about to stop, and then does nothing for a context
// that has ended.
type hurried struct {
	checkpoint.Store
	stops func()
}

func (h *hurried) Commit(ctx context.Context, b *checkpoint.Batch) error {
	if len(b.Puts) > 0 && b.Puts[0].Record.Status.Run() && b.Puts[0].Epoch > 0 {
		h.stops()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return h.Store.Commit(ctx, b)
}

// R25: a caller whose context ends while the checkpoint is being written does not lose it, nor the
// end of the run.
func TestCancelledWhileTheCheckpointIsWritten(t *testing.T) {
	var effects atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	store := &hurried{Store: memstore.New(), stops: cancel}
	w := open(t, store, worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, model: after(deploying("a")),
	})
	run, err := w.agent.Start(ctx, releaseIt).Run()
	if err != nil || ctx.Err() == nil {
		t.Fatalf("have %+v, %v; context %v", run, err, ctx.Err())
	}
	wantWaiting(t, run, "a")

	ctx, cancel = context.WithCancel(t.Context())
	claims := 0
	store.stops = func() {
		if claims++; claims == 2 { // the first is the resume's
			cancel()
		}
	}
	run, err = w.agent.Resume(ctx, agent.Resume{
		Scope: "ann", Run: run.ID, Answers: []agent.Answer{to(of(t, run, "a"), allow)}, Facilities: everything,
	}).Run()
	if err != nil || ctx.Err() == nil {
		t.Fatalf("have %+v, %v; context %v", run, err, ctx.Err())
	}
	wantFinished(t, run, "[deployed a]")
	wantFinished(t, w.resume(run.ID), "[deployed a]")
}

// A faltering store fails at its nth commit: nothing is written then, or everything is and nobody is
// told.
type faltering struct {
	checkpoint.Store
	commits, at atomic.Int64
	written     bool
}

func (f *faltering) Commit(ctx context.Context, b *checkpoint.Batch) error {
	if f.commits.Add(1) != f.at.Load() {
		return f.Store.Commit(ctx, b)
	}
	if f.written {
		if err := f.Store.Commit(ctx, b); err != nil {
			return err
		}
	}
	return errors.New("the disk is not there")
}

// R25, R27: whichever commit fails, written or not, the run goes on when the store serves again, and
// ends; nothing has its effect twice, and what may be missing is told to the model.
func TestStoreThatFailsAtAnyCommit(t *testing.T) {
	for _, written := range []bool{false, true} {
		for n := int64(1); ; n++ {
			what := fmt.Sprintf("commit %d, written=%v", n, written)
			var effects, looks atomic.Int64
			store := &faltering{Store: memstore.New(), written: written}
			w := open(t, store, worldOptions{
				tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{KeepResult: true}), status(&looks, &gate.ToolOptions{KeepResult: true})},
				model: after(scripted.Do(
					call("a", "deploy", deployInput{"a"}), call("s", "status", struct{}{}), call("b", "deploy", deployInput{"b"}))),
			})
			store.commits.Store(0)
			store.at.Store(n)
			run := playOn(t, what, w)
			if store.commits.Load() < n { // it has fewer commits
				if n < 8 {
					t.Fatalf("the run made only %d commits", n-1)
				}
				break
			}
			parts := strings.Split(strings.Trim(run.Message, "[]"), "][")
			if len(parts) != 3 || effects.Load() > 2 || looks.Load() > 1 {
				t.Fatalf("%s: %d effects, %d looks, and the model was told %q", what, effects.Load(), looks.Load(), run.Message)
			}
			known := int64(strings.Count(run.Message, "deployed "))
			if unknown := int64(strings.Count(run.Message, "not known")); known > effects.Load() || known+unknown < effects.Load() {
				t.Errorf("%s: %d effects, and the model was told %q", what, effects.Load(), run.Message)
			}
		}
	}
}

// playOn starts a run and answers its questions one by one, until it has finished; whatever fails is
// tried again.
func playOn(t *testing.T, what string, w *world) *agent.Run {
	t.Helper()
	var answers []agent.Answer
	for range 16 {
		page, err := w.agent.Runs(t.Context(), gate.RunQuery{Scope: "ann", Ended: true})
		if err != nil {
			continue
		}
		var run *agent.Run
		if len(page.Runs) == 0 {
			run, err = w.agent.Start(t.Context(), releaseIt).Run()
		} else {
			run, err = w.tryResume(page.Runs[0].ID, answers...)
		}
		answers = nil
		switch {
		case err != nil || run == nil:
		case run.Status == agent.Finished:
			return run
		case len(run.Questions) > 0:
			answers = []agent.Answer{to(run.Questions[0], allow)}
		}
	}
	t.Fatalf("%s: the run does not end", what)
	return nil
}
