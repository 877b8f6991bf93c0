package agent_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// can is how the person at this host can be asked.
var can = []interrupt.Facility{interrupt.FacilityPermission}

// An agent whose tools are eino's: what docs/agent.md shows is this code; a test compares them.
func Example_wrap() {
	run := func(ctx context.Context, store checkpoint.Store, keys [][]byte, config *adk.ChatModelAgentConfig) error {
		var tools []*gate.Tool
		for i, one := range config.ToolsConfig.Tools {
			half, face, err := agent.Wrap(ctx, one, nil)
			if err != nil {
				return err
			}
			tools, config.ToolsConfig.Tools[i] = append(tools, half), face
		}
		config.Model = agent.Model(config.Model)
		g, err := gate.Open(ctx, store, &gate.Options{Tools: tools, Keys: keys, Lifetime: gate.NoExpiry})
		if err != nil {
			return err
		}
		defer g.Close(ctx)
		a, err := agent.New(ctx, g, func(ctx context.Context) (adk.Agent, error) { return adk.NewChatModelAgent(ctx, config) }, nil)
		if err != nil {
			return err
		}
		return converse(ctx, a, []*schema.Message{schema.UserMessage("Release the API.")})
	}

	release := func(ctx context.Context, in deployInput) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("release", "Release "+in.Service)); err != nil {
			return "", err
		}
		return "released " + in.Service, nil
	}
	one, err := utils.InferTool("release", "releases a service", release) // as in any agent of eino's
	if err != nil {
		fmt.Println(err)
		return
	}
	model := after(scripted.Do(scripted.Call{ID: "c1", Tool: "release", Arguments: deployInput{"api"}}))
	config := &adk.ChatModelAgentConfig{Name: "release", Description: "releases services", Model: model}
	config.ToolsConfig.Tools = []tool.BaseTool{one}
	if err := run(context.Background(), memstore.New(), [][]byte{gate.NewKey()}, config); err != nil {
		fmt.Println(err)
	}
	// Output:
	// release {"service":"api"} …
	// may I release, with {"service":"api"}?
	// Release api: allow_once or reject_once
	// release: released api
	// the end: [released api]
}

// converse goes on with the run that ann left, or starts one, until it ends.
func converse(ctx context.Context, a *agent.Agent, messages []*schema.Message) error {
	events := a.Start(ctx, agent.Start{Scope: "ann", Messages: messages, Facilities: can})
	left, err := a.Runs(ctx, gate.RunQuery{Scope: "ann"})
	if err != nil {
		return err
	}
	if len(left.Runs) > 0 {
		events = a.Resume(ctx, agent.Resume{Scope: "ann", Run: left.Runs[0].ID, Facilities: can})
	}
	for {
		var run *agent.Run
		for event, err := range events.All() {
			if err != nil {
				return err
			}
			show(event)
			if waiting, is := event.(agent.RunWaiting); is {
				run = waiting.Run
			}
		}
		if run == nil {
			return nil // it ended
		}
		if len(run.Problems) > 0 { // it waits for something else than a person, or an answer was refused
			return run.Problems[0].Err
		}
		resume := agent.Resume{Scope: "ann", Run: run.ID, Facilities: can}
		for _, q := range run.Questions {
			answers := gate.Answers{}
			for _, one := range q.Prompt.Questions {
				if answers[one.ID], err = answer(one); err != nil {
					return err
				}
			}
			resume.Answers = append(resume.Answers, agent.Answer{Interaction: q.Interaction, Token: q.Prompt.Token, Answers: answers})
		}
		events = a.Resume(ctx, resume)
	}
}

// answer puts one question to the person.
func answer(one gate.Question) (json.RawMessage, error) {
	asked, err := one.Interrupt()
	if err != nil {
		return nil, err
	}
	permission, is := asked.(*interrupt.ToolPermissionInterrupt)
	if !is {
		return nil, fmt.Errorf("a question of type %s cannot be shown here", one.Type)
	}
	fmt.Printf("%s: %s or %s\n", permission.Title, permission.Options[0].OptionID, permission.Options[1].OptionID)
	return json.RawMessage(`{"optionId":"allow_once"}`), nil // what the person chose
}
