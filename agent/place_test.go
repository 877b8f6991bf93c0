package agent_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

// R27: what a tool asks a model is no answer of its agent's: it does not shift the agent's turns, and
// is not given to the agent after a crash.
func TestToolAsksTheModelOfItsAgent(t *testing.T) {
	var effects, asked atomic.Int64
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	m := agent.Model(scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
		if input[0].Content == "sum it up" {
			asked.Add(1)
			answer := scripted.Say("a summary")
			answer.Extra = map[string]any{"request": "7"}
			return answer, nil
		}
		switch r := results(input); {
		case r == "":
			return scripted.Do(call("1", "summary", struct{}{})), nil
		case ctx.Err() == nil:
			leave()
			return nil, ctx.Err()
		default:
			return scripted.Say("told: " + r), nil
		}
	}))
	summary := gate.NewTool("summary", func(ctx context.Context, _ struct{}) (string, error) {
		effects.Add(1)
		answer, err := m.Generate(ctx, []*schema.Message{schema.UserMessage("sum it up")})
		if err != nil {
			return "", err
		}
		return answer.Content, nil
	}, &gate.ToolOptions{KeepResult: true})
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{summary}, build: chat("release", m, compose.ToolsNodeConfig{Tools: []tool.BaseTool{agent.Tool(summary)}}),
	})
	run, err := w.agent.Start(ctx, releaseIt).Run()
	if err == nil || run == nil {
		t.Fatalf("have %+v, %v", run, err)
	}
	wantFinished(t, w.resume(run.ID), "told: [a summary]")
	if effects.Load() != 1 || asked.Load() != 1 {
		t.Errorf("%d effects, asked %d times", effects.Load(), asked.Load())
	}
}

// The same beside calls of the same answer: these keep the start ids that they have.
func TestStartIDsBesideAToolThatAsksAModel(t *testing.T) {
	var effects atomic.Int64
	var m model.ToolCallingChatModel
	pay, asked := deploy(&effects, nil), make(chan struct{})
	summary := gate.NewTool("summary", func(ctx context.Context, _ struct{}) (string, error) {
		defer close(asked)
		answer, err := m.Generate(ctx, []*schema.Message{schema.UserMessage("sum it up")})
		if err != nil {
			return "", err
		}
		return answer.Content, nil
	}, nil)
	m = agent.Model(scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
		switch {
		case input[0].Content == "sum it up":
			return scripted.Say("a summary"), nil
		case results(input) != "":
			return scripted.Say("done"), nil
		}
		return scripted.Do(call("1", "summary", struct{}{}), call("2", "deploy", deployInput{"a"})), nil
	}))
	late := compose.ToolMiddleware{Invokable: func(next compose.InvokableToolEndpoint) compose.InvokableToolEndpoint {
		return func(ctx context.Context, in *compose.ToolInput) (*compose.ToolOutput, error) {
			if in.Name == "deploy" {
				<-asked
			}
			return next(ctx, in)
		}
	}}
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{summary, pay}, build: chat("release", m, compose.ToolsNodeConfig{
			Tools: []tool.BaseTool{agent.Tool(summary), agent.Tool(pay)}, ToolCallMiddlewares: []compose.ToolMiddleware{late},
		}),
	})
	run := w.start()
	if q := of(t, run, "2"); q.StartID != run.ID.String()+"/1/2" {
		t.Errorf("the start id is %s", q.StartID)
	}
}

// toolsIn is a tool of eino's that runs other tools in a graph, with ids of its own for their calls.
type toolsIn struct {
	name string
	node *compose.ToolsNode
	do   *schema.Message
}

func (i toolsIn) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: i.name, Desc: "d"}, nil
}

func (i toolsIn) InvokableRun(ctx context.Context, _ string, _ ...tool.Option) (string, error) {
	out, err := i.node.Invoke(ctx, i.do)
	if err != nil {
		return "", err
	}
	return results(out), nil
}

