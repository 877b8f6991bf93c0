package agent_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// expert builds an agent that deploys one service and says what came of it.
func expert(name string, pay *gate.Tool) agent.Build {
	m := agent.Model(after(scripted.Do(call("c", "deploy", deployInput{name}))))
	return chat(name, m, compose.ToolsNodeConfig{Tools: []tool.BaseTool{agent.Tool(pay)}})
}

func mustAgentTool(t *testing.T, build agent.Build) tool.BaseTool {
	t.Helper()
	face, err := agent.AgentTool(t.Context(), build)
	if err != nil {
		t.Fatal(err)
	}
	return face
}

// byAgent returns the run's question that came through that agent.
func byAgent(t *testing.T, run *agent.Run, name string) agent.Question {
	t.Helper()
	i := slices.IndexFunc(run.Questions, func(q agent.Question) bool { return slices.Contains(q.Agents, name) })
	if i < 0 {
		t.Fatalf("agent %q asks nothing in %+v", name, run)
	}
	return run.Questions[i]
}

// R31: several agents in tools ask in one turn, with tool-call ids that are the same in each; every
// one is answered alone, across a restart, and pays once.
func TestAgentsInToolsAskAtOnce(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		for _, order := range [][]string{{"x", "y"}, {"y", "x"}} {
			var effects atomic.Int64
			store := memstore.New()
			process := func() *world {
				pay := deploy(&effects, nil)
				request := map[string]string{"request": "deploy"}
				m := after(scripted.Do(call("1", "x", request), call("2", "y", request), call("c", "deploy", deployInput{"top"})))
				faces := []tool.BaseTool{mustAgentTool(t, expert("x", pay)), mustAgentTool(t, expert("y", pay)), agent.Tool(pay)}
				return open(t, store, worldOptions{tools: []*gate.Tool{pay}, plain: faces, model: m, streaming: streaming})
			}
			run := process().start()
			if len(run.Questions) != 3 || !slices.Equal(byAgent(t, run, "y").Agents, []string{"release", "y"}) {
				t.Fatalf("have %+v", run)
			}
			tokens := map[gate.Token]bool{}
			for _, q := range run.Questions {
				tokens[q.Prompt.Token] = true
			}
			for _, name := range order {
				run = process().resume(run.ID, to(byAgent(t, run, name), allow))
				for _, q := range run.Questions {
					if !tokens[q.Prompt.Token] {
						t.Errorf("the token of %v changed", q.Agents)
					}
				}
			}
			run = process().resume(run.ID, to(byAgent(t, run, "release"), allow))
			wantFinished(t, run, "[[deployed x]][[deployed y]][deployed top]")
			if effects.Load() != 3 {
				t.Errorf("%d effects", effects.Load())
			}
		}
	}
}

// Agents in tools of agents in tools: the question is at the top, with the names of all of them.
func TestAgentsInToolsNest(t *testing.T) {
	var effects atomic.Int64
	pay := deploy(&effects, nil)
	build := expert("4", pay)
	for _, name := range []string{"3", "2", "1"} {
		face := mustAgentTool(t, build)
		info, err := face.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := after(scripted.Do(call("c", info.Name, map[string]string{"request": "go"})))
		build = chat(name, agent.Model(m), compose.ToolsNodeConfig{Tools: []tool.BaseTool{face}})
	}
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{pay}, build: build})
	run := w.start()
	if q := of(t, run, "c"); !slices.Equal(q.Agents, []string{"1", "2", "3", "4"}) {
		t.Fatalf("agents: %v", q.Agents)
	}
	wantFinished(t, w.resume(run.ID, to(of(t, run, "c"), allow)), "[[[[deployed 4]]]]")
	if effects.Load() != 1 {
		t.Errorf("%d effects", effects.Load())
	}
}

