package agent_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

// A slot is a checkpoint store for one graph.
type slot struct{ data []byte }

func (s *slot) Get(context.Context, string) ([]byte, bool, error) { return s.data, s.data != nil, nil }
func (s *slot) Set(_ context.Context, _ string, data []byte) error {
	s.data = data
	return nil
}

// graphTool is a tool of eino's that runs a graph with tools of its own in it, and goes on with it
// where it was interrupted, as eino's documentation shows.
type graphTool struct {
	node *compose.ToolsNode
	do   *schema.Message
}

func (g graphTool) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: "graph", Desc: "d"}, nil
}

func (g graphTool) InvokableRun(ctx context.Context, _ string, _ ...tool.Option) (string, error) {
	graph := compose.NewGraph[*schema.Message, []*schema.Message]()
	err := errors.Join(graph.AddToolsNode("tools", g.node), graph.AddEdge(compose.START, "tools"), graph.AddEdge("tools", compose.END))
	if err != nil {
		return "", err
	}
	store := &slot{}
	_, _, store.data = tool.GetInterruptState[[]byte](ctx)
	runnable, err := graph.Compile(ctx, compose.WithCheckPointStore(store))
	if err != nil {
		return "", err
	}
	out, err := runnable.Invoke(ctx, g.do, compose.WithCheckPointID("graph"))
	if _, ok := compose.ExtractInterruptInfo(err); ok {
		return "", tool.CompositeInterrupt(ctx, "graph", store.data, err)
	}
	if err != nil {
		return "", err
	}
	return results(out), nil
}

// Questions of tools in a graph in a tool of eino's are questions of the run, each answered alone, and
// calls of their own for each call of that tool.
func TestToolsOfAGraphInATool(t *testing.T) {
	var effects atomic.Int64
	pay := deploy(&effects, nil)
	node, err := compose.NewToolNode(t.Context(), &compose.ToolsNodeConfig{Tools: []tool.BaseTool{agent.Tool(pay)}})
	if err != nil {
		t.Fatal(err)
	}
	graph := graphTool{node, scripted.Do(call("a", "deploy", deployInput{"a"}), call("b", "deploy", deployInput{"b"}))}
	m := scripted.New(scripted.Do(call("1", "graph", struct{}{})), scripted.Do(call("1", "graph", struct{}{})), scripted.Say("done"))
	store := memstore.New()
	process := func() *world {
		return open(t, store, worldOptions{tools: []*gate.Tool{pay}, plain: []tool.BaseTool{graph}, model: m})
	}
	run := process().start()
	for range 2 {
		wantWaiting(t, run, "a", "b")
		if q := of(t, run, "a"); !slices.Equal(q.Agents, []string{"release"}) {
			t.Errorf("agents: %v", q.Agents)
		}
		token := of(t, run, "b").Prompt.Token
		run = process().resume(run.ID, to(of(t, run, "a"), allow))
		wantWaiting(t, run, "b")
		if of(t, run, "b").Prompt.Token != token {
			t.Error("the token changed")
		}
		run = process().resume(run.ID, to(of(t, run, "b"), allow))
	}
	wantFinished(t, run, "done")
	if effects.Load() != 4 {
		t.Errorf("%d effects of 4", effects.Load())
	}
}
