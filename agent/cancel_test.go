package agent_test

import (
	"context"
	"errors"
	"sync"
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

// heard asks for a permission and notes the end of its context at every run.
func heard(mu *sync.Mutex, ends *[]error) *gate.Tool {
	return gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
		_, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service))
		mu.Lock()
		defer mu.Unlock()
		*ends = append(*ends, ctx.Err())
		return "deployed", err
	}, nil)
}

// R17: a run that is cancelled has its questions recorded as cancelled and its tools told, asks no
// model, and is over: a new message of its conversation begins a run.
func TestCancelRun(t *testing.T) {
	var mu sync.Mutex
	var ends []error
	m := scripted.New(deploying("a", "b"), scripted.Say("never"))
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{heard(&mu, &ends)}, model: m})
	start := inTalk
	run, err := w.agent.Start(t.Context(), start).Run()
	if err != nil {
		t.Fatal(err)
	}
	wantWaiting(t, run, "a", "b")
	if run.Conversation != "talk" {
		t.Errorf("conversation %q", run.Conversation)
	}
	asked := m.Asked()
	var told []gate.Code
	var ended *agent.Run
	for event, err := range w.agent.Cancel(t.Context(), "ann", run.ID).All() {
		if err != nil {
			t.Fatal(err)
		}
		switch event := event.(type) {
		case agent.ToolEnded:
			told = append(told, event.Code)
		case agent.RunFailed:
			ended = event.Run
		}
	}
	if ended == nil || ended.Status != agent.Failed || ended.Conversation != "talk" || m.Asked() != asked {
		t.Errorf("ended as %+v, the model was asked %d times more", ended, m.Asked()-asked)
	}
	if len(told) != 2 || told[0] != gate.ErrCancelled || told[1] != gate.ErrCancelled {
		t.Errorf("tools ended with %v", told)
	}
	if len(ends) != 4 || !errors.Is(ends[2], context.Canceled) || !errors.Is(ends[3], context.Canceled) {
		t.Errorf("contexts ended with %v, want the last two cancelled", ends)
	}
	for _, q := range run.Questions {
		if s, err := w.gate.InspectID(t.Context(), "ann", q.Interaction); err != nil || s.Status != checkpoint.Finished || s.Code != gate.ErrCancelled {
			t.Errorf("%s is recorded as %v %v, %v", q.Call, s.Status, s.Code, err)
		}
	}
	if again := w.resume(run.ID, to(run.Questions[0], allow)); again.Status != agent.Failed {
		t.Errorf("it goes on: %+v", again)
	}
	if _, err := w.agent.Start(t.Context(), start).Run(); err != nil {
		t.Errorf("a new message: %v", err)
	}
}

// A run that was broken off before it asked is cancelled as well, and nothing of it runs.
func TestCancelBrokenOff(t *testing.T) {
	var effects atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	m := scripted.Func(func([]*schema.Message) (*schema.Message, error) {
		stop()
		return deploying("a"), nil
	})
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: m})
	start := releaseIt
	run, err := w.agent.Start(ctx, start).Run()
	if run == nil {
		t.Fatalf("have no run, %v", err)
	}
	asked := m.Asked()
	ended, err := w.agent.Cancel(t.Context(), "ann", run.ID).Run()
	if err != nil || ended.Status != agent.Failed || m.Asked() != asked || effects.Load() != 0 {
		t.Errorf("ended as %+v, %v; asked %d times, %d effects", ended, err, m.Asked()-asked, effects.Load())
	}
	if again, err := w.agent.Cancel(t.Context(), "ann", run.ID).Run(); err != nil || again.Status != agent.Failed {
		t.Errorf("cancelled twice: %+v, %v", again, err)
	}
	if _, err := w.agent.Cancel(t.Context(), "bob", run.ID).Run(); !errors.Is(err, gate.ErrInvalidContinuation) {
		t.Errorf("somebody else's: %v", err)
	}
}

// A run that cannot go on, because the program has its tool no more, does not hold its conversation
// for ever; nor does one whose tool keeps its question open where it is cancelled.
func TestCancelRunWhoseQuestionStaysOpen(t *testing.T) {
	for name, gone := range map[string]bool{"its tool is gone": true, "its tool keeps it open": false} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			var effects, looks atomic.Int64
			o := worldOptions{
				tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{KeepOpen: true}), status(&looks, nil)},
				model: after(scripted.Do(call("a", "deploy", deployInput{"a"}))),
			}
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
			_, err = w.agent.Start(t.Context(), start).Run()
			wantCode(t, "the conversation", err, agent.ErrConversationOpen)
			if ended, err := w.agent.Cancel(t.Context(), "ann", run.ID).Run(); err != nil || ended.Status != agent.Failed {
				t.Fatalf("cancelled: %+v, %v", ended, err)
			}
			if ended, err := w.tryResume(run.ID, to(q, allow)); err != nil || ended.Status != agent.Failed {
				t.Fatalf("it goes on: %+v, %v", ended, err)
			}
			next, err := w.agent.Start(t.Context(), start).Run()
			if err != nil {
				t.Fatal(err)
			}
			wantFinished(t, next, "hello")
			if effects.Load() > 0 {
				t.Error("the tool had its effect")
			}
		})
	}
}
