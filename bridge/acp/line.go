package acpbridge

import (
	"context"
	"slices"
	"sync"

	"github.com/coder/acp-go-sdk"
)

// A line is where the questions of one session wait, first in, first out. Two of one call are never
// at the front together: many clients know a question by its tool call alone.
type line struct {
	most int

	mu      sync.Mutex // guards what follows
	open    []acp.ToolCallId
	waiting []*ticket
}

type ticket struct {
	call  acp.ToolCallId
	front chan struct{}
}

// enter waits for the front of the line. leave makes room for the next.
func (l *line) enter(ctx context.Context, call acp.ToolCallId) (leave func(), err error) {
	t := &ticket{call: call, front: make(chan struct{})}
	l.mu.Lock()
	l.waiting = append(l.waiting, t)
	l.advance()
	l.mu.Unlock()
	select {
	case <-t.front:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		if i := slices.Index(l.waiting, t); i >= 0 {
			l.waiting = slices.Delete(l.waiting, i, i+1)
			return nil, context.Cause(ctx)
		}
		l.left(call) // it came to the front in the same moment
		return nil, context.Cause(ctx)
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.left(call)
	}, nil
}

// left and advance need l.mu.
func (l *line) left(call acp.ToolCallId) {
	i := slices.Index(l.open, call)
	l.open = slices.Delete(l.open, i, i+1)
	l.advance()
}

func (l *line) advance() {
	l.waiting = slices.DeleteFunc(l.waiting, func(t *ticket) bool {
		if len(l.open) >= l.most || slices.Contains(l.open, t.call) {
			return false
		}
		l.open = append(l.open, t.call)
		close(t.front)
		return true
	})
}