// Tools that run in a tool are calls of their own for each call of that, whatever their ids.
func TestToolsInTools(t *testing.T) {
	var effects atomic.Int64
	notify := gate.NewTool("notify", func(context.Context, struct{}) (string, error) {
		effects.Add(1)
		return "notified", nil
	}, nil)
	node, err := compose.NewToolNode(t.Context(), &compose.ToolsNodeConfig{Tools: []tool.BaseTool{agent.Tool(notify)}})
	if err != nil {
		t.Fatal(err)
	}
	graph := toolsIn{"graph", node, scripted.Do(call("c", "notify", struct{}{}))}
	m := scripted.New(
		scripted.Do(call("1", "graph", struct{}{}), call("2", "graph", struct{}{})), scripted.Do(call("1", "graph", struct{}{})), scripted.Say("done"))
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{notify}, plain: []tool.BaseTool{graph}, model: m})
	wantFinished(t, w.start(), "done")
	if effects.Load() != 3 {
		t.Errorf("%d effects of 3", effects.Load())
	}
}

// Ids are the model's, and whoever writes what the model reads can have them chosen: an id that is
// shortened does not become another one of the same answer.
func TestLongToolCallIDs(t *testing.T) {
	var effects atomic.Int64
	long := strings.Repeat("x", 200)
	sum := sha256.Sum256([]byte(long))
	for _, other := range []string{hex.EncodeToString(sum[:8]), hex.EncodeToString(sum[:16]), hex.EncodeToString(sum[:])} {
		effects.Store(0)
		m := after(scripted.Do(call(long, "deploy", deployInput{"a"}), call(other, "deploy", deployInput{"a"})))
		w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: m})
		run := w.start()
		if len(run.Questions) != 2 {
			t.Fatalf("have %+v", run)
		}
		wantFinished(t, w.resume(run.ID, to(run.Questions[0], allow), to(run.Questions[1], allow)), "[deployed a][deployed a]")
		if effects.Load() != 2 {
			t.Errorf("%d effects", effects.Load())
		}
	}
}

// An id that cannot be kept as it is, or stands for two things, is refused before anything runs: what
// asked under it could not be gone on with.
func TestToolCallIDsThatAreNoText(t *testing.T) {
	for _, id := range []string{"a\xff", "a\x00", "a\x01b", "a\x02", "a\n"} {
		var effects atomic.Int64
		pay := deploy(&effects, nil)
		bad := true
		m := scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
			if r := results(input); r != "" {
				return scripted.Say(r), nil
			}
			if bad {
				return scripted.Do(call(id, "x", map[string]string{"request": "go"})), nil
			}
			return scripted.Do(call("1", "x", map[string]string{"request": "go"})), nil
		})
		w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{pay}, plain: []tool.BaseTool{mustAgentTool(t, expert("x", pay))}, model: m})
		run, err := w.agent.Start(t.Context(), releaseIt).Run()
		wantCode(t, id, err, agent.ErrToolCallIDs)
		bad = false
		run = w.resume(run.ID)
		wantFinished(t, w.resume(run.ID, to(of(t, run, "c"), allow)), "[[deployed x]]")
	}
}

// Arguments that are no text are told to the model, by an agent in a tool as by every tool: what asked
// under them could not be gone on with.
func TestArgumentsThatAreNoText(t *testing.T) {
	var effects atomic.Int64
	pay := deploy(&effects, nil)
	faces := []tool.BaseTool{agent.Tool(pay), mustAgentTool(t, expert("x", pay))}
	for name, arguments := range map[string]string{"deploy": "{\"service\":\"a\xff\"}", "x": "{\"request\":\"a\xff\"}"} {
		w := open(t, memstore.New(), worldOptions{
			tools: []*gate.Tool{pay}, plain: faces, model: after(scripted.Do(call("1", name, arguments))),
		})
		run := w.start()
		if run.Status != agent.Finished || !strings.Contains(run.Message, "not carried out") {
			t.Errorf("%s: have %+v", name, run)
		}
	}
	if effects.Load() != 0 {
		t.Error("something ran")
	}
}

