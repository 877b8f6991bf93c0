package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/canon"
)

// AgentTool makes a tool of an agent of eino's, in place of adk.NewAgentTool. The agent gets the
// argument "request" as its message, and its last message is the result. The questions of its tools
// are questions of the run. The tool works only in a run of an [Agent].
//
// The agent begins anew with each call: it has neither its caller's conversation nor its session
// values. Such agents nest, and several of them can ask in one turn, because each has a checkpoint
// of its own. Eino's tool puts the checkpoint of the inner agent into that of the outer one, which
// makes it about six times as large per level, and cannot go on when two of them asked.
//
// A call of the tool is no call of the gate, since the agent does nothing itself; its tools' calls
// are.
func AgentTool(ctx context.Context, build Build) (tool.InvokableTool, error) {
	if build == nil {
		return nil, errors.New("make agent tool: a function that builds the agent is needed")
	}
	t := &agentTool{}
	t.agents.build = build
	eino, err := t.agents.take(ctx)
	if err != nil {
		return nil, fmt.Errorf("make agent tool: %w", err)
	}
	t.name, t.description = eino.Name(ctx), eino.Description(ctx)
	t.agents.put(eino)
	return t, nil
}

type agentTool struct {
	agents            pool
	name, description string
}

// Info tells the model of the agent.
func (t *agentTool) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{
		Name: t.name, Desc: t.description, ParamsOneOf: schema.NewParamsOneOfByParams(map[string]*schema.ParameterInfo{
			"request": {Type: schema.String, Desc: "what the agent is to do", Required: true},
		}),
	}, nil
}

// InvokableRun runs the agent to its end or to where it waits.
func (t *agentTool) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	g := from(ctx)
	if g == nil {
		return "", fmt.Errorf("run agent %q: %w", t.name, ErrNoRun)
	}
	e, again, err := g.identify(ctx, t.name, arguments)
	if err != nil {
		return "", fmt.Errorf("run agent %q: %w", t.name, err)
	}
	if !again {
		g.tell(ToolStarted{Origin: e.origin(), Arguments: arguments})
	}
	request, err := requestOf(arguments)
	if err != nil { // the model is told of its mistake, as with every tool
		words, _ := told(&gate.Error{Code: gate.ErrInvalidArguments, Message: err.Error()})
		g.tell(ToolEnded{Origin: e.origin(), Result: words, Code: gate.ErrInvalidArguments})
		return words, nil
	}
	e.Nested = true
	at := g.placeOf(ctx)
	at.position = e.Position
	came := g.drive(context.WithValue(hidden{ctx}, placeKey{}, at), &t.agents, e.Start, func() ([]*schema.Message, error) {
		return []*schema.Message{schema.UserMessage(request)}, nil
	})
	switch {
	case came.err != nil:
		return "", fmt.Errorf("run agent %q: %w", t.name, came.err)
	case came.interrupted:
		return "", g.wait(ctx, e, nil)
	}
	g.store.drop(e.Start)
	g.ended(at.path)
	g.done(e)
	g.tell(ToolEnded{Origin: e.origin(), Result: came.message})
	return came.message, nil
}

func requestOf(arguments string) (string, error) {
	if !utf8.ValidString(arguments) { // eino's checkpoint would hold other ones
		return "", errors.New("they are not UTF-8")
	}
	members, twice, err := canon.Members([]byte(arguments))
	switch {
	case err != nil:
		return "", err
	case twice:
		return "", errors.New("a member is there twice")
	}
	i := slices.IndexFunc(members, func(m canon.Member) bool { return m.Name == "request" })
	if i < 0 {
		return "", errors.New("request is missing")
	}
	var request *string
	if json.Unmarshal(members[i].Value, &request) != nil || request == nil {
		return "", errors.New("request is not a string")
	}
	return *request, nil
}

// hidden hides from eino what eino put into the context: otherwise it would take the agent in the
// tool for a part of the agent that called it.
type hidden struct{ context.Context }

func (h hidden) Value(key any) any {
	if t := reflect.TypeOf(key); t != nil && strings.HasPrefix(t.PkgPath()+"/", "github.com/cloudwego/eino/") {
		return nil
	}
	return h.Context.Value(key)
}
