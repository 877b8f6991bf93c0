package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

var (
	testKey    = []byte("0123456789abcdef0123456789abcdef")
	everything = []interrupt.Facility{
		interrupt.FacilityPermission, interrupt.FacilitySelection, interrupt.FacilityForm, interrupt.FacilityURL,
	}
)

// Two ways to begin a run: alone, and in a conversation.
var (
	releaseIt = agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("release it")}, Facilities: everything}
	inTalk    = agent.Start{Scope: "ann", Messages: releaseIt.Messages, Facilities: everything, Conversation: "talk"}
)

const (
	allow  = `{"optionId":"allow_once"}`
	reject = `{"optionId":"reject_once"}`
)

// A world is a gate with an agent on a store, as one process has them.
type world struct {
	t     *testing.T
	gate  *gate.Gate
	agent *agent.Agent
}

type worldOptions struct {
	tools     []*gate.Tool
	eino      []tool.BaseTool // beside the faces of tools
	model     model.ToolCallingChatModel
	streaming bool
	gate      gate.Options
	plain     []tool.BaseTool // instead of the faces of tools

	middlewares []compose.ToolMiddleware
	build       agent.Build // instead of one chat model agent
	poll        time.Duration
}

func open(t *testing.T, store checkpoint.Store, o worldOptions) *world {
	t.Helper()
	o.gate.Tools, o.gate.Keys = o.tools, [][]byte{testKey}
	if o.gate.Logger == nil {
		o.gate.Logger = slog.New(slog.DiscardHandler)
	}
	g, err := gate.Open(t.Context(), store, &o.gate)
	if err != nil {
		t.Fatalf("open gate: %v", err)
	}
	w := &world{t: t, gate: g}
	t.Cleanup(w.close)
	faces := o.eino
	for _, one := range o.tools {
		if o.plain == nil {
			faces = append(faces, agent.Tool(one))
		}
	}
	faces = append(faces, o.plain...)
	build := o.build
	if build == nil {
		build = chat("release", agent.Model(o.model), compose.ToolsNodeConfig{Tools: faces, ToolCallMiddlewares: o.middlewares})
	}
	w.agent, err = agent.New(t.Context(), g, build, &agent.Options{Streaming: o.streaming, PollInterval: o.poll})
	if err != nil {
		t.Fatalf("make agent: %v", err)
	}
	return w
}

// chat builds a chat model agent.
func chat(name string, m model.ToolCallingChatModel, tools compose.ToolsNodeConfig) agent.Build {
	return func(ctx context.Context) (adk.Agent, error) {
		return adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
			Name: name, Description: "d", Model: m, ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: tools},
		})
	}
}

// close ends the process's part in the store.
func (w *world) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := w.gate.Close(ctx); err != nil {
		w.t.Errorf("close gate: %v", err)
	}
}

func (w *world) start() *agent.Run {
	w.t.Helper()
	run, err := w.agent.Start(w.t.Context(), releaseIt).Run()
	if err != nil {
		w.t.Fatalf("start: %v", err)
	}
	return run
}

func (w *world) resume(id checkpoint.ID, answers ...agent.Answer) *agent.Run {
	w.t.Helper()
	run, err := w.tryResume(id, answers...)
	if err != nil {
		w.t.Fatalf("resume: %v", err)
	}
	return run
}

func (w *world) tryResume(id checkpoint.ID, answers ...agent.Answer) (*agent.Run, error) {
	return w.agent.Resume(w.t.Context(), agent.Resume{Scope: "ann", Run: id, Answers: answers, Facilities: everything}).Run()
}

// to answers a question with one payload.
func to(q agent.Question, payload string) agent.Answer {
	return agent.Answer{
		Interaction: q.Interaction, Token: q.Prompt.Token,
		Answers: gate.Answers{q.Prompt.Questions[0].ID: json.RawMessage(payload)},
	}
}

// of returns the run's question of that call.
func of(t *testing.T, run *agent.Run, call string) agent.Question {
	t.Helper()
	i := slices.IndexFunc(run.Questions, func(q agent.Question) bool { return q.Call == call })
	if i < 0 {
		t.Fatalf("call %q has no open question in %+v", call, run)
	}
	return run.Questions[i]
}

func wantWaiting(t *testing.T, run *agent.Run, calls ...string) {
	t.Helper()
	var have []string
	for _, q := range run.Questions {
		have = append(have, q.Call)
		if q.Prompt.Token == "" {
			t.Errorf("the question of %q has no token", q.Call)
		}
	}
	slices.Sort(have)
	if run.Status != agent.Waiting || !slices.Equal(have, calls) || len(run.Problems) > 0 {
		t.Fatalf("want questions of %q, have status %s, %q, problems %v", calls, run.Status, have, run.Problems)
	}
}

func wantFinished(t *testing.T, run *agent.Run, message string) {
	t.Helper()
	if run.Status != agent.Finished || run.Message != message {
		t.Fatalf("want finished with %q, have %s with %q, problems %v, questions %v", message, run.Status, run.Message, run.Problems, run.Questions)
	}
}

func wantCode(t *testing.T, what string, err error, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: want %v, have %v", what, want, err)
	}
}

type deployInput struct {
	Service string `json:"service"`
}

// deploy asks for a permission and then counts its effect.
func deploy(effects *atomic.Int64, opts *gate.ToolOptions) *gate.Tool {
	return gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service)); err != nil {
			return "", err
		}
		effects.Add(1)
		return "deployed " + in.Service, nil
	}, opts)
}

// status does not ask; it counts its runs.
func status(runs *atomic.Int64, opts *gate.ToolOptions) *gate.Tool {
	return gate.NewTool("status", func(context.Context, struct{}) (string, error) {
		runs.Add(1)
		return "green", nil
	}, opts)
}

func call(id, tool string, arguments any) scripted.Call {
	return scripted.Call{ID: id, Tool: tool, Arguments: arguments}
}

// deploying is an answer that calls deploy once for each service, which is also the id of the call.
func deploying(services ...string) *schema.Message {
	var calls []scripted.Call
	for _, service := range services {
		calls = append(calls, call(service, "deploy", deployInput{service}))
	}
	return scripted.Do(calls...)
}

// results says all results of tools of the conversation, one after the other, also those of parts.
func results(input []*schema.Message) string {
	text := ""
	for _, m := range input {
		if m.Role == schema.Tool {
			text += "[" + m.Content
			for _, p := range m.UserInputMultiContent {
				text += p.Text
			}
			text += "]"
		}
	}
	return text
}

// after answers with the first message, and then with the results of its tools.
func after(first *schema.Message) *scripted.Model {
	return scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
		if r := results(input); r != "" {
			return scripted.Say(r), nil
		}
		return first, nil
	})
}
