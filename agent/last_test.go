package agent_test

import (
	"context"
	"fmt"
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

// returning builds an agent whose tool's result is its last message: eino returns it directly.
func returning(name string, face tool.BaseTool) agent.Build {
	return func(ctx context.Context) (adk.Agent, error) {
		config := &adk.ChatModelAgentConfig{Name: name, Description: "d", Model: agent.Model(scripted.Func(
			func([]*schema.Message) (*schema.Message, error) {
				m := scripted.Do(call("p1", "pay", map[string]int{"amount": 7}))
				m.Content = "I pay."
				return m, nil
			}))}
		config.ToolsConfig.Tools = []tool.BaseTool{face}
		config.ToolsConfig.ReturnDirectly = map[string]bool{"pay": true}
		return adk.NewChatModelAgent(ctx, config)
	}
}

// The message of a run is its last one, also where that is a tool's: after a question, whole or in
// pieces, at the top and in an agent that is a tool. (Of a tool whose results are parts eino v0.7
// says nothing there.)
func TestLastMessageIsOfATool(t *testing.T) {
	for _, make := range []func(*payer) tool.BaseTool{
		func(p *payer) tool.BaseTool { return invokes{p} },
		func(p *payer) tool.BaseTool { return streams{p} },
	} {
		for _, streaming := range []bool{false, true} {
			for _, nested := range []bool{false, true} {
				var effects atomic.Int64
				one := make(&payer{effects: &effects})
				t.Run(fmt.Sprintf("%T,streaming=%v,nested=%v", one, streaming, nested), func(t *testing.T) {
					half, face, err := agent.Wrap(t.Context(), one, nil)
					if err != nil {
						t.Fatal(err)
					}
					build, want := returning("release", face), "paid 7"
					if nested {
						inner, err := agent.AgentTool(t.Context(), returning("clerk", face))
						if err != nil {
							t.Fatal(err)
						}
						top := after(scripted.Do(call("a1", "clerk", map[string]string{"request": "pay"})))
						build, want = chat("release", agent.Model(top), compose.ToolsNodeConfig{Tools: []tool.BaseTool{inner}}), "[paid 7]"
					}
					w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{half}, build: build, streaming: streaming})
					run := w.start()
					wantWaiting(t, run, "p1")
					wantFinished(t, w.resume(run.ID, to(run.Questions[0], allow)), want)
					if n := effects.Load(); n != 1 {
						t.Errorf("want one payment, have %d", n)
					}
				})
			}
		}
	}
}
