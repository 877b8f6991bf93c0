package agent

import (
	"context"

	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/gate"
)

// Middleware is the second form of [Wrap], for an agent that keeps its own tools: it makes calls of
// the named tools calls of the gate. Give it the gate's halves that Wrap returned.
//
// It must be the last of ToolCallMiddlewares. A middleware after it runs between the gate and the
// tool: it could change arguments that a person has approved, and a question that it swallows
// becomes a failure of the tool. The half for the agent that Wrap returns has no such gap. In both
// forms, a middleware before it that takes a question for a failure is [ErrSwallowed].
func Middleware(tools ...*gate.Tool) compose.ToolMiddleware {
	ours := map[string]bool{}
	for _, t := range tools {
		ours[t.Name()] = true
	}
	return compose.ToolMiddleware{
		Invokable: func(next compose.InvokableToolEndpoint) compose.InvokableToolEndpoint {
			return through(ours, next, asText.invoke, func(out *compose.ToolOutput) *string { return &out.Result })
		},
		Streamable: func(next compose.StreamableToolEndpoint) compose.StreamableToolEndpoint {
			return through(ours, next, asText.stream,
				func(out *compose.StreamToolOutput) **schema.StreamReader[string] { return &out.Result })
		},
		EnhancedInvokable: func(next compose.EnhancedInvokableToolEndpoint) compose.EnhancedInvokableToolEndpoint {
			return through(ours, next, asParts.invoke,
				func(out *compose.EnhancedInvokableToolOutput) **schema.ToolResult { return &out.Result })
		},
		EnhancedStreamable: func(next compose.EnhancedStreamableToolEndpoint) compose.EnhancedStreamableToolEndpoint {
			return through(ours, next, asParts.stream,
				func(out *compose.EnhancedStreamableToolOutput) **schema.StreamReader[*schema.ToolResult] {
					return &out.Result
				})
		},
	}
}

// through returns an endpoint of eino's that makes calls of our tools calls of the gate, whose
// innermost is next, and passes the others to next as they are. The four kinds of endpoint differ
// in Output and Result alone: makeCall makes the call, and result is where Output has its Result.
func through[Output, Result any](
	ours map[string]bool,
	next func(context.Context, *compose.ToolInput) (*Output, error),
	makeCall func(ctx context.Context, name, arguments string, run func(context.Context, string) (Result, error)) (Result, error),
	result func(*Output) *Result,
) func(context.Context, *compose.ToolInput) (*Output, error) {
	return func(ctx context.Context, in *compose.ToolInput) (*Output, error) {
		if !ours[in.Name] {
			return next(ctx, in)
		}
		var out Output
		var err error
		*result(&out), err = makeCall(ctx, in.Name, in.Arguments, func(ctx context.Context, arguments string) (none Result, err error) {
			approved := *in
			approved.Arguments = arguments
			out, err := next(ctx, &approved)
			if err != nil {
				return none, err
			}
			return *result(out), nil
		})
		return &out, err
	}
}
