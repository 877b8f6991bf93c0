package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// One operation is a whole run of an agent: from its start to a question, with its checkpoint, and
// on to its end with the answer. store=eino is the floor, the same agent of eino's alone with a map.
func BenchmarkAgent(b *testing.B) {
	for _, n := range []int{2, 50, 200} {
		runs(b, fmt.Sprintf("messages=%d/", n), true, einoRun{input: history(n), questions: 1})
	}
}

// The question is one of an agent in a tool, in a tool of such an agent, and so on. eino's own tool
// puts the checkpoint of the inner agent into that of the outer one; at a depth of 4 that is 43 MB.
func BenchmarkAgentDepth(b *testing.B) {
	for depth := range 7 {
		runs(b, fmt.Sprintf("depth=%d/", depth), depth <= 3, einoRun{input: history(2), questions: 1, depth: depth})
	}
}

// Several tools ask in the same turn, and are answered together: stored-B/question is what the
// stopped run takes in the store for each.
func BenchmarkAgentQuestions(b *testing.B) {
	for _, n := range []int{1, 4, 16} {
		runs(b, fmt.Sprintf("open=%d/", n), true, einoRun{input: history(2), questions: n})
	}
}

// An einoRun is what the agents of a benchmark do.
type einoRun struct {
	input     []*schema.Message
	questions int
	depth     int // of agents in tools above the one that asks
}

func runs(b *testing.B, name string, alone bool, r einoRun) {
	if alone {
		b.Run(name+"store=eino", func(b *testing.B) { r.alone(b) })
	}
	b.Run(name+"store=mem", func(b *testing.B) { r.underGate(b, memstore.New()) })
	b.Run(name+"store=bolt", func(b *testing.B) { r.underGate(b, openBolt(b)) })
}

// build makes the agent: the innermost one has the tool, each other one the agent below it.
func (r einoRun) build(
	ask tool.BaseTool, wrap func(model.BaseChatModel) model.ToolCallingChatModel, asTool func(agent.Build) (tool.BaseTool, error),
) (agent.Build, error) {
	var calls []scripted.Call
	for i := range r.questions {
		calls = append(calls, scripted.Call{ID: "c" + strconv.Itoa(i), Tool: "deploy", Arguments: input{"api"}})
	}
	build := chatAgent(0, wrap(untilResult(calls...)), ask)
	for level := range r.depth {
		inner, err := asTool(build)
		if err != nil {
			return nil, err
		}
		call := scripted.Call{ID: "c", Tool: agentName(level), Arguments: map[string]string{"request": "go on"}}
		build = chatAgent(level+1, wrap(untilResult(call)), inner)
	}
	return build, nil
}

func agentName(level int) string { return "agent" + strconv.Itoa(level) }

func chatAgent(level int, m model.ToolCallingChatModel, t tool.BaseTool) agent.Build {
	return func(ctx context.Context) (adk.Agent, error) {
		return adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
			Name: agentName(level), Description: "d", Model: m,
			ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{t}}},
		})
	}
}

// untilResult makes the calls, and says that it is done when there is a result.
func untilResult(calls ...scripted.Call) *scripted.Model {
	return scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
		if input[len(input)-1].Role == schema.Tool {
			return scripted.Say("done"), nil
		}
		return scripted.Do(calls...), nil
	})
}

// history is a conversation of n messages of 200 bytes.
func history(n int) []*schema.Message {
	messages := make([]*schema.Message, n)
	for i := range messages {
		text := strings.Repeat(fmt.Sprintf("message %d says this and that. ", i), 10)[:200]
		if messages[i] = schema.UserMessage(text); i%2 == 1 && i < n-1 {
			messages[i] = schema.AssistantMessage(text, nil)
		}
	}
	return messages
}

// An einoTool asks as eino's documentation shows it, and tells the model the same of itself as ours.
type einoTool struct{ tool.BaseTool }

func (einoTool) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	was, _, _ := tool.GetInterruptState[string](ctx)
	target, has, _ := tool.GetResumeContext[string](ctx)
	if !was || !target || !has {
		return "", tool.StatefulInterrupt(ctx, "deploy?", arguments)
	}
	return "deployed", nil
}

// einoStore is what eino asks for, in memory.
type einoStore struct{ sync.Map }

func (s *einoStore) Get(_ context.Context, id string) ([]byte, bool, error) {
	blob, ok := s.Load(id)
	if !ok {
		return nil, false, nil
	}
	return blob.([]byte), true, nil
}

