package agent_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

// R33: a run for which there is no room stops with busy, and goes on where it was when another one has
// made room.
func TestRunWithoutRoom(t *testing.T) {
	var effects atomic.Int64
	long := strings.Repeat("x", 10_000)
	m := scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
		if r := results(input); r != "" {
			return scripted.Say("done"), nil
		}
		answer := deploying("a")
		answer.Content = long
		return answer, nil
	})
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, model: m,
		gate: gate.Options{Limits: gate.Limits{Prompt: 4000, State: 1000}, Capacity: gate.Capacity{Bytes: 31_000}},
	})
	first := w.start()
	wantWaiting(t, first, "a")
	second, err := w.agent.Start(t.Context(), agent.Start{
		Scope: "ann", Messages: []*schema.Message{schema.UserMessage(long)}, Facilities: everything,
	}).Run()
	wantCode(t, "no room", err, gate.ErrBusy)
	if second == nil || second.Status != agent.Waiting {
		t.Fatalf("have %+v", second)
	}
	asked := m.Asked()
	if asked != 2 {
		t.Fatalf("the model was asked %d times", asked)
	}
	wantFinished(t, w.resume(first.ID, to(first.Questions[0], allow)), "done")
	for range 3 { // what a commit packs makes room in its turn
		if second = w.resume(second.ID); len(second.Questions) > 0 {
			break
		}
	}
	wantWaiting(t, second, "a")
	wantFinished(t, w.resume(second.ID, to(second.Questions[0], allow)), "done")
	if effects.Load() != 2 {
		t.Errorf("%d effects", effects.Load())
	}
}
