package main

import (
	"context"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/bridge/acp/acpagent"
)

// ResumeSession shows the calls that wait. What was said the editor has.
func (e *editorAgent) ResumeSession(ctx context.Context, p acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	if _, err := e.sessions.read(string(p.SessionId)); err != nil {
		return acp.ResumeSessionResponse{}, err
	}
	_, err := acpagent.Waiting(ctx, e.bridge, e.agent, scope, p.SessionId)
	return acp.ResumeSessionResponse{}, err
}

// Cancel and CloseSession have nothing to do: the bridge ends the turn.
func (e *editorAgent) Cancel(context.Context, acp.CancelNotification) error { return nil }

func (e *editorAgent) CloseSession(context.Context, acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	return acp.CloseSessionResponse{}, nil
}

func (e *editorAgent) Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, nil
}

func (e *editorAgent) ListSessions(context.Context, acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	return acp.ListSessionsResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionList)
}

func (e *editorAgent) SetSessionMode(context.Context, acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	return acp.SetSessionModeResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetMode)
}

func (e *editorAgent) SetSessionConfigOption(
	context.Context, acp.SetSessionConfigOptionRequest,
) (acp.SetSessionConfigOptionResponse, error) {
	return acp.SetSessionConfigOptionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetConfigOption)
}
