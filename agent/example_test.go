package agent_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// What the README shows is this code, and what docs/agent.md shows is show; a test compares them.
func Example() {
	run := func(ctx context.Context, store checkpoint.Store, keys [][]byte, config *adk.ChatModelAgentConfig) error {
		messages, can := []*schema.Message{schema.UserMessage("Release the API.")}, []interrupt.Facility{interrupt.FacilityPermission}
		deploy := deployService

		tools := []*gate.Tool{gate.NewTool("deploy", deploy, nil)} // agent.Wrap makes one of a tool of eino's
		g, err := gate.Open(ctx, store, &gate.Options{Tools: tools, Keys: keys})
		if err != nil {
			return err
		}
		defer g.Close(ctx)
		config.Model = agent.Model(config.Model)
		config.ToolsConfig.Tools = []tool.BaseTool{agent.Tool(tools[0])}
		a, err := agent.New(ctx, g, func(ctx context.Context) (adk.Agent, error) { return adk.NewChatModelAgent(ctx, config) }, nil)
		if err != nil {
			return err
		}
		for event, err := range a.Start(ctx, agent.Start{Scope: "ann", Messages: messages, Facilities: can}).All() {
			if err != nil {
				return err
			}
			show(event)
		}

		// Later, in this process or another one: the questions that are open, and an answer.
		page, err := a.Runs(ctx, gate.RunQuery{Scope: "ann"})
		if err != nil {
			return err
		}
		run, err := a.Resume(ctx, agent.Resume{Scope: "ann", Run: page.Runs[0].ID, Facilities: can}).Run()
		if err != nil {
			return err
		}
		question := run.Questions[0]
		resume := agent.Resume{Scope: "ann", Run: run.ID, Facilities: can, Answers: []agent.Answer{{
			Interaction: question.Interaction, Token: question.Prompt.Token,
			Answers: gate.Answers{question.Prompt.Questions[0].ID: json.RawMessage(`{"optionId":"allow_once"}`)},
		}}}
		for event, err := range a.Resume(ctx, resume).All() {
			if err != nil {
				return err
			}
			show(event)
		}
		return nil
	}

	// A model of your own takes the place of the scripted one, and boltstore that of memstore, so that
	// the run survives its process.
	model := after(scripted.Do(scripted.Call{ID: "c1", Tool: "deploy", Arguments: deployInput{"api"}}))
	config := &adk.ChatModelAgentConfig{Name: "release", Description: "releases services", Model: model}
	if err := run(context.Background(), memstore.New(), [][]byte{gate.NewKey()}, config); err != nil {
		fmt.Println(err)
	}
	// Output:
	// deploy {"service":"api"} …
	// may I deploy, with {"service":"api"}?
	// deploy: deployed api
	// the end: [deployed api]
}

func show(event agent.Event) {
	switch e := event.(type) {
	case agent.ToolStarted:
		fmt.Println(e.Tool, e.Arguments, "…")
	case agent.ToolProgress:
		fmt.Println(e.Tool, "is at", e.Update.Completed)
	case agent.ToolEnded:
		fmt.Printf("%s: %s\n", e.Tool, e.Result)
	case agent.Asked:
		fmt.Printf("may I %s, with %s?\n", e.Question.Tool, e.Question.Prompt.Arguments)
	case agent.RunFinished:
		fmt.Println("the end:", e.Message)
	case agent.RunFailed:
		fmt.Println("it failed:", e.Message)
	}
}

func deployService(ctx context.Context, in deployInput) (string, error) {
	if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service)); err != nil {
		return "", err
	}
	return "deployed " + in.Service, nil
}
