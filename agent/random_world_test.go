package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// A process has a gate and an agent on the disk.
type process struct {
	play  *playing
	store *handle
	gate  *gate.Gate
	agent *agent.Agent
	faces map[string]tool.BaseTool
}

// job is what a random tool is called with.
type job struct {
	ID string `json:"id"` // of the call in the plan
	N  int    `json:"n"`
}

func (p *playing) start() *process {
	p.Helper()
	ctx := context.Background()
	proc := &process{play: p, store: p.disk.open(), faces: map[string]tool.BaseTool{}}
	var tools []*gate.Tool
	for _, t := range p.tools {
		half, face, err := proc.tool(ctx, t)
		if err != nil {
			p.Fatalf("%s: %v", p.name(), err)
		}
		tools, proc.faces[t.name] = append(tools, half), face
	}
	var err error
	proc.gate, err = gate.Open(ctx, proc.store, &gate.Options{
		Tools: tools, Keys: [][]byte{testKey}, Logger: slog.New(slog.DiscardHandler), Retention: gate.NoExpiry,
	})
	if err != nil {
		p.Fatalf("%s: open gate: %v", p.name(), err)
	}
	proc.agent, err = agent.New(ctx, proc.gate, proc.build(p.top), &agent.Options{Name: "random", Streaming: p.streaming})
	if err != nil {
		p.Fatalf("%s: make agent: %v", p.name(), err)
	}
	p.processes = append(p.processes, proc)
	return proc
}

// close ends what is left of a process.
func (proc *process) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := proc.gate.Close(ctx); err != nil && !proc.store.isDead() && !proc.play.troubled {
		proc.play.violated("close gate: %v", err)
	}
}

// build makes the agent of a plan.
func (proc *process) build(a *agentPlan) agent.Build {
	var parts []agent.Build
	for _, part := range a.parts {
		parts = append(parts, proc.build(part))
	}
	if a.kind == "chat" {
		return proc.buildChat(a)
	}
	return func(ctx context.Context) (adk.Agent, error) {
		var subs []adk.Agent
		for _, part := range parts {
			sub, err := part(ctx)
			if err != nil {
				return nil, err
			}
			subs = append(subs, sub)
		}
		if a.kind == "loop" {
			return adk.NewLoopAgent(ctx, &adk.LoopAgentConfig{Name: a.name, Description: "d", SubAgents: subs, MaxIterations: 2})
		}
		return adk.NewSequentialAgent(ctx, &adk.SequentialAgentConfig{Name: a.name, Description: "d", SubAgents: subs})
	}
}

func (proc *process) buildChat(a *agentPlan) agent.Build {
	faces := map[string]tool.BaseTool{}
	for _, calls := range a.turns {
		for _, c := range calls {
			if c.tool != nil {
				faces[c.tool.name] = proc.faces[c.tool.name]
				continue
			}
			face, err := agent.AgentTool(context.Background(), proc.build(c.agent))
			if err != nil {
				proc.play.Fatal(err)
			}
			faces[c.agent.name] = face
		}
	}
	var all []tool.BaseTool
	for _, face := range faces {
		all = append(all, face)
	}
	m := scripted.Func(func(input []*schema.Message) (*schema.Message, error) { return proc.play.answer(a, input) })
	return chat(a.name, agent.Model(m), compose.ToolsNodeConfig{Tools: all})
}

// answer is what the model of an agent answers: the calls of its next turn.
func (p *playing) answer(a *agentPlan, input []*schema.Message) (*schema.Message, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	prefix, turn := "", 0
	for _, m := range input {
		if prefix == "" && m.Role == schema.User {
			prefix = m.Content
		}
		if m.Role == schema.Assistant {
			turn++
		}
	}
	p.hear(input)
	if turn >= len(a.turns) {
		return scripted.Say("done " + a.name), nil
	}
	at := fmt.Sprintf("%s/%s/%d", prefix, a.name, turn)
	if a.fails[turn] && !p.failed[at] {
		p.failed[at] = true
		return nil, errModel
	}
	var calls []scripted.Call
	for i, c := range a.turns[turn] {
		id, name := fmt.Sprintf("%s.%d", at, i), "c"+fmt.Sprint(i)
		if a.fresh {
			name = fmt.Sprintf("f%d", p.asked*100+i)
		}
		if c.agent != nil {
			calls = append(calls, scripted.Call{ID: name, Tool: c.agent.name, Arguments: map[string]string{"request": id}})
			continue
		}
		p.calls[id] = c.tool
		calls = append(calls, scripted.Call{ID: name, Tool: c.tool.name, Arguments: job{id, len(id)}})
	}
	return scripted.Do(calls...), nil
}

var errModel = errors.New("the model is down")

// hear notes what the model was told of each call.
func (p *playing) hear(input []*schema.Message) {
	ids := map[string]string{}
	for _, m := range input {
		for _, c := range m.ToolCalls {
			var in job
			if json.Unmarshal([]byte(c.Function.Arguments), &in) == nil {
				ids[c.ID] = in.ID
			}
		}
		if m.Role == schema.Tool && ids[m.ToolCallID] != "" {
			text := m.Content
			for _, part := range m.UserInputMultiContent {
				text += part.Text
			}
			id := ids[m.ToolCallID]
			if _, known := p.told[id]; !known && strings.Contains(text, "not known") && p.calls[id].fails == "" && p.undisturbed(id) {
				p.violations = append(p.violations, fmt.Sprintf("nothing was in the way of call %s, and the model was told %q", id, text))
			}
			if p.told[id] != text {
				p.log = append(p.log, fmt.Sprintf("    %s is told %.60q", id, text))
			}
			p.told[id] = text
		}
	}
}

