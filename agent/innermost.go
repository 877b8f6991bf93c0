package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/compose"
)

// An innermost is what the gate's half of a wrapped tool runs: eino's tool, as eino called it. It
// travels in the context of one call, because the gate's handler knows neither eino's options for
// the call nor whether it streams.
type innermost struct {
	tool   string
	run    func(ctx context.Context, arguments string) (json.RawMessage, error)
	text   func(r reply) string // what a screen shows of the result
	origin Origin               // set before run is called
}

type innermostKey struct{}

// handle is the handler of a wrapped tool.
func handle(name string) func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
	return func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		in, _ := ctx.Value(innermostKey{}).(*innermost)
		if in == nil || in.tool != name {
			return nil, fmt.Errorf("run tool %q: %w", name, ErrNoRun)
		}
		// The tool may call other wrapped tools, which must not find this call's innermost.
		out, err := in.run(context.WithValue(ctx, innermostKey{}, nil), string(arguments))
		if isForeign(err) {
			return nil, fmt.Errorf("run tool %q: %w", name, ErrForeignInterrupt)
		}
		return out, err
	}
}

// isForeign reports whether an error holds an interrupt that eino raised itself.
func isForeign(err error) bool {
	var signal *adk.InterruptSignal
	if err == nil {
		return false
	}
	_, rerun := compose.IsInterruptRerunError(err)
	_, graph := compose.ExtractInterruptInfo(err)
	return errors.As(err, &signal) || rerun || graph
}
