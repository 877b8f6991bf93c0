package acpagent_test

import (
	"context"
	"fmt"
	"log"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/agent"
	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/bridge/acp/acpagent"

	"github.com/cloudwego/eino/schema"
)

// A releaser is an ACP agent: all that it does in a turn is to run an agent of eino's.
type releaser struct {
	acpbridge.Agent // its other methods
	agent           *agent.Agent
}

// Prompt goes on with what an earlier turn left, and then with the new message.
func (r *releaser) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	turn := acpbridge.TurnOf(ctx)
	if _, err := acpagent.GoOn(ctx, turn, r.agent); err != nil {
		return acp.PromptResponse{}, err
	}
	message := schema.UserMessage(p.Prompt[0].Text.Text)
	_, err := acpagent.Start(ctx, turn, r.agent, []*schema.Message{message})
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
}

// The person in the editor allows what the agent's tool asks for.
func Example() {
	ctx := context.Background()
	site := newSite() // a gate with a tool that asks, an agent of eino's that calls it, a bridge
	defer func() { site.close() }()
	editor, err := site.connect(&releaser{Agent: site.rest, agent: site.agent}, func(title string) (option string) {
		fmt.Println("may it?", title)
		return "allow_once"
	})
	if err != nil {
		log.Fatal(err)
	}
	response, err := editor.Prompt(ctx, acp.PromptRequest{SessionId: "s1", Prompt: []acp.ContentBlock{acp.TextBlock("release")}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(site.text())
	fmt.Println(response.StopReason)
	// Output:
	// may it? Deploy api
	// deployed api
	// end_turn
}