// R27: an agent that is not the last to act gives the same answer after a crash also where that calls
// no tool: what came after it was made of it.
func TestAnswersOfSubAgentsAreKept(t *testing.T) {
	var effects atomic.Int64
	notify := gate.NewTool("notify", func(context.Context, struct{}) (string, error) {
		effects.Add(1)
		return "notified", nil
	}, &gate.ToolOptions{KeepResult: true})
	down, planned := true, 0
	plan := scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
		if planned++; planned > 1 && results(input) == "" { // it thinks otherwise the second time
			return scripted.Do(call("c", "notify", struct{}{})), nil
		}
		return scripted.Say("go"), nil
	})
	act := scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
		switch said := results(input); {
		case said == "":
			return scripted.Do(call("c", "notify", struct{}{})), nil
		case down:
			return nil, errors.New("the model is down")
		default:
			return scripted.Say(said), nil
		}
	})
	build := func(ctx context.Context) (adk.Agent, error) {
		tools := compose.ToolsNodeConfig{Tools: []tool.BaseTool{agent.Tool(notify)}}
		first, err := chat("plan", agent.Model(plan), tools)(ctx)
		second, err2 := chat("act", agent.Model(act), tools)(ctx)
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		return adk.NewSequentialAgent(ctx, &adk.SequentialAgentConfig{Name: "s", Description: "d", SubAgents: []adk.Agent{first, second}})
	}
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{notify}, build: build})
	run, err := w.agent.Start(t.Context(), releaseIt).Run()
	if err == nil || run == nil {
		t.Fatalf("have %+v, %v", run, err)
	}
	down = false
	wantFinished(t, w.resume(run.ID), "[notified]")
	if effects.Load() != 1 || planned != 1 {
		t.Errorf("%d effects, planned %d times", effects.Load(), planned)
	}
}

// Where a tool's result is the end of an agent, it is the last message: of a run, and of an agent in
// a tool, streaming or not.
func TestResultThatIsTheEnd(t *testing.T) {
	var effects atomic.Int64
	pay := deploy(&effects, nil)
	last := func(ctx context.Context) (adk.Agent, error) {
		return adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
			Name: "x", Description: "d", Model: agent.Model(scripted.New(scripted.Do(call("c", "deploy", deployInput{"a"})))),
			ToolsConfig: adk.ToolsConfig{
				ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{agent.Tool(pay)}}, ReturnDirectly: map[string]bool{"deploy": true},
			},
		})
	}
	m := after(scripted.Do(call("1", "x", map[string]string{"request": "go"})))
	outer := chat("top", agent.Model(m), compose.ToolsNodeConfig{Tools: []tool.BaseTool{mustAgentTool(t, last)}})
	for _, streaming := range []bool{false, true} {
		for want, build := range map[string]agent.Build{"deployed a": last, "[deployed a]": outer} {
			w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{pay}, build: build, streaming: streaming})
			run := w.start()
			wantFinished(t, w.resume(run.ID, to(of(t, run, "c"), allow)), want)
		}
	}
}

// The same of a tool that returns its result in pieces.
func TestPiecesThatAreTheEnd(t *testing.T) {
	half, face, err := agent.Wrap(t.Context(), inPieces{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	build := func(ctx context.Context) (adk.Agent, error) {
		return adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
			Name: "x", Description: "d", Model: agent.Model(scripted.New(scripted.Do(call("c", "deploy", deployInput{"a"})))),
			ToolsConfig: adk.ToolsConfig{
				ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{face}}, ReturnDirectly: map[string]bool{"deploy": true},
			},
		})
	}
	for _, streaming := range []bool{false, true} {
		w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{half}, build: build, streaming: streaming})
		wantFinished(t, w.start(), "deployed")
	}
}

type inPieces struct{}

func (inPieces) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: "deploy", Desc: "d"}, nil
}

func (inPieces) StreamableRun(context.Context, string, ...tool.Option) (*schema.StreamReader[string], error) {
	return schema.StreamReaderFromArray([]string{"dep", "loyed"}), nil
}

// R9: arguments that are masked on screen are masked in events.
func TestMaskedArgumentsOfEvents(t *testing.T) {
	var effects atomic.Int64
	pay := deploy(&effects, &gate.ToolOptions{Mask: []string{"service"}})
	for _, arguments := range []string{`{"service":"secret"}`, `{"service":"secret"`} {
		w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{pay}, model: after(scripted.Do(call("c", "deploy", arguments)))})
		for event, err := range w.agent.Start(t.Context(), releaseIt).All() {
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := event.(agent.ToolStarted); ok && strings.Contains(e.Arguments, "secret") {
				t.Errorf("told: %s", e.Arguments)
			}
		}
	}
}
