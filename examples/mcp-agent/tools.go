package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// toolsOf makes a tool of each of the server's.
func toolsOf(ctx context.Context, session *mcp.ClientSession, server *mcpbridge.ClientHandler) (tools []*gate.Tool, err error) {
	for theirs, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		schema, err := json.Marshal(theirs.InputSchema)
		if err != nil {
			return nil, err
		}
		tools = append(tools, gate.NewRawTool(theirs.Name, calling(server, theirs.Name), &gate.ToolOptions{
			Title: theirs.Title, Description: theirs.Description, Schema: schema, KeepResult: true,
		}))
	}
	return tools, nil
}

// calling is a handler that calls a tool of the server. Where that asks, the handler returns the
// questions, and runs again with the answers.
func calling(server *mcpbridge.ClientHandler, name string) gate.Handler {
	return func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		result, err := server.CallTool(ctx, "call", &mcp.CallToolParams{Name: name, Arguments: arguments})
		if err != nil {
			return nil, err
		}
		var texts []string
		for _, content := range result.Content {
			if text, ok := content.(*mcp.TextContent); ok {
				texts = append(texts, text.Text)
			}
		}
		text := strings.Join(texts, "\n")
		if result.IsError {
			return nil, &interrupt.Failure{Text: text}
		}
		return json.Marshal(text)
	}
}
