package agent_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// An agent of eino's whose tool asks before it deploys. A model of your own takes the place of the
// scripted one, and boltstore that of memstore, so that the run survives its process.
func Example() {
	ctx := context.Background()
	deploy := gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service)); err != nil {
			return "", err
		}
		return "deployed " + in.Service, nil
	}, &gate.ToolOptions{Description: "Deploys a service."})
	model := after(scripted.Do(scripted.Call{ID: "c1", Tool: "deploy", Arguments: deployInput{"api"}}))

	g, err := gate.Open(ctx, memstore.New(), &gate.Options{Tools: []*gate.Tool{deploy}, Keys: [][]byte{gate.NewKey()}})
	if err != nil {
		panic(err)
	}
	defer g.Close(ctx)
	build := func(ctx context.Context) (adk.Agent, error) {
		return adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
			Name: "release", Description: "releases services", Model: agent.Model(model),
			ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{agent.Tool(deploy)}}},
		})
	}
	a, err := agent.New(ctx, g, build, nil)
	if err != nil {
		panic(err)
	}

	can := []interrupt.Facility{interrupt.FacilityPermission}
	run, err := a.Start(ctx, agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("Release the API.")}, Facilities: can}).Run()
	if err != nil {
		panic(err)
	}
	question := run.Questions[0]
	fmt.Println(run.Status, question.Tool, string(question.Prompt.Arguments))

	run, err = a.Resume(ctx, agent.Resume{Scope: "ann", Run: run.ID, Facilities: can, Answers: []agent.Answer{{
		Interaction: question.Interaction, Token: question.Prompt.Token,
		Answers: gate.Answers{question.Prompt.Questions[0].ID: json.RawMessage(`{"optionId":"allow_once"}`)},
	}}}).Run()
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Status, run.Message)
	// Output:
	// waiting deploy {"service":"api"}
	// finished [deployed api]
}
