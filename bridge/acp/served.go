package acpbridge

import (
	"context"

	"github.com/coder/acp-go-sdk"
)

// A served agent is the application's, with the bridge around what the bridge has to know of. What
// the SDK adds to its interface is the agent's own, where it has that, and else does not get here.
type served struct {
	acp.Agent // nil where the application's has not all of its methods
	agent     Agent
	bridge    *Bridge
}

var (
	_ acp.Agent                  = (*served)(nil)
	_ acp.AgentLoader            = (*served)(nil)
	_ acp.ExtensionMethodHandler = (*served)(nil)
)

// Initialize notes what the client can show.
func (s *served) Initialize(ctx context.Context, p acp.InitializeRequest) (acp.InitializeResponse, error) {
	b := s.bridge
	b.mu.Lock()
	b.client, b.can = p.ClientInfo, capabilitiesOf(p.ClientCapabilities)
	b.mu.Unlock()
	return s.agent.Initialize(ctx, p)
}

// Prompt runs the agent's Prompt in its turn, whose context is the turn's own: the SDK's ends for
// reasons that are none (a second prompt), and does not where it should (session/close). The
// response is that of the turn: what was cancelled ends with cancelled and in no other way.
func (s *served) Prompt(ctx context.Context, p acp.PromptRequest) (response acp.PromptResponse, err error) {
	t, err := s.bridge.take(&p)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	defer func() {
		t.finish()
		if t.Cancelled() {
			response, err = acp.PromptResponse{StopReason: acp.StopReasonCancelled, UserMessageId: response.UserMessageId}, nil
		}
		err = onWire(err)
	}()
	if err := t.begin(); err != nil {
		return acp.PromptResponse{}, err
	}
	if t.ctx.Err() != nil { // it was cancelled before it began, and nobody needs to hear of it
		return acp.PromptResponse{}, unavailable(context.Cause(t.ctx))
	}
	return s.agent.Prompt(context.WithValue(t.ctx, turnKey{}, t), p)
}

// givenUp ends the turns where the connection is gone, now: the goroutine that waits for that may
// not have come to it.
func (b *Bridge) givenUp() {
	select {
	case <-b.peer.Done():
		b.lost()
	default:
	}
}

// await waits for the responses of a session's turns that were cancelled.
func (b *Bridge) await(ctx context.Context, id acp.SessionId) {
	for _, t := range b.unanswered() {
		if t.sessionID != id || t.ctx.Err() == nil {
			continue
		}
		select {
		case <-t.told:
		case <-ctx.Done():
			return
		}
	}
}
