package agent_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// A run that cannot go on, because the program has its tool no more, does not hold its conversation
// for ever: it is cancelled, and nothing of it runs.
func TestCancelRunThatCannotGoOn(t *testing.T) {
	for name, gone := range map[string]bool{"its tool is gone": true, "it can go on": false} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			var effects, looks atomic.Int64
			o := worldOptions{tools: []*gate.Tool{deploy(&effects, nil), status(&looks, nil)}, model: after(scripted.Do(
				call("a", "deploy", deployInput{"a"})))}
			start := agent.Start{
				Scope: "ann", Conversation: "c", Messages: []*schema.Message{schema.UserMessage("release it")}, Facilities: everything,
			}
			first := open(t, store, o)
			run, err := first.agent.Start(t.Context(), start).Run()
			if err != nil {
				t.Fatal(err)
			}
			q := of(t, run, "a")
			o.model = scripted.New(scripted.Say("hello"))
			if gone {
				o.tools = o.tools[1:]
			}
			w := open(t, store, o)
			if gone {
				if _, err := w.tryResume(run.ID); err == nil {
					t.Fatal("the run went on without its tool")
				}
			}
			wantCode(t, "of another scope", w.agent.Cancel(t.Context(), "bob", run.ID), gate.ErrInvalidContinuation)
			_, err = w.agent.Start(t.Context(), start).Run()
			wantCode(t, "the conversation", err, agent.ErrConversationOpen)
			for range 2 {
				if err := w.agent.Cancel(t.Context(), "ann", run.ID); err != nil {
					t.Fatal(err)
				}
			}
			ended, err := w.tryResume(run.ID, to(q, allow))
			if err != nil || ended.Status != agent.Failed || len(ended.Questions) > 0 {
				t.Fatalf("have %+v, %v", ended, err)
			}
			next, err := w.agent.Start(t.Context(), start).Run()
			if err != nil {
				t.Fatal(err)
			}
			wantFinished(t, next, "hello")
			in, err := first.gate.InspectID(t.Context(), "ann", q.Interaction)
			if want := map[bool]checkpoint.Status{true: checkpoint.Open, false: checkpoint.Answered}[gone]; err != nil || in.Status != want {
				t.Errorf("the question: %v, %v, want %v", in.Status, err, want)
			}
			if effects.Load() > 0 {
				t.Error("the tool had its effect")
			}
		})
	}
}

// R23: a run that goes on is not cancelled under whoever has it.
func TestCancelRunThatGoesOn(t *testing.T) {
	var w *world
	var id checkpoint.ID
	pay := gate.NewTool("pay", func(ctx context.Context, _ struct{}) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("pay", "Pay")); err != nil {
			return "", err
		}
		if err := w.agent.Cancel(ctx, "ann", id); !errors.Is(err, gate.ErrBusy) {
			t.Errorf("cancel: %v", err)
		}
		return "paid", nil
	}, nil)
	w = open(t, memstore.New(), worldOptions{tools: []*gate.Tool{pay}, model: after(scripted.Do(call("p", "pay", struct{}{})))})
	run := w.start()
	id = run.ID
	wantFinished(t, w.resume(id, to(of(t, run, "p"), allow)), "[paid]")
}
