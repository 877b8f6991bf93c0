// Command mcp-go is the client of another SDK for Go, in protocol 2026-07-28 (modern) or in
// sessions of 2025-11-25 (legacy), and a server of it over standard input and output:
//
//	mcp-go URL ERA CALLS
//	mcp-go serve
//
// Calls, answers and results are those of person.mjs, and so is the directory that it runs in. This
// SDK keeps no numbers and no data of protocol errors, but the words.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		if err := serve(); err != nil {
			log.Fatal(err)
		}
		return
	}
	if len(os.Args) != 4 {
		log.Fatal("usage: mcp-go URL ERA CALLS, or mcp-go serve")
	}
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, era, calls string) error {
	answers, err := pairs("answers.json")
	if err != nil {
		return err
	}
	c, err := connect(ctx, url, era, person{answers})
	if err != nil {
		return err
	}
	defer c.Close()
	var all []pair
	if err := json.Unmarshal([]byte(calls), &all); err != nil {
		return err
	}
	for _, one := range all {
		var req mcp.CallToolRequest
		req.Params.Name, req.Params.Arguments = one.text, one.value
		if err := printEnd(c.CallTool(ctx, req)); err != nil {
			return err
		}
	}
	return nil
}

func connect(ctx context.Context, url, era string, p person) (*client.Client, error) {
	version := map[string]string{"modern": "2026-07-28", "legacy": "2025-11-25"}[era]
	http, err := transport.NewStreamableHTTP(url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer token-of-ann"}))
	if err != nil {
		return nil, err
	}
	can := mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}}}
	c := client.NewClient(http, client.WithElicitationHandler(p), client.WithProtocolVersion(version), client.WithClientCapabilities(can))
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	hello := mcp.InitializeParams{ProtocolVersion: version, ClientInfo: mcp.Implementation{Name: "mcp-go", Version: "1"}, Capabilities: can}
	_, err = c.Initialize(ctx, mcp.InitializeRequest{Params: hello})
	return c, err
}

// printEnd prints how a call ended, in a line.
func printEnd(result *mcp.CallToolResult, err error) error {
	line := map[string]any{}
	if err != nil {
		line["error"] = err.Error()
	} else {
		line["isError"] = result.IsError
		if text, ok := result.Content[0].(mcp.TextContent); ok {
			line["text"] = text.Text
		}
		if content, ok := result.StructuredContent.(map[string]any); ok && content["code"] != nil {
			line["code"] = content["code"]
		}
	}
	text, err := json.Marshal(line)
	fmt.Println(string(text))
	return err
}

// A person answers what begins with a text of the pairs with its value.
type person struct{ answers []pair }

func (p person) Elicit(_ context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	result := &mcp.ElicitationResult{}
	result.Action = mcp.ElicitationResponseActionAccept
	switch message := req.Params.Message; {
	case strings.HasPrefix(message, "Deploy no"):
		result.Action = mcp.ElicitationResponseActionDecline
		return result, nil
	case req.Params.Mode == mcp.ElicitationModeURL:
		return result, nil
	default:
		for _, a := range p.answers {
			if strings.HasPrefix(message, a.text) {
				result.Content = a.value
				return result, nil
			}
		}
		return nil, fmt.Errorf("nobody knows %s", message)
	}
}

// A pair is written as an array of a text and a value.
type pair struct {
	text  string
	value json.RawMessage
}

func (p *pair) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&p.text, &p.value})
}

func pairs(file string) (all []pair, err error) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	return all, err
}
