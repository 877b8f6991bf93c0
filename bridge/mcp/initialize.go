package mcpbridge

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lowerInitialize is a receiving middleware for clients that initialize a session with 2026-07-28
// or later. That version has no initialize, and the SDK negotiates the session down to 2025-11-25;
// but it goes on to compare the version that was asked for, and so answers input_required in a
// session of 2025-11-25 and refuses elicitation/create there.
func lowerInitialize(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if params, ok := req.GetParams().(*mcp.InitializeParams); ok && params != nil && params.ProtocolVersion >= version2026 {
			params.ProtocolVersion = version2025
		}
		return next(ctx, method, req)
	}
}
