package agent

import (
	"context"

	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/gate"
)

// Middleware is the second form of [Wrap]: the agent keeps its tools, and this middleware makes the
// calls of the named ones the gate's. Give it the gate's halves that Wrap returned, and eino last
// in ToolCallMiddlewares: a middleware inside of it can still change what was approved, and makes a
// question that it swallows a failure of the tool; with Wrap's own half for the agent none is
// inside. With both, one outside that takes a question for a failure is [ErrSwallowed].
func Middleware(tools ...*gate.Tool) compose.ToolMiddleware {
	ours := map[string]bool{}
	for _, t := range tools {
		ours[t.Name()] = true
	}
	return compose.ToolMiddleware{
		Invokable: func(next compose.InvokableToolEndpoint) compose.InvokableToolEndpoint {
			return func(ctx context.Context, in *compose.ToolInput) (*compose.ToolOutput, error) {
				if !ours[in.Name] {
					return next(ctx, in)
				}
				out, err := invokeAs(ctx, in.Name, in.Arguments, asText, func(ctx context.Context, arguments string) (string, error) {
					out, err := next(ctx, approved(in, arguments))
					if err != nil {
						return "", err
					}
					return out.Result, nil
				})
				return &compose.ToolOutput{Result: out}, err
			}
		},
		Streamable: func(next compose.StreamableToolEndpoint) compose.StreamableToolEndpoint {
			return func(ctx context.Context, in *compose.ToolInput) (*compose.StreamToolOutput, error) {
				if !ours[in.Name] {
					return next(ctx, in)
				}
				run := func(ctx context.Context, arguments string) (*schema.StreamReader[string], error) {
					out, err := next(ctx, approved(in, arguments))
					if err != nil {
						return nil, err
					}
					return out.Result, nil
				}
				out, err := streamAs(ctx, in.Name, in.Arguments, asText, run)
				return &compose.StreamToolOutput{Result: out}, err
			}
		},
		EnhancedInvokable:  enhancedMiddleware(ours),
		EnhancedStreamable: enhancedStreamMiddleware(ours),
	}
}

func enhancedMiddleware(ours map[string]bool) compose.EnhancedInvokableToolMiddleware {
	return func(next compose.EnhancedInvokableToolEndpoint) compose.EnhancedInvokableToolEndpoint {
		return func(ctx context.Context, in *compose.ToolInput) (*compose.EnhancedInvokableToolOutput, error) {
			if !ours[in.Name] {
				return next(ctx, in)
			}
			run := func(ctx context.Context, arguments string) (*schema.ToolResult, error) {
				out, err := next(ctx, approved(in, arguments))
				if err != nil {
					return nil, err
				}
				return out.Result, nil
			}
			out, err := invokeAs(ctx, in.Name, in.Arguments, asParts, run)
			return &compose.EnhancedInvokableToolOutput{Result: out}, err
		}
	}
}

func enhancedStreamMiddleware(ours map[string]bool) compose.EnhancedStreamableToolMiddleware {
	return func(next compose.EnhancedStreamableToolEndpoint) compose.EnhancedStreamableToolEndpoint {
		return func(ctx context.Context, in *compose.ToolInput) (*compose.EnhancedStreamableToolOutput, error) {
			if !ours[in.Name] {
				return next(ctx, in)
			}
			run := func(ctx context.Context, arguments string) (*schema.StreamReader[*schema.ToolResult], error) {
				out, err := next(ctx, approved(in, arguments))
				if err != nil {
					return nil, err
				}
				return out.Result, nil
			}
			out, err := streamAs(ctx, in.Name, in.Arguments, asParts, run)
			return &compose.EnhancedStreamableToolOutput{Result: out}, err
		}
	}
}

// approved is the call with the arguments that were approved.
func approved(in *compose.ToolInput, arguments string) *compose.ToolInput {
	call := *in
	call.Arguments = arguments
	return &call
}
