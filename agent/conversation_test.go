package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

// R17: a new message while questions are open is refused, or cancels them first, which the model is
// told.
func TestNewMessageWhileQuestionsAreOpen(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)},
		model: after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("b", "deploy", deployInput{"b"}))),
	})
	start := agent.Start{
		Scope: "ann", Conversation: "talk", Messages: []*schema.Message{schema.UserMessage("x")}, Facilities: everything,
	}
	first, err := w.agent.Start(t.Context(), start).Run()
	if err != nil {
		t.Fatal(err)
	}
	wantWaiting(t, first, "a", "b")
	_, err = w.agent.Start(t.Context(), start).Run()
	wantCode(t, "a new message", err, agent.ErrConversationOpen)
	other := start
	other.Conversation = "another"
	if _, err := w.agent.Start(t.Context(), other).Run(); err != nil {
		t.Errorf("another conversation: %v", err)
	}
	start.CancelOpen = true
	second, err := w.agent.Start(t.Context(), start).Run()
	if err != nil {
		t.Fatal(err)
	}
	wantWaiting(t, second, "a", "b")
	ended := w.resume(first.ID)
	if ended.Status != agent.Finished || strings.Count(ended.Message, "broke off") != 2 || effects.Load() != 0 {
		t.Errorf("the first run: %+v", ended)
	}
}

// R24: a loop that waits on the gate goes on when the answer comes by another road, and when nobody
// answers in time.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var effects atomic.Int64
		w := open(t, memstore.New(), worldOptions{
			tools: []*gate.Tool{deploy(&effects, nil)},
			model: after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("b", "deploy", deployInput{"b"}))),
		})
		run := w.start()
		r := agent.Resume{Scope: "ann", Run: run.ID, Facilities: everything}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := w.agent.Wait(short, r).Run(); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("nobody answered: %v", err)
		}
		time.AfterFunc(time.Minute, func() {
			q := of(t, run, "b")
			err := w.gate.Answer(context.Background(), gate.AnswerRequest{
				Interaction: q.Interaction, Round: 1, Scope: "ann", Answers: to(q, allow).Answers,
			})
			if err != nil {
				t.Error(err)
			}
		})
		next, err := w.agent.Wait(t.Context(), r).Run()
		if err != nil {
			t.Fatal(err)
		}
		wantWaiting(t, next, "a")
		last, err := w.agent.Wait(t.Context(), r).Run() // ten minutes
		if err != nil || last.Status != agent.Finished || !strings.HasPrefix(last.Message, "[Nobody answered") ||
			!strings.HasSuffix(last.Message, "[deployed b]") {
			t.Fatalf("have %+v, %v", last, err)
		}
		w.close()
	})
}
