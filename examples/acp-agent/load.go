package main

import (
	"context"

	"github.com/cloudwego/eino/schema"
	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/bridge/acp/acpagent"
)

// LoadSession replays what was said, and then the calls that wait.
func (e *editorAgent) LoadSession(ctx context.Context, p acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	said, err := e.sessions.read(string(p.SessionId))
	if err != nil {
		return acp.LoadSessionResponse{}, err
	}
	for _, m := range said {
		update := acp.UpdateAgentMessageText(m.Content)
		if m.Role == schema.User {
			update = acp.UpdateUserMessageText(m.Content)
		}
		if err := e.bridge.Update(p.SessionId, update); err != nil {
			return acp.LoadSessionResponse{}, err
		}
	}
	_, err = acpagent.Waiting(ctx, e.bridge, e.agent, p.SessionId)
	return acp.LoadSessionResponse{}, err
}

// ResumeSession shows the calls that wait. What was said the editor has.
func (e *editorAgent) ResumeSession(ctx context.Context, p acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	if _, err := e.sessions.read(string(p.SessionId)); err != nil {
		return acp.ResumeSessionResponse{}, err
	}
	_, err := acpagent.Waiting(ctx, e.bridge, e.agent, p.SessionId)
	return acp.ResumeSessionResponse{}, err
}
