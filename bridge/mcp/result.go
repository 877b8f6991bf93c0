package mcpbridge

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
)

// An Ending is the structured content of a tool error: how the work ended, for a model or a program
// to read. Nothing in it is private.
type Ending struct {
	Code    gate.Code `json:"code"`
	Message string    `json:"message"`
	Link    string    `json:"link,omitempty"`
	// Interaction names the recorded interaction, where there is one: it is what an inbox or an
	// operator finds it by, and no secret.
	Interaction string `json:"interaction,omitempty"`
	// Ended is how the last attempt ended, where Code says only that there was one.
	Ended gate.Code `json:"ended,omitempty"`
}

// ended is the tool error for how the work ended.
func ended(e *gate.Error) *mcp.CallToolResult {
	ending := Ending{Code: e.Code, Message: e.Message, Link: e.Link, Ended: e.Ended}
	if !e.Interaction.IsZero() {
		ending.Interaction = e.Interaction.String()
	}
	text := e.Error()
	if e.Link != "" {
		text += "\n" + e.Link
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: ending}
}

// plain is a handler's result as it is: an object as structured content, and for clients that do
// not read that as text as well. What is no object is text alone, since only the latest protocol
// takes it as structured content; a string is its own text.
func plain(result json.RawMessage) *mcp.CallToolResult {
	r := &mcp.CallToolResult{}
	text := string(result)
	var s string
	switch {
	case isObject(result):
		r.StructuredContent = result
	case json.Unmarshal(result, &s) == nil && string(result) != "null":
		text = s
	}
	r.Content = []mcp.Content{&mcp.TextContent{Text: text}}
	return r
}

func isObject(raw json.RawMessage) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(raw, &object) == nil && object != nil
}
