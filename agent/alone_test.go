package agent_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

// A slots store is what eino asks for, in memory.
type slots struct{ sync.Map }

func (s *slots) Get(_ context.Context, id string) ([]byte, bool, error) {
	blob, ok := s.Load(id)
	if !ok {
		return nil, false, nil
	}
	return blob.([]byte), true, nil
}

func (s *slots) Set(_ context.Context, id string, blob []byte) error {
	s.Store(id, bytes.Clone(blob))
	return nil
}

// einoAlone is an agent whose tool pays when it is resumed, as eino's documentation shows it. It
// returns a function that answers the one question.
func einoAlone(t *testing.T, payments *atomic.Int64) func() error {
	t.Helper()
	pay := native{"pay", func(ctx context.Context) (string, error) {
		was, _, _ := tool.GetInterruptState[string](ctx)
		target, has, _ := tool.GetResumeContext[string](ctx)
		if !was || !target || !has {
			return "", tool.StatefulInterrupt(ctx, "pay?", "pay")
		}
		payments.Add(1)
		return "paid", nil
	}}
	build := chat("A", after(scripted.Do(call("c", "pay", `{}`))), compose.ToolsNodeConfig{Tools: []tool.BaseTool{pay}})
	store := &slots{}
	runner := func() *adk.Runner { // with an agent of its own: one agent in several runs at once is a data race of eino's
		a, err := build(context.Background())
		if err != nil {
			t.Error(err)
		}
		return adk.NewRunner(context.Background(), adk.RunnerConfig{Agent: a, CheckPointStore: store})
	}
	id := ""
	events := runner().Run(t.Context(), []*schema.Message{schema.UserMessage("x")}, adk.WithCheckPointID("cp"))
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		if event.Action != nil && event.Action.Interrupted != nil {
			id = event.Action.Interrupted.InterruptContexts[0].ID
		}
	}
	return func() error {
		events, err := runner().ResumeWithParams(context.Background(), "cp", &adk.ResumeParams{Targets: map[string]any{id: "yes"}})
		if err != nil {
			return err
		}
		for event, ok := events.Next(); ok; event, ok = events.Next() {
			if event.Err != nil {
				return event.Err
			}
		}
		return nil
	}
}

// R26, R27: the same answer three times pays once; eino alone pays three times.
func TestThreeAnswersPayOnce(t *testing.T) {
	var alone, effects atomic.Int64
	answer := einoAlone(t, &alone)
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, model: after(deploying("a")),
	})
	run := w.start()
	for range 3 {
		if err := answer(); err != nil {
			t.Fatal(err)
		}
		wantFinished(t, w.resume(run.ID, to(of(t, run, "a"), allow)), "[deployed a]")
	}
	if alone.Load() != 3 || effects.Load() != 1 {
		t.Errorf("eino alone paid %d times (want 3), ours %d times (want 1)", alone.Load(), effects.Load())
	}
}

// R23: of sixteen that resume at once one goes on and pays, the others get busy or are told the end;
// with eino alone all sixteen pay.
func TestSixteenResumesPayOnce(t *testing.T) {
	var alone, effects atomic.Int64
	answer := einoAlone(t, &alone)
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, model: after(deploying("a")),
	})
	run := w.start()
	yes := to(of(t, run, "a"), allow)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if err := answer(); err != nil {
				t.Error(err)
			}
			again, err := w.tryResume(run.ID, yes)
			if err != nil && !errors.Is(err, gate.ErrBusy) || err == nil && again.Status != agent.Finished {
				t.Errorf("have %+v, %v", again, err)
			}
		})
	}
	wg.Wait()
	if alone.Load() != 16 || effects.Load() != 1 {
		t.Errorf("eino alone paid %d times (want 16), ours %d times (want 1)", alone.Load(), effects.Load())
	}
}
