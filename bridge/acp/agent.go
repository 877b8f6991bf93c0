package acpbridge

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/coder/acp-go-sdk"
)

// An Agent is what a client talks to. Every [acp.Agent] is one; but what most agents have no use
// for need not be there, and a method that the SDK adds is none that is missing. What is there is
// found: Authenticate, Cancel, CloseSession, ListSessions, LoadSession, ResumeSession,
// SetSessionMode, SetSessionConfigOption and HandleExtensionMethod, as the SDK has them. Its
// experimental methods are not.
type Agent interface {
	Initialize(ctx context.Context, p acp.InitializeRequest) (acp.InitializeResponse, error)
	NewSession(ctx context.Context, p acp.NewSessionRequest) (acp.NewSessionResponse, error)
	Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error)
}

var _ Agent = (acp.Agent)(nil)

// methods are those that are served whatever the agent has.
var methods = []string{
	acp.AgentMethodInitialize, acp.AgentMethodAuthenticate, acp.AgentMethodSessionNew, acp.AgentMethodSessionLoad,
	acp.AgentMethodSessionResume, acp.AgentMethodSessionList, acp.AgentMethodSessionClose, acp.AgentMethodSessionPrompt,
	acp.AgentMethodSessionCancel, acp.AgentMethodSessionSetMode, acp.AgentMethodSessionSetConfigOption, "$/cancel_request",
}

// NewSession is the agent's.
func (s *served) NewSession(ctx context.Context, p acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	return s.agent.NewSession(ctx, p)
}

// Cancel comes when the session's turns were cancelled, which is all there is to do.
func (s *served) Cancel(ctx context.Context, p acp.CancelNotification) error {
	if a, ok := s.agent.(interface {
		Cancel(context.Context, acp.CancelNotification) error
	}); ok {
		return a.Cancel(ctx, p)
	}
	return nil
}

// CloseSession comes behind the responses of the session's turns, which were cancelled when it was
// read.
func (s *served) CloseSession(ctx context.Context, p acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	s.bridge.await(ctx, p.SessionId)
	if a, ok := s.agent.(interface {
		CloseSession(context.Context, acp.CloseSessionRequest) (acp.CloseSessionResponse, error)
	}); ok {
		return a.CloseSession(ctx, p)
	}
	return acp.CloseSessionResponse{}, nil
}

// Authenticate is the agent's, where it has one; so are the methods below.
func (s *served) Authenticate(ctx context.Context, p acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	if a, ok := s.agent.(interface {
		Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error)
	}); ok {
		return a.Authenticate(ctx, p)
	}
	return acp.AuthenticateResponse{}, acp.NewMethodNotFound(acp.AgentMethodAuthenticate)
}

func (s *served) LoadSession(ctx context.Context, p acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	if a, ok := s.agent.(acp.AgentLoader); ok {
		r, err := a.LoadSession(ctx, p)
		return r, onWire(err)
	}
	return acp.LoadSessionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionLoad)
}

func (s *served) ResumeSession(ctx context.Context, p acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	if a, ok := s.agent.(interface {
		ResumeSession(context.Context, acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error)
	}); ok {
		r, err := a.ResumeSession(ctx, p)
		return r, onWire(err)
	}
	return acp.ResumeSessionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionResume)
}

func (s *served) ListSessions(ctx context.Context, p acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	if a, ok := s.agent.(interface {
		ListSessions(context.Context, acp.ListSessionsRequest) (acp.ListSessionsResponse, error)
	}); ok {
		return a.ListSessions(ctx, p)
	}
	return acp.ListSessionsResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionList)
}

func (s *served) SetSessionMode(ctx context.Context, p acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	if a, ok := s.agent.(interface {
		SetSessionMode(context.Context, acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error)
	}); ok {
		return a.SetSessionMode(ctx, p)
	}
	return acp.SetSessionModeResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetMode)
}

func (s *served) SetSessionConfigOption(
	ctx context.Context, p acp.SetSessionConfigOptionRequest,
) (acp.SetSessionConfigOptionResponse, error) {
	if a, ok := s.agent.(interface {
		SetSessionConfigOption(context.Context, acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error)
	}); ok {
		return a.SetSessionConfigOption(ctx, p)
	}
	return acp.SetSessionConfigOptionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetConfigOption)
}

func (s *served) HandleExtensionMethod(ctx context.Context, method string, params json.RawMessage) (any, error) {
	name, isUnserved := strings.CutPrefix(method, unserved)
	if a, ok := s.agent.(acp.ExtensionMethodHandler); ok && !isUnserved {
		return a.HandleExtensionMethod(ctx, method, params)
	}
	return nil, acp.NewMethodNotFound(name)
}
