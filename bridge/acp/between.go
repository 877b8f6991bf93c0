package acpbridge

import (
	"context"

	"github.com/coder/acp-go-sdk"
)

// Between runs f in a turn that no prompt began, and returns at once: for an agent that puts the
// questions of a session again as soon as it was loaded ([Bridge.Waiting], package acpagent), and
// not only with the next message. It can be called in LoadSession; clients have been seen to take a
// question before the response, too.
//
// The turn's context is that of f, as in a Prompt. It ends as every turn does; a new message of the
// person's ends it as well, and then nothing is recorded: the question is withdrawn, waits, and can
// be put again in the turn of the message, which begins when f has returned. Where a turn of the
// session is going on f does not run.
func (b *Bridge) Between(session acp.SessionId, f func(ctx context.Context, t *Turn)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	t := b.turn(newKey(), session)
	t.between = true
	b.alive.Add(1)
	go func() {
		defer t.finish()
		select {
		case <-b.connected:
		case <-t.ctx.Done():
			return
		}
		b.givenUp()
		if t.begin() == nil && t.ctx.Err() == nil {
			f(context.WithValue(t.ctx, turnKey{}, t), t)
		}
	}()
}