func (s *einoStore) Set(_ context.Context, id string, blob []byte) error {
	s.Store(id, bytes.Clone(blob))
	return nil
}

func (r einoRun) alone(b *testing.B) {
	ctx := b.Context()
	plain := func(m model.BaseChatModel) model.ToolCallingChatModel { return m.(model.ToolCallingChatModel) }
	build, err := r.build(einoTool{agent.Tool(gate.NewTool("deploy", deploy, nil))}, plain, func(build agent.Build) (tool.BaseTool, error) {
		inner, err := build(ctx)
		if err != nil {
			return nil, err
		}
		return adk.NewAgentTool(ctx, inner), nil
	})
	if err != nil {
		b.Fatal(err)
	}
	top, err := build(ctx)
	if err != nil {
		b.Fatal(err)
	}
	store := &einoStore{}
	runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: top, CheckPointStore: store})
	measure(b, 1, func(int64) error {
		asked, err := drain(runner.Run(ctx, r.input, adk.WithCheckPointID("cp")))
		if err != nil || len(asked) != r.questions {
			return fmt.Errorf("%d questions: %w", len(asked), err)
		}
		answers := map[string]any{}
		for _, id := range asked {
			answers[id] = "yes"
		}
		events, err := runner.ResumeWithParams(ctx, "cp", &adk.ResumeParams{Targets: answers})
		if err != nil {
			return err
		}
		if asked, err = drain(events); len(asked) > 0 {
			return fmt.Errorf("it asks again")
		}
		return err
	})
	blob, _, _ := store.Get(ctx, "cp")
	b.ReportMetric(float64(len(blob))/float64(r.questions), "stored-B/question")
}

// drain returns the ids of the questions at which eino's agent stopped.
func drain(events *adk.AsyncIterator[*adk.AgentEvent]) (asked []string, err error) {
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		if event.Err != nil {
			err = event.Err
		}
		if event.Action != nil && event.Action.Interrupted != nil {
			for _, point := range event.Action.Interrupted.InterruptContexts {
				asked = append(asked, point.ID)
			}
		}
	}
	return asked, err
}

func (r einoRun) underGate(b *testing.B, store checkpoint.Store) {
	ctx := b.Context()
	g := openGate(b, store)
	asTool := func(build agent.Build) (tool.BaseTool, error) { return agent.AgentTool(ctx, build) }
	build, err := r.build(agent.Tool(gate.NewTool("deploy", deploy, nil)), agent.Model, asTool)
	if err != nil {
		b.Fatal(err)
	}
	a, err := agent.New(ctx, g, build, nil)
	if err != nil {
		b.Fatal(err)
	}
	can := []interrupt.Facility{interrupt.FacilityPermission}
	start := func() (*agent.Run, error) {
		run, err := a.Start(ctx, agent.Start{Scope: "ann", Messages: r.input, Facilities: can}).Run()
		if err == nil && len(run.Questions) != r.questions {
			err = fmt.Errorf("%d questions", len(run.Questions))
		}
		return run, err
	}
	finish := func(run *agent.Run) error {
		resume := agent.Resume{Scope: "ann", Run: run.ID, Facilities: can}
		for _, q := range run.Questions {
			resume.Answers = append(resume.Answers, agent.Answer{
				Interaction: q.Interaction, Token: q.Prompt.Token,
				Answers: gate.Answers{q.Prompt.Questions[0].ID: json.RawMessage(`{"optionId":"allow_once"}`)},
			})
		}
		run, err := a.Resume(ctx, resume).Run()
		if err == nil && run.Status != agent.Finished {
			err = fmt.Errorf("the run is %s", run.Status)
		}
		return err
	}
	measure(b, 1, func(int64) error {
		run, err := start()
		if err != nil {
			return err
		}
		return finish(run)
	})
	b.ReportMetric(stored(b, store, start)/float64(r.questions), "stored-B/question")
}

// stored is how much a store takes for a run that has stopped, beside what it has already.
func stored(b *testing.B, store checkpoint.Store, start func() (*agent.Run, error)) float64 {
	usage := func() int64 {
		all, err := store.Usage(b.Context(), checkpoint.Hash{})
		if err != nil {
			b.Fatal(err)
		}
		return all.Bytes
	}
	before := usage()
	if _, err := start(); err != nil {
		b.Fatal(err)
	}
	return float64(usage() - before)
}
