package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// R17: a new message while questions are open is refused, or cancels them first, which the model is
// told.
func TestNewMessageWhileQuestionsAreOpen(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)},
		model: after(deploying("a", "b")),
	})
	start := inTalk
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

// R17: a tool that keeps its question open cannot be cancelled that way. The other run is ended for
// good, so that the conversation goes on.
func TestNewMessageWhileAQuestionIsKeptOpen(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{KeepOpen: true})}, model: after(deploying("a")),
	})
	start := inTalk
	first, err := w.agent.Start(t.Context(), start).Run()
	if err != nil {
		t.Fatal(err)
	}
	start.CancelOpen = true
	second, err := w.agent.Start(t.Context(), start).Run()
	if err != nil {
		t.Fatal(err)
	}
	wantWaiting(t, second, "a")
	if ended := w.resume(first.ID); ended.Status != agent.Failed || effects.Load() != 0 {
		t.Errorf("the first run: %+v", ended)
	}
}

// A gathering store lets the first two runs begin at once only.
type gathering struct {
	*memstore.Store
	coming sync.WaitGroup
	came   atomic.Int64
}

func (s *gathering) Commit(ctx context.Context, b *checkpoint.Batch) error {
	if len(b.Puts) > 0 && b.Puts[0].Record.Status == checkpoint.RunLive && b.Puts[0].Record.Revision == 1 && s.came.Add(1) <= 2 {
		s.coming.Done()
		s.coming.Wait()
	}
	return s.Store.Commit(ctx, b)
}

// R23: of two messages of one conversation that come at once one begins a run, on all replicas; the
// other is refused, and when the run has ended the next one begins.
func TestConversationStartsOnce(t *testing.T) {
	var effects atomic.Int64
	store := &gathering{Store: memstore.New()}
	store.coming.Add(2)
	var worlds []*world
	for range 2 {
		worlds = append(worlds, open(t, store, worldOptions{
			tools: []*gate.Tool{deploy(&effects, nil)}, model: after(deploying("a")),
		}))
	}
	start := inTalk
	var wg sync.WaitGroup
	begun := make(chan *agent.Run, 2)
	for _, w := range worlds {
		wg.Go(func() {
			run, err := w.agent.Start(context.Background(), start).Run()
			if err == nil {
				begun <- run
			} else if !errors.Is(err, agent.ErrConversationOpen) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(begun)
	if len(begun) != 1 {
		t.Fatalf("%d runs of one conversation began", len(begun))
	}
	run := <-begun
	_, err := worlds[0].agent.Start(t.Context(), start).Run()
	var taken *gate.Error
	if wantCode(t, "a new message", err, agent.ErrConversationOpen); !errors.As(err, &taken) || taken.Interaction != run.ID {
		t.Errorf("which run it is: %v", err)
	}
	if ended := worlds[1].resume(run.ID, to(run.Questions[0], allow)); ended.Status != agent.Finished {
		t.Fatalf("%+v", ended)
	}
	next, err := worlds[0].agent.Start(t.Context(), start).Run()
	if err != nil {
		t.Fatal(err)
	}
	wantWaiting(t, next, "a")
}

// R24: a loop that waits on the gate goes on when the answer comes by another road, and when nobody
// answers in time.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var effects atomic.Int64
		w := open(t, memstore.New(), worldOptions{
			tools: []*gate.Tool{deploy(&effects, nil)},
			model: after(deploying("a", "b")),
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

// R24: who waits for a run hears of an answer by another road at once, whichever of its questions
// has it.
func TestWaitIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var effects atomic.Int64
		w := open(t, memstore.New(), worldOptions{
			tools: []*gate.Tool{deploy(&effects, nil)}, model: after(deploying("a", "b")), poll: time.Hour,
		})
		run := w.start()
		const when = time.Minute
		time.AfterFunc(when, func() {
			q := of(t, run, "b")
			err := w.gate.Answer(context.Background(), gate.AnswerRequest{
				Interaction: q.Interaction, Round: 1, Scope: "ann", Answers: to(q, allow).Answers,
			})
			if err != nil {
				t.Error(err)
			}
		})
		begun := time.Now()
		next, err := w.agent.Wait(t.Context(), agent.Resume{Scope: "ann", Run: run.ID, Facilities: everything}).Run()
		if err != nil {
			t.Fatal(err)
		}
		wantWaiting(t, next, "a")
		if late := time.Since(begun) - when; late > time.Second {
			t.Errorf("it went on %v after the answer", late)
		}
		w.close()
	})
}
