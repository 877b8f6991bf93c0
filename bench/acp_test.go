package bench_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/coder/acp-go-sdk"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// One operation is a turn in which a permission is asked and allowed, over pipes in one process. With
// way=bare the SDK alone does that: session/request_permission and nothing else, and nothing of it is
// kept. With way=told it also sends the tool call and its end, as the bridge does.
func BenchmarkACP(b *testing.B) {
	b.Run("store=none/way=bare", func(b *testing.B) { turnsOfACP(b, &bareAgent{}, nil) })
	b.Run("store=none/way=told", func(b *testing.B) { turnsOfACP(b, &bareAgent{told: true}, nil) })
	b.Run("store=mem/way=bridge", func(b *testing.B) { turnsOfACP(b, &bridgedAgent{}, openGate(b, memstore.New())) })
	b.Run("store=bolt/way=bridge", func(b *testing.B) { turnsOfACP(b, &bridgedAgent{}, openGate(b, openBolt(b))) })
}

func turnsOfACP(b *testing.B, agent acp.Agent, g *gate.Gate) {
	in, out := io.Pipe()
	back, agentOut := io.Pipe()
	if bare, ok := agent.(*bareAgent); ok {
		bare.conn = acp.NewAgentSideConnection(bare, agentOut, in)
		bare.conn.SetLogger(slog.New(slog.DiscardHandler))
	} else {
		bridge, err := acpbridge.New(g, &acpbridge.Options{
			Logger: slog.New(slog.DiscardHandler),
			Authorize: func(context.Context, acpbridge.Request) (acpbridge.Grant, error) {
				return acpbridge.Grant{Scope: "ann"}, nil
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := bridge.Connect(agent, agentOut, in); err != nil {
			b.Fatal(err)
		}
		defer bridge.Close(context.Background())
	}
	defer out.Close()
	var told atomic.Int64
	client := acp.NewClientSideConnection(&allowing{told: &told}, out, back)
	client.SetLogger(slog.New(slog.DiscardHandler))
	request := acp.PromptRequest{SessionId: "s", Prompt: []acp.ContentBlock{acp.TextBlock("deploy")}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Prompt(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
	if told.Load() != int64(b.N) {
		b.Errorf("asked %d times in %d turns", told.Load(), b.N)
	}
}

// allowing is a client that allows everything.
type allowing struct {
	acp.Client
	told *atomic.Int64
}

func (a *allowing) RequestPermission(_ context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	a.told.Add(1)
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(r.Options[0].OptionId)}, nil
}

func (*allowing) SessionUpdate(context.Context, acp.SessionNotification) error { return nil }

// A bareAgent asks with the SDK alone.
type bareAgent struct {
	acp.Agent
	conn *acp.AgentSideConnection
	told bool
	n    int
}

func (a *bareAgent) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	a.n++
	id := acp.ToolCallId(fmt.Sprint(a.n))
	update := func(u acp.SessionUpdate) error {
		if !a.told {
			return nil
		}
		return a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: p.SessionId, Update: u})
	}
	arguments := map[string]any{"service": fmt.Sprint(a.n)}
	if err := update(acp.StartToolCall(id, "deploy", acp.WithStartStatus(acp.ToolCallStatusPending), acp.WithStartRawInput(arguments))); err != nil {
		return acp.PromptResponse{}, err
	}
	r, err := a.conn.RequestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: p.SessionId, ToolCall: acp.ToolCallUpdate{ToolCallId: id, Title: acp.Ptr("deploy"), RawInput: arguments},
		Options: []acp.PermissionOption{
			{OptionId: "allow_once", Kind: acp.PermissionOptionKindAllowOnce, Name: "Allow once"},
			{OptionId: "reject_once", Kind: acp.PermissionOptionKindRejectOnce, Name: "Reject"},
		},
	})
	if err != nil || r.Outcome.Selected == nil {
		return acp.PromptResponse{}, fmt.Errorf("ask: %v, %w", r, err)
	}
	for _, status := range []acp.ToolCallStatus{acp.ToolCallStatusInProgress, acp.ToolCallStatusCompleted} {
		if err := update(acp.UpdateToolCall(id, acp.WithUpdateStatus(status))); err != nil {
			return acp.PromptResponse{}, err
		}
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

// A bridgedAgent makes a call of the gate's tool that asks.
type bridgedAgent struct {
	acp.Agent
	n int
}

func (a *bridgedAgent) Prompt(ctx context.Context, _ acp.PromptRequest) (acp.PromptResponse, error) {
	a.n++
	call := acpbridge.Call{ID: acp.ToolCallId(fmt.Sprint(a.n)), Tool: "deploy", Arguments: fmt.Appendf(nil, `{"service":"%d"}`, a.n)}
	_, err := acpbridge.TurnOf(ctx).CallTool(ctx, call)
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
}
