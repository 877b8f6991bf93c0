package main

import (
	"context"
	"errors"
	"strings"

	"github.com/cloudwego/eino/schema"
	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/agent"
	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/bridge/acp/acpagent"
	"github.com/parley-go/parley/gate"
)

// An editorAgent is what the editor talks to.
type editorAgent struct {
	bridge   *acpbridge.Bridge
	agent    *agent.Agent
	sessions sessions
	root     string
}

func (e *editorAgent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber, AuthMethods: []acp.AuthMethod{},
		AgentInfo: &acp.Implementation{Name: "parley-acp-agent", Version: "0"},
		AgentCapabilities: acp.AgentCapabilities{
			LoadSession:         true,
			SessionCapabilities: acp.SessionCapabilities{Resume: &acp.SessionResumeCapabilities{}, Close: &acp.SessionCloseCapabilities{}},
		},
	}, nil
}

func (e *editorAgent) NewSession(_ context.Context, p acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	if p.Cwd != e.root { // the tools know one directory
		message := "this agent works in " + e.root + ", where it was started"
		return acp.NewSessionResponse{}, acp.NewInvalidParams(map[string]any{"error": message})
	}
	id, err := e.sessions.create()
	return acp.NewSessionResponse{SessionId: acp.SessionId(id)}, err
}

// Prompt goes on with what an earlier turn left open, and then does what the message says. What is
// said is kept for the session's next turn.
func (e *editorAgent) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	turn, id := acpbridge.TurnOf(ctx), string(p.SessionId)
	said, err := e.sessions.read(id)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	note := func(m *schema.Message) error {
		said = append(said, m)
		return e.sessions.write(id, said)
	}
	left, err := acpagent.GoOn(ctx, turn, e.agent)
	if err != nil && !waits(err) && ctx.Err() == nil { // it would fail before every message
		_ = turn.Say("\nWhat was left could not go on, and is over: " + err.Error() + "\n")
		left, err = nil, acpagent.End(ctx, turn, e.agent)
	}
	if err == nil && left != nil {
		err = note(schema.AssistantMessage(left.Message, nil))
	}
	if err == nil {
		err = note(schema.UserMessage(textOf(p.Prompt)))
	}
	if err == nil {
		var run *agent.Run
		if run, err = acpagent.Start(ctx, turn, e.agent, said); err == nil {
			err = note(schema.AssistantMessage(run.Message, nil))
		}
	}
	if waits(err) { // that is no failure: the next message goes on with it
		err = turn.Say("\nA question waits: " + err.Error())
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
}

// waits reports whether a run stopped at a question that can still be answered.
func waits(err error) bool {
	e, ok := errors.AsType[*gate.Error](err)
	return ok && e.StillOpen
}

func textOf(blocks []acp.ContentBlock) string {
	var parts []string
	for _, b := range blocks {
		switch {
		case b.Text != nil:
			parts = append(parts, b.Text.Text)
		case b.ResourceLink != nil:
			parts = append(parts, b.ResourceLink.Uri)
		}
	}
	return strings.Join(parts, "\n")
}