// Sequential, parallel and loop agents of eino's, sub-agents, one agent in a tool of eino's own, and a
// graph inside of a tool bring their questions to the top.
func TestAgentsOfEino(t *testing.T) {
	var effects atomic.Int64
	pay := deploy(&effects, nil)
	two := func(ctx context.Context) ([]adk.Agent, error) {
		x, err := expert("x", pay)(ctx)
		y, err2 := expert("y", pay)(ctx)
		return []adk.Agent{x, y}, errors.Join(err, err2)
	}
	request := map[string]string{"request": "go"}
	for name, tt := range map[string]struct {
		build  agent.Build
		rounds []int // how many questions are open after each resume; each resume answers all
	}{
		"sequential": {func(ctx context.Context) (adk.Agent, error) {
			agents, err := two(ctx)
			if err != nil {
				return nil, err
			}
			return adk.NewSequentialAgent(ctx, &adk.SequentialAgentConfig{Name: "s", Description: "d", SubAgents: agents})
		}, []int{1, 1, 0}},
		"parallel, one asks": {func(ctx context.Context) (adk.Agent, error) {
			agents, err := two(ctx)
			if err != nil {
				return nil, err
			}
			if agents[1], err = chat("y", agent.Model(scripted.New(scripted.Say("done"))), compose.ToolsNodeConfig{})(ctx); err != nil {
				return nil, err
			}
			return adk.NewParallelAgent(ctx, &adk.ParallelAgentConfig{Name: "p", Description: "d", SubAgents: agents})
		}, []int{1, 0}},
		"loop": {func(ctx context.Context) (adk.Agent, error) {
			agents, err := two(ctx)
			if err != nil {
				return nil, err
			}
			return adk.NewLoopAgent(ctx, &adk.LoopAgentConfig{Name: "l", Description: "d", SubAgents: agents, MaxIterations: 1})
		}, []int{1, 1, 0}},
		"transfer": {func(ctx context.Context) (adk.Agent, error) {
			m := scripted.Do(call("t", adk.TransferToAgentToolName, map[string]string{"agent_name": "x"}))
			top, err := chat("top", agent.Model(scripted.New(m)), compose.ToolsNodeConfig{})(ctx)
			if err != nil {
				return nil, err
			}
			agents, err := two(ctx)
			if err != nil {
				return nil, err
			}
			return adk.SetSubAgents(ctx, top, agents[:1])
		}, []int{1, 0}},
		"one agent in a tool of eino's": {func(ctx context.Context) (adk.Agent, error) {
			agents, err := two(ctx)
			if err != nil {
				return nil, err
			}
			m := after(scripted.Do(call("1", "x", request)))
			return chat("top", agent.Model(m), compose.ToolsNodeConfig{Tools: []tool.BaseTool{adk.NewAgentTool(ctx, agents[0])}})(ctx)
		}, []int{1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			effects.Store(0)
			store := memstore.New()
			w := open(t, store, worldOptions{tools: []*gate.Tool{pay}, build: tt.build})
			run := w.start()
			want := 0
			for _, n := range tt.rounds {
				if len(run.Questions) != n {
					t.Fatalf("want %d questions, have %+v", n, run)
				}
				want += n
				if n == 0 {
					break
				}
				var answers []agent.Answer
				for _, q := range run.Questions {
					if len(q.Agents) < 1 {
						t.Errorf("a question without its agent: %+v", q)
					}
					answers = append(answers, to(q, allow))
				}
				w = open(t, store, worldOptions{tools: []*gate.Tool{pay}, build: tt.build})
				run = w.resume(run.ID, answers...)
			}
			if run.Status != agent.Finished || int(effects.Load()) != want {
				t.Errorf("%d effects of %d, have %+v", effects.Load(), want, run)
			}
		})
	}
}

// Two agents of eino's own forms that ask at once cannot be gone on with: the run fails and says what
// to use.
func TestTwoAgentsOfEinoAreRefused(t *testing.T) {
	var effects atomic.Int64
	pay := deploy(&effects, nil)
	request := map[string]string{"request": "go"}
	for name, make := range map[string]func(ctx context.Context, x, y adk.Agent) (adk.Agent, error){
		"two agent tools": func(ctx context.Context, x, y adk.Agent) (adk.Agent, error) {
			m := after(scripted.Do(call("1", "x", request), call("2", "y", request)))
			faces := []tool.BaseTool{adk.NewAgentTool(ctx, x), adk.NewAgentTool(ctx, y)}
			return chat("top", agent.Model(m), compose.ToolsNodeConfig{Tools: faces})(ctx)
		},
		"an agent tool beside a tool": func(ctx context.Context, x, _ adk.Agent) (adk.Agent, error) {
			m := after(scripted.Do(call("1", "x", request), call("2", "deploy", deployInput{"a"})))
			return chat("top", agent.Model(m), compose.ToolsNodeConfig{Tools: []tool.BaseTool{adk.NewAgentTool(ctx, x), agent.Tool(pay)}})(ctx)
		},
		"parallel": func(ctx context.Context, x, y adk.Agent) (adk.Agent, error) {
			return adk.NewParallelAgent(ctx, &adk.ParallelAgentConfig{Name: "p", Description: "d", SubAgents: []adk.Agent{x, y}})
		},
	} {
		build := func(ctx context.Context) (adk.Agent, error) {
			x, err := expert("x", pay)(ctx)
			y, err2 := expert("y", pay)(ctx)
			if err := errors.Join(err, err2); err != nil {
				return nil, err
			}
			return make(ctx, x, y)
		}
		w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{pay}, build: build})
		run, err := w.agent.Start(t.Context(), releaseIt).Run()
		if !errors.Is(err, agent.ErrAgents) || run == nil || run.Status != agent.Failed || len(run.Questions) > 0 {
			t.Fatalf("%s: have %+v, %v", name, run, err)
		}
	}
	if effects.Load() != 0 {
		t.Error("something ran")
	}
}

// A graph inside of a tool asks from one of its nodes.
func TestGraphInATool(t *testing.T) {
	var effects atomic.Int64
	graph := compose.NewGraph[string, string]()
	err := errors.Join(
		graph.AddLambdaNode("ask", compose.InvokableLambda(func(ctx context.Context, in string) (string, error) {
			if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("graph", "Go on?")); err != nil {
				return "", err
			}
			effects.Add(1)
			return "done", nil
		})),
		graph.AddEdge(compose.START, "ask"), graph.AddEdge("ask", compose.END))
	if err != nil {
		t.Fatal(err)
	}
	runnable, err := graph.Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	half, face, err := agent.Wrap(t.Context(), native{"graph", func(ctx context.Context) (string, error) { return runnable.Invoke(ctx, "x") }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{half}, plain: []tool.BaseTool{face}, model: after(scripted.Do(call("c", "graph", struct{}{}))),
	})
	run := w.start()
	wantFinished(t, w.resume(run.ID, to(of(t, run, "c"), allow)), "[done]")
	if effects.Load() != 1 {
		t.Errorf("%d effects", effects.Load())
	}
}
