package gate

import (
	"context"
	"fmt"
	"sync"
)

// A lifetime counts the requests of a gate or a face, and ends.
type lifetime struct {
	ended  context.Context
	end    context.CancelFunc
	begun  chan struct{} // closed when the end begins
	mu     sync.Mutex    // guards what follows
	shut   bool
	active int
	idle   chan struct{} // closed when shut and active is 0
}

func newLifetime() *lifetime {
	l := &lifetime{begun: make(chan struct{}), idle: make(chan struct{})}
	l.ended, l.end = context.WithCancel(context.Background())
	return l
}

func (l *lifetime) enter(ctx context.Context) (context.Context, func(), bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		return ctx, nil, false
	}
	l.active++
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.ended, cancel)
	return ctx, func() { stop(); cancel(); l.leave() }, true
}

func (l *lifetime) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active--; l.shut && l.active == 0 {
		close(l.idle)
	}
}

func (l *lifetime) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.shut {
		l.shut = true
		close(l.begun)
		if l.active == 0 {
			close(l.idle)
		}
	}
}

func (l *lifetime) closing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shut
}

// close begins the end and waits for the requests that are running, or for ctx.
func (l *lifetime) close(ctx context.Context) error {
	l.begin()
	select {
	case <-l.idle:
		return nil
	default:
	}
	select {
	case <-l.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for running requests: %w", ctx.Err())
	}
}
