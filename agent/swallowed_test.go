package agent_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// swallows is a middleware that makes words of every error of a tool.
func swallows(name string) compose.ToolMiddleware {
	return compose.ToolMiddleware{Invokable: func(next compose.InvokableToolEndpoint) compose.InvokableToolEndpoint {
		return func(ctx context.Context, in *compose.ToolInput) (*compose.ToolOutput, error) {
			out, err := next(ctx, in)
			if err != nil && in.Name == name {
				return &compose.ToolOutput{Result: "it failed"}, nil
			}
			return out, err
		}
	}}
}

// R25: a question that a middleware took for a failure is an error, and the model is not asked on:
// alone, and beside another that came through. A program without that middleware goes on with the
// run, the question still open.
func TestSwallowedQuestion(t *testing.T) {
	for name, calls := range map[string][]scripted.Call{
		"alone":           {call("a", "deploy", deployInput{"a"})},
		"beside another":  {call("a", "deploy", deployInput{"a"}), call("p", "plan", struct{}{})},
		"in another turn": {call("s", "status", struct{}{})},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			var effects, looks atomic.Int64
			plan := gate.NewTool("plan", func(ctx context.Context, _ struct{}) (string, error) {
				_, err := interrupt.Ask(ctx, interrupt.ToolPermission("plan", "Plan it"))
				return "planned", err
			}, nil)
			m, turns := after(scripted.Do(calls...)), 1
			if name == "in another turn" {
				m = scripted.New(scripted.Do(calls...), scripted.Do(call("a", "deploy", deployInput{"a"})), scripted.Say("done"))
				turns = 2
			}
			o := worldOptions{tools: []*gate.Tool{deploy(&effects, nil), plan, status(&looks, nil)}, model: m}
			bad := o
			bad.middlewares = []compose.ToolMiddleware{swallows("deploy")}
			w := open(t, store, bad)
			start := agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("release it")}, Facilities: everything}
			run, err := w.agent.Start(t.Context(), start).Run()
			wantCode(t, "start", err, agent.ErrSwallowed)
			id := run.ID
			_, err = w.tryResume(id)
			wantCode(t, "resume", err, agent.ErrSwallowed)
			if m.Asked() != turns {
				t.Errorf("the model was asked %d times, want %d", m.Asked(), turns)
			}
			w.close()

			w = open(t, store, o)
			for run = w.resume(id); run.Status == agent.Waiting; {
				var answers []agent.Answer
				for _, q := range run.Questions {
					answers = append(answers, to(q, allow))
				}
				if len(answers) == 0 {
					t.Fatalf("nothing is asked: %+v", run)
				}
				run = w.resume(run.ID, answers...)
			}
			if run.Status != agent.Finished || effects.Load() != 1 {
				t.Errorf("have %+v, %d effects", run, effects.Load())
			}
		})
	}
}
