package mcpbridge_test

import (
	"context"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// R32: closing one server's bridge ends its prompts and waits for its handlers, and leaves another
// server on the same gate alone.
func TestClose(t *testing.T) {
	var effects counter
	began, release := make(chan struct{}), make(chan struct{})
	tools := []*gate.Tool{deploy(&effects, nil), raw("slow", func(context.Context) (any, error) {
		close(began)
		<-release
		return "done", nil
	}, nil)}
	g := openGate(t, memstore.New(), gate.Options{Tools: tools})
	one, other := newSite(t, g, nil, tools...), newSite(t, g, &mcpbridge.Options{Name: "other"}, tools...)

	asked, gone := make(chan struct{}), make(chan struct{})
	waiting := connect(t, one, legacy, nil, func(o *mcp.ClientOptions) {
		o.Capabilities = both()
		o.ElicitationHandler = func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			close(asked)
			<-gone
			return nil, errors.New("gone")
		}
	})
	results := make(chan error, 2)
	go func() {
		_, err := waiting.CallTool(t.Context(), &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": "api"}})
		results <- err
	}()
	<-asked
	running := connect(t, one, modern, &person{})
	ran := make(chan *mcp.CallToolResult, 1)
	go func() { ran <- call(t, running, "slow", `{}`) }()
	<-began

	closed := make(chan error, 1)
	go func() { closed <- one.bridge.Close(t.Context()) }()
	wantError(t, <-results, mcpbridge.CodeUnavailable, gate.ErrUnavailable) // it waited for a person
	select {
	case err := <-closed:
		t.Fatalf("closed while a handler runs: %v", err)
	default:
	}
	_, err := running.CallTool(t.Context(), &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": "api"}})
	if data := wantError(t, err, mcpbridge.CodeUnavailable, gate.ErrUnavailable); !data.Retryable {
		t.Error("the same later helps")
	}
	close(release)
	wantText(t, <-ran, "done")
	if err := <-closed; err != nil {
		t.Error(err)
	}
	close(gone)

	wantText(t, call(t, connect(t, other, modern, answering("accept:"+allow)), "deploy", `{"service":"api"}`), "deployed api")
	effects.want(t, 1)
}

// Where nobody waits any longer the handlers' contexts are cancelled.
func TestCloseGivesUp(t *testing.T) {
	began := make(chan struct{})
	s := memSite(t, nil, raw("slow", func(ctx context.Context) (any, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	}, nil))
	cs := connect(t, s, modern, &person{})
	ran := make(chan *mcp.CallToolResult, 1)
	go func() { ran <- call(t, cs, "slow", `{}`) }()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.bridge.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v", err)
	}
	wantEnding(t, <-ran, gate.ErrFailed)
}
