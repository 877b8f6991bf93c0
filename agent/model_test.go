package agent_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

// An answer that calls a tool that there is not stops the run before anything runs, and is not kept:
// the run that is resumed asks the model again, instead of failing for ever.
func TestToolThatThereIsNot(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		var effects atomic.Int64
		good := false
		m := scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
			if r := results(input); r != "" {
				return scripted.Say(r), nil
			}
			if good {
				return scripted.Do(call("c", "deploy", deployInput{"a"})), nil
			}
			return scripted.Do(call("c", "deploy", deployInput{"a"}), call("d", "nosuch", struct{}{})), nil
		})
		w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: m, streaming: streaming})
		run, err := w.agent.Start(t.Context(), releaseIt).Run()
		if err == nil || run == nil || run.Status != agent.Waiting {
			t.Fatalf("have %+v, %v", run, err)
		}
		good = true
		run = w.resume(run.ID)
		wantWaiting(t, run, "c")
		wantFinished(t, w.resume(run.ID, to(run.Questions[0], allow)), "[deployed a]")
	}
}

// What a model gives to an agent in a tool and does not fit is told to the model.
func TestArgumentsOfAnAgentInATool(t *testing.T) {
	var effects atomic.Int64
	pay := deploy(&effects, nil)
	for _, arguments := range []string{`{"request":`, `{"request":7}`, ``} {
		w := open(t, memstore.New(), worldOptions{
			tools: []*gate.Tool{pay}, plain: []tool.BaseTool{mustAgentTool(t, expert("x", pay))}, model: after(scripted.Do(call("c", "x", arguments))),
		})
		run, err := w.agent.Start(context.Background(), releaseIt).Run()
		if err != nil || run.Status != agent.Finished || !strings.Contains(run.Message, "not carried out") {
			t.Errorf("arguments %q: have %+v, %v", arguments, run, err)
		}
	}
}
