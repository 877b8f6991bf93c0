package acpbridge

import (
	"context"
	"errors"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// Waiting returns those of a session's calls that [Turn.CallTool] would go on with, and those that
// expired meanwhile, so that their end is told, in their order, and shows them in the editor as
// pending. It is for session/load and session/resume, for those calls whose end the agent's own
// record of the session does not have; make them again at the beginning of the session's next turn.
// Nothing runs, and nobody is asked here: an answer needs a turn to go on in.
func (b *Bridge) Waiting(ctx context.Context, session acp.SessionId, calls []Call) ([]Call, error) {
	var waiting []Call
	for _, c := range calls {
		scope, err := b.scope(ctx, session, c.Tool)
		if err != nil {
			return nil, err
		}
		s, err := b.face.Inspect(ctx, scope, startID(session, c.ID))
		switch {
		case errors.Is(err, gate.ErrStartUnknown):
			continue
		case err != nil:
			return nil, err
		case !s.GoesOn && s.Status != checkpoint.Expired: // that one waits to be told so
			continue
		}
		if err := b.ShowWaiting(session, c); err != nil {
			return nil, err
		}
		waiting = append(waiting, c)
	}
	return waiting, nil
}

// ShowWaiting shows a call in the editor as pending, outside of a turn.
func (b *Bridge) ShowWaiting(session acp.SessionId, c Call) error {
	if err := c.named(session); err != nil {
		return err
	}
	update, _ := b.started(c)
	return b.Update(session, update)
}

// Update sends a session update outside of a turn, as session/load does that replays what was said.
// It waits where the agent is called before [Bridge.Connect] has returned.
func (b *Bridge) Update(session acp.SessionId, u acp.SessionUpdate) error {
	<-b.connected
	if err := b.peer.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: session, Update: u}); err != nil {
		return unavailable(err)
	}
	return nil
}
