package mcpbridge_test

import (
	"context"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A tool that asks before it deploys, on a server, and a client whose person says yes. The client
// speaks protocol 2026-07-28; with another one nothing here changes.
func Example() {
	type Input struct {
		Service string `json:"service"`
	}
	type Output struct {
		URL string `json:"url"`
	}
	deploy := gate.NewTool("deploy", func(ctx context.Context, in Input) (Output, error) {
		ask := interrupt.ToolPermission("deploy", "Deploy "+in.Service+" to production")
		if _, err := interrupt.Ask(ctx, ask); err != nil {
			return Output{}, err
		}
		return Output{URL: "https://" + in.Service + ".example.com"}, nil
	}, &gate.ToolOptions{Description: "Deploys a service."})

	ctx := context.Background()
	g, err := gate.Open(ctx, memstore.New(), &gate.Options{Tools: []*gate.Tool{deploy}, Keys: [][]byte{gate.NewKey()}})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close(ctx)

	there, here := mcp.NewInMemoryTransports() // in a program: &mcp.StdioTransport{}
	go serveTools(ctx, g, []*gate.Tool{deploy}, there)

	client := mcp.NewClient(&mcp.Implementation{Name: "editor", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			fmt.Println(req.Params.Message)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow_once"}}, nil
		},
	})
	session, err := client.Connect(ctx, here, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "deploy", Arguments: Input{Service: "api"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.StructuredContent)
	// Output:
	// Deploy api to production
	//
	// Tool: deploy
	// Arguments: {
	//   "service": "api"
	// }
	// map[url:https://api.example.com]
}

// serveTools serves the tools of a gate until ctx ends or the client has gone.
func serveTools(ctx context.Context, g *gate.Gate, tools []*gate.Tool, transport mcp.Transport) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "ops", Version: "1"}, nil)
	bridge, err := mcpbridge.New(server, g, nil) // who calls, how it is asked, Close: what all tools share
	if err != nil {
		return err
	}
	defer bridge.Close(ctx)
	for _, tool := range tools { // those that the gate was opened with
		if err := bridge.AddTool(tool, nil); err != nil {
			return err
		}
	}
	return server.Run(ctx, bridge.Transport(transport)) // such as &mcp.StdioTransport{}; for HTTP: bridge.HTTPHandler
}
