package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"

	"github.com/coder/acp-go-sdk"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/gate"
)

// An agent keeps the calls of each session before it makes them, and until they have come to their
// end: a later turn, of this process or another, makes them again under the same IDs.
type agent struct {
	bridge *acpbridge.Bridge
	calls  *calls
}

func (a *agent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber, AuthMethods: []acp.AuthMethod{},
		AgentCapabilities: acp.AgentCapabilities{LoadSession: true},
	}, nil
}

func (a *agent) NewSession(context.Context, acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	id := acp.SessionId(rand.Text())
	return acp.NewSessionResponse{SessionId: id}, a.calls.keep(id, nil)
}

// LoadSession shows the calls that wait. Nobody is asked yet: an answer needs a turn to go on in.
func (a *agent) LoadSession(ctx context.Context, p acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	calls, err := a.calls.left(p.SessionId)
	if err == nil {
		_, err = a.bridge.Waiting(ctx, p.SessionId, calls)
	}
	return acp.LoadSessionResponse{}, err
}

// Prompt makes the calls that an earlier turn left, and the one that the message is.
func (a *agent) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	turn, end := acpbridge.TurnOf(ctx), acp.PromptResponse{StopReason: acp.StopReasonEndTurn}
	calls, err := a.calls.left(p.SessionId)
	if err != nil {
		return end, err
	}
	if service, ok := strings.CutPrefix(textOf(p.Prompt), "deploy "); ok {
		arguments, _ := json.Marshal(deployInput{service}) // a string always has a form
		calls = append(calls, acpbridge.Call{ID: acp.ToolCallId(rand.Text()), Tool: "deploy", Arguments: arguments})
	}
	if err := a.calls.keep(p.SessionId, calls); err != nil {
		return end, err
	}
	for len(calls) > 0 {
		result, err := turn.CallTool(ctx, calls[0])
		e, failed := errors.AsType[*gate.Error](err)
		if failed && (e.StillOpen || e.Code.Retryable()) {
			return end, err // the next turn makes it again
		}
		calls = calls[1:]
		if err := a.calls.keep(p.SessionId, calls); err != nil {
			return end, err
		}
		var said string
		if failed {
			said = e.Message
		} else if err := json.Unmarshal(result, &said); err != nil {
			return end, err
		}
		if err := turn.Say(said + "\n"); err != nil {
			return end, err
		}
	}
	return end, nil // cancelled, where the turn was
}

func textOf(prompt []acp.ContentBlock) (text string) {
	for _, block := range prompt {
		if block.Text != nil {
			text += block.Text.Text
		}
	}
	return text
}
