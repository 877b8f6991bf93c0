//lint:file-ignore SA1019 sampling and roots are deprecated, and the conformance tests ask for them.

package main

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addNative adds what asks for other things than a person's answer. It has no state that could be
// tampered with: any answer will do.
func addNative(server *mcp.Server) {
	elicit := &mcp.ElicitParams{Message: "What is your name?", RequestedSchema: json.RawMessage(nameForm)}
	sample := &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{
		{Role: "user", Content: &mcp.TextContent{Text: "What is the capital of France?"}},
	}}
	roots := &mcp.ListRootsParams{}
	for name, requests := range map[string]mcp.InputRequestMap{
		"test_input_required_result_sampling":        {"capital_question": sample},
		"test_input_required_result_list_roots":      {"client_roots": roots},
		"test_input_required_result_multiple_inputs": {"user_name": elicit, "greeting": sample, "client_roots": roots},
	} {
		tool := &mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}
		server.AddTool(tool, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if len(req.Params.InputResponses) < len(requests) {
				return &mcp.CallToolResult{InputRequests: requests, RequestState: "none"}, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		})
	}
	prompt := &mcp.Prompt{Name: "test_input_required_result_prompt"}
	server.AddPrompt(prompt, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if len(req.Params.InputResponses) == 0 {
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": elicit}}, nil
		}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "done"}}}}, nil
	})
}
