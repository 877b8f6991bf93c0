package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A tool that uses a tool of an MCP server. What the server asks is a question of this tool, and
// goes to the person of whoever called it.
func ExampleClientHandler() {
	ctx := context.Background()
	client := mcpbridge.NewClient(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	session, err := client.Connect(ctx, bookingServer(ctx), nil) // in a program: an mcp.CommandTransport
	if err != nil {
		log.Fatal(err)
	}
	booking := mcpbridge.NewClientHandler("the booking server", session, nil)
	defer booking.Close()

	trip := gate.NewTool("trip", func(ctx context.Context, _ struct{}) (string, error) {
		result, err := booking.CallTool(ctx, "book", &mcp.CallToolParams{Name: "book"})
		if err != nil {
			return "", err // the server's question; later: what became of the call
		}
		return result.Content[0].(*mcp.TextContent).Text, nil
	}, nil)
	g, err := gate.Open(ctx, memstore.New(), &gate.Options{Tools: []*gate.Tool{trip}, Keys: [][]byte{gate.NewKey()}})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close(ctx)

	call := gate.Call{
		Tool: "trip", Arguments: json.RawMessage(`{}`), Scope: "ann", Session: "window 1",
		Facilities: []interrupt.Facility{interrupt.FacilityForm, interrupt.FacilityURL},
	}
	outcome, err := g.Invoke(ctx, call)
	if err != nil {
		log.Fatal(err)
	}
	asked, err := outcome.Prompt.Questions[0].Interrupt()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(asked.(*interrupt.FormInterrupt).Message)
	call.Token = outcome.Prompt.Token
	call.Answers = gate.Answers{outcome.Prompt.Questions[0].ID: json.RawMessage(`{"content":{"seat":"window"}}`)}
	outcome, err = g.Invoke(ctx, call)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(outcome.Result))
	// Output:
	// the booking server asks: Which seat?
	// "booked at the window"
}

// bookingServer is any server that asks, of whatever SDK and protocol.
func bookingServer(ctx context.Context) mcp.Transport {
	server := mcp.NewServer(&mcp.Implementation{Name: "booking", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"seat":{"type":"string","enum":["window","aisle"]}},"required":["seat"]}`)
	server.AddTool(&mcp.Tool{Name: "book", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, ok := req.Params.InputResponses["seat"].(*mcp.ElicitResult)
			if !ok {
				seat := &mcp.ElicitParams{Message: "Which seat?", RequestedSchema: schema}
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"seat": seat}}, nil
			}
			text := fmt.Sprint("booked at the ", answer.Content["seat"])
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		})
	there, here := mcp.NewInMemoryTransports()
	go server.Run(ctx, there)
	return here
}
