package acpagent_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/schema"
	"github.com/coder/acp-go-sdk"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/bridge/acp/acpagent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/internal/scripted"
)

// ending is an agent that ends what cannot go on before it begins with the message.
type ending struct {
	*anAgent
	went, over error
}

func (e *ending) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	turn := acpbridge.TurnOf(ctx)
	if _, e.went = acpagent.GoOn(ctx, turn, e.agent); e.went != nil {
		e.over = acpagent.End(ctx, turn, e.agent)
	}
	_, err := acpagent.Start(ctx, turn, e.agent, []*schema.Message{schema.UserMessage(p.Prompt[0].Text.Text)})
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
}

// A run whose model fails for good can be ended, and the next message begins another one. Its calls
// have a terminal status then.
func TestEnd(t *testing.T) {
	var effects atomic.Int64
	var fails atomic.Bool
	down := errors.New("the conversation is too long")
	m := scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
		switch last := input[len(input)-1]; {
		case last.Role != schema.Tool:
			return scripted.Do(scripted.Call{ID: "1", Tool: "deploy", Arguments: service{"api"}}), nil
		case fails.Load():
			return nil, down
		default:
			return scripted.Say(last.Content), nil
		}
	})
	p := &person{answer: allowing(map[string]string{"Deploy api": "allow_once"})}
	s, err := build(memstore.New(), m, pollInterval, deploy(&effects))
	if err != nil {
		t.Fatal(err)
	}
	e := &ending{anAgent: &anAgent{gate: s.gate, bridge: s.bridge, agent: s.agent}}
	client, err := s.connectTo(e, p, acp.ClientCapabilities{})
	if err != nil {
		t.Fatal(err)
	}
	request := acp.PromptRequest{SessionId: "s1", Prompt: []acp.ContentBlock{acp.TextBlock("release")}}
	fails.Store(true)
	if _, err := client.Prompt(t.Context(), request); err == nil || e.went != nil {
		t.Errorf("the first message: %v, %v", err, e.went)
	}
	if _, err := client.Prompt(t.Context(), request); err == nil || !errors.Is(e.went, down) || e.over != nil {
		t.Errorf("the second message: %v, %v, %v", err, e.went, e.over)
	}
	fails.Store(false)
	if _, err := client.Prompt(t.Context(), request); err != nil || e.went != nil {
		t.Errorf("the third message: %v, %v", err, e.went)
	}
	s.close()
	statuses, text := p.told()
	if effects.Load() != 3 || text == "" || slices.Contains(statuses, "pending") {
		t.Errorf("%d effects, statuses %q, text %q", effects.Load(), statuses, text)
	}
}
