package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func serve() error {
	s := server.NewMCPServer("mcp-go", "1", server.WithElicitation())
	s.AddTool(mcp.NewTool("book", mcp.WithDescription("Books a seat.")), book)
	return server.ServeStdio(s)
}

// book asks for a seat and for a visit to a page, both at once.
func book(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	given := req.Params.InputResponses
	seat, page := server.ElicitationResponse(given, "seat"), server.ElicitationResponse(given, "page")
	if seat == nil || page == nil {
		return server.NewInputRequestBuilder("first").Elicit("seat", mcp.ElicitationParams{
			Mode: mcp.ElicitationModeForm, Message: "Which seat?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{` +
				`"seat":{"type":"string","enum":["window","aisle"]},"note":{"type":"string","default":"none"}},"required":["seat"]}`),
		}).Elicit("page", mcp.ElicitationParams{
			Mode: mcp.ElicitationModeURL, Message: "Pay", URL: "https://example.com/pay", ElicitationID: "pay",
		}).ToolResult(), nil
	}
	content, err := json.Marshal(seat.Content)
	if err != nil {
		return nil, err
	}
	return mcp.NewToolResultText(fmt.Sprintf("%s %s", content, page.Action)), nil
}
