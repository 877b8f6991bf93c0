package acpbridge_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/coder/acp-go-sdk"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A tool that asks before it deploys, behind an agent whose only answer is to call it, and an
// editor whose person says yes.
func Example() {
	type Input struct {
		Service string `json:"service"`
	}
	deploy := gate.NewTool("deploy", func(ctx context.Context, in Input) (string, error) {
		ask := interrupt.ToolPermission("deploy", "Deploy "+in.Service+" to production")
		if _, err := interrupt.Ask(ctx, ask); err != nil {
			return "", err
		}
		return "deployed " + in.Service, nil
	}, nil)

	ctx := context.Background()
	g, err := gate.Open(ctx, memstore.New(), &gate.Options{Tools: []*gate.Tool{deploy}, Keys: [][]byte{gate.NewKey()}})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close(ctx)
	bridge, err := acpbridge.New(g, &acpbridge.Options{
		Authorize: func(context.Context, acpbridge.Request) (acpbridge.Grant, error) {
			return acpbridge.Grant{Scope: "ann"}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer bridge.Close(ctx)

	// In a program: os.Stdout and os.Stdin, and no Authorize.
	agentIn, editorOut := io.Pipe()
	editorIn, agentOut := io.Pipe()
	agent := &anAgent{prompt: func(ctx context.Context, turn *acpbridge.Turn, text string) error {
		call := acpbridge.Call{ID: "call_1", Tool: "deploy", Arguments: []byte(`{"service":"` + text + `"}`)}
		result, err := turn.CallTool(ctx, call)
		if err != nil {
			return err
		}
		return turn.Say("Done: " + string(result))
	}}
	if _, err := bridge.Connect(agent, agentOut, agentIn); err != nil {
		log.Fatal(err)
	}

	conn := acp.NewClientSideConnection(&anEditor{}, editorOut, editorIn)
	if _, err := conn.Initialize(ctx, acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber}); err != nil {
		log.Fatal(err)
	}
	session, err := conn.NewSession(ctx, acp.NewSessionRequest{Cwd: "/", McpServers: []acp.McpServer{}})
	if err != nil {
		log.Fatal(err)
	}
	prompt := []acp.ContentBlock{acp.TextBlock("api")}
	response, err := conn.Prompt(ctx, acp.PromptRequest{SessionId: session.SessionId, Prompt: prompt})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.StopReason)
	editorOut.Close() // the editor goes
	agentOut.Close()
	// Output:
	// may it? Deploy api to production
	// agent: Done: "deployed api"
	// end_turn
}

// anEditor prints what it is told and allows everything once.
type anEditor struct{ acp.Client }

func (*anEditor) RequestPermission(_ context.Context, p acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	fmt.Println("may it?", *p.ToolCall.Title)
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(p.Options[0].OptionId)}, nil
}

func (*anEditor) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	if chunk := n.Update.AgentMessageChunk; chunk != nil {
		fmt.Println("agent:", chunk.Content.Text.Text)
	}
	return nil
}