// tool makes the two halves of a tool.
func (proc *process) tool(ctx context.Context, t *toolPlan) (*gate.Tool, tool.BaseTool, error) {
	opts := &gate.ToolOptions{Replay: t.replay, KeepResult: t.keep, KeepOpen: t.keepOpen}
	if t.kind == "gate" {
		if t.recover {
			opts.Recover = func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
				text, err := proc.perform(ctx, t, string(arguments))
				if err != nil {
					return nil, err
				}
				return json.Marshal(text)
			}
		}
		half := gate.NewTool(t.name, func(ctx context.Context, in job) (string, error) {
			arguments, err := json.Marshal(in)
			if err != nil {
				return "", err
			}
			return proc.perform(ctx, t, string(arguments))
		}, opts)
		return half, agent.Tool(half), nil
	}
	base := randomTool{proc, t}
	form := map[string]tool.BaseTool{
		"invoke": randomInvokes{base}, "stream": randomStreams{base}, "parts": randomParts{base}, "flow": randomFlows{base},
	}[t.kind]
	return agent.Wrap(ctx, form, opts)
}

// A randomTool is a tool of eino's, in one of its forms.
type randomTool struct {
	proc *process
	plan *toolPlan
}

func (t randomTool) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: t.plan.name, Desc: "d", ParamsOneOf: schema.NewParamsOneOfByParams(map[string]*schema.ParameterInfo{
		"id": {Type: schema.String, Required: true}, "n": {Type: schema.Integer, Required: true},
	})}, nil
}

type (
	randomInvokes struct{ randomTool }
	randomStreams struct{ randomTool }
	randomParts   struct{ randomTool }
	randomFlows   struct{ randomTool }
)

func (t randomInvokes) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	return t.proc.perform(ctx, t.plan, arguments)
}

func (t randomStreams) StreamableRun(ctx context.Context, arguments string, _ ...tool.Option) (*schema.StreamReader[string], error) {
	text, err := t.proc.perform(ctx, t.plan, arguments)
	return schema.StreamReaderFromArray(strings.SplitAfter(text, " ")), err
}

func (t randomParts) InvokableRun(ctx context.Context, a *schema.ToolArgument, _ ...tool.Option) (*schema.ToolResult, error) {
	text, err := t.proc.perform(ctx, t.plan, a.Text)
	return part(text), err
}

func (t randomFlows) StreamableRun(ctx context.Context, a *schema.ToolArgument, _ ...tool.Option) (*schema.StreamReader[*schema.ToolResult], error) {
	text, err := t.proc.perform(ctx, t.plan, a.Text)
	var all []*schema.ToolResult
	for _, word := range strings.SplitAfter(text, " ") {
		all = append(all, part(word))
	}
	return schema.StreamReaderFromArray(all), err
}

// perform is what every random tool does.
func (proc *process) perform(ctx context.Context, t *toolPlan, arguments string) (string, error) {
	var in job
	if err := json.Unmarshal([]byte(arguments), &in); err != nil {
		return "", err
	}
	proc.play.note("    %s runs", in.ID)
	defer proc.play.note("    %s ran", in.ID)
	proc.play.enter(in.ID)
	for round := range t.rounds {
		if err := ask(ctx, t, in.ID, round+1); err != nil {
			return "", fmt.Errorf("%s: %w", in.ID, err)
		}
	}
	takes := time.NewTimer(t.takes)
	defer takes.Stop()
	select {
	case <-takes.C:
	case <-heeded(ctx, t):
		return "", ctx.Err()
	}
	if t.fails == "error before" {
		return "", errors.New("it cannot be done")
	} else if t.fails == "panic before" {
		panic("it cannot be done")
	}
	resumed, _ := interrupt.ResumeFrom(ctx)
	work := func(context.Context, string) (string, error) {
		return "did " + in.ID, proc.play.effect(proc, t, in, resumed.Recovery)
	}
	var text string
	var err error
	if t.once {
		text, err = interrupt.Once(ctx, "work", work, nil)
	} else {
		text, err = work(ctx, "")
	}
	switch {
	case err != nil:
		return "", err
	case t.fails == "error after":
		return "", errors.New("it was done, and failed")
	case t.fails == "panic after":
		panic("it was done, and failed")
	}
	return text, nil
}

func heeded(ctx context.Context, t *toolPlan) <-chan struct{} {
	if t.heeds {
		return ctx.Done()
	}
	return nil
}

// ask asks the questions of one round.
func ask(ctx context.Context, t *toolPlan, id string, round int) error {
	may := interrupt.ToolPermission(t.name, fmt.Sprintf("%s, round %d", id, round))
	may.Key = fmt.Sprint("may", round)
	if !t.two {
		_, err := interrupt.Ask(ctx, may)
		return err
	}
	which := interrupt.UserSelection(interrupt.UserChoice{Title: "this"}, interrupt.UserChoice{Title: "that"})
	which.Key = fmt.Sprint("which", round)
	_, err := interrupt.AskAll(ctx, may, which)
	return err
}
