package gate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// R23, W10: a run that lost its claim ends the contexts of what its host does in it, and nothing
// more is called, kept or written in it.
func TestLostRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var effects counter
		store := &remote{Store: memstore.New()}
		g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
		f := face(t, g)
		run := mustBegin(t, f)
		mustStop(t, run, "state")
		run = mustResume(t, f, run.ID())
		type key struct{}
		ctx, cancel := run.Context(context.WithValue(t.Context(), key{}, "value"))
		defer cancel()
		if ctx.Err() != nil || ctx.Value(key{}) != "value" {
			t.Fatal("not the caller's context")
		}
		store.lapse(t)
		<-ctx.Done()
		wantCode(t, "the cause", context.Cause(ctx), gate.ErrBusy)
		late, cancel := run.Context(t.Context())
		defer cancel()
		wantCode(t, "the cause, asked later", context.Cause(late), gate.ErrBusy)

		other := face(t, open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}}))
		again := mustResume(t, other, run.ID())
		mustFail(t, f, inRun(run, "api"), gate.ErrBusy)
		wantCode(t, "keep", run.Keep(t.Context(), "a", nil), gate.ErrBusy)
		_, err := run.Commit(t.Context(), gate.RunCommit{})
		wantCode(t, "commit", err, gate.ErrBusy)
		wantBlob(t, again, "state")
		mustHold(t, other, inRun(again, "api"))
		if _, ok := again.Kept("a"); ok {
			t.Error("what the lost run kept is there")
		}
		mustStop(t, again, "next")
		effects.want(t, 0)
	})
}

// W10: a run that is taken over without a word of the store meets it with what it writes next.
func TestRunTakenOver(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		store := &faulty{Store: process()}
		first, err := gate.Open(t.Context(), store, &gate.Options{Keys: [][]byte{testKey}, Tools: []*gate.Tool{deploy(&counter{}, nil)}})
		if err != nil {
			t.Fatal(err)
		}
		f := face(t, first)
		run := mustBegin(t, f)
		ctx, cancel := run.Context(t.Context())
		defer cancel()
		store.crash()
		again := mustResume(t, face(t, open(t, store, gate.Options{})), run.ID())
		if ctx.Err() != nil {
			t.Error("nobody told of it yet")
		}
		wantCode(t, "keep", run.Keep(t.Context(), "a", nil), gate.ErrBusy)
		<-ctx.Done()
		wantCode(t, "the cause", context.Cause(ctx), gate.ErrBusy)
		mustFail(t, f, inRun(run, "api"), gate.ErrBusy)
		again.Release(t.Context())
	})
}

// W10: who is told that the right to a call was lost (H8) finds the run lost at once.
func TestRunLostWithItsCall(t *testing.T) {
	store := &faulty{Store: memstore.New()}
	tool := gate.NewTool("deploy", func(context.Context, struct {
		Service string `json:"service"`
	}) (string, error) {
		store.crash()
		return "done", nil
	}, nil)
	g, err := gate.Open(t.Context(), store, &gate.Options{Keys: [][]byte{testKey}, Tools: []*gate.Tool{tool}})
	if err != nil {
		t.Fatal(err)
	}
	f := face(t, g)
	run := mustBegin(t, f)
	mustFail(t, f, inRun(run, "api"), gate.ErrOutcomeUnknown)
	ctx, cancel := run.Context(t.Context())
	defer cancel()
	wantCode(t, "the cause", context.Cause(ctx), gate.ErrBusy)
}

// R32: the contexts of a run end where Close waits no longer, and with the run.
func TestRunContextEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(f *gate.Face, run *gate.Run)
		want gate.Code
	}{
		"close": {func(f *gate.Face, run *gate.Run) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			if err := f.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("close: %v", err)
			}
		}, gate.ErrUnavailable},
		"the run": {func(_ *gate.Face, run *gate.Run) { run.Release(t.Context()) }, gate.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			f := face(t, openMem(t))
			run := mustBegin(t, f)
			ctx, cancel := run.Context(t.Context())
			defer cancel()
			tt.end(f, run)
			<-ctx.Done()
			wantCode(t, "the cause", context.Cause(ctx), tt.want)
			if name == "close" { // its claim is the gate's
				mustStop(t, run, "state")
			}
		})
	}
}
