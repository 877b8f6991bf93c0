package gate

import (
	"context"
	"fmt"
	"sync"
)

// An intake takes the requests of a gate or a face, until it is closed, and counts those that are
// running.
type intake struct {
	ended  context.Context
	end    context.CancelFunc
	begun  chan struct{} // closed when the end begins
	mu     sync.Mutex    // guards what follows
	shut   bool
	active int
	idle   chan struct{} // closed when shut and active is 0
}

func newIntake() *intake {
	in := &intake{begun: make(chan struct{}), idle: make(chan struct{})}
	in.ended, in.end = context.WithCancel(context.Background())
	return in
}

func (in *intake) enter(ctx context.Context) (context.Context, func(), bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.shut {
		return ctx, nil, false
	}
	in.active++
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(in.ended, cancel)
	return ctx, func() { stop(); cancel(); in.leave() }, true
}

func (in *intake) leave() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.active--; in.shut && in.active == 0 {
		close(in.idle)
	}
}

func (in *intake) begin() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.shut {
		in.shut = true
		close(in.begun)
		if in.active == 0 {
			close(in.idle)
		}
	}
}

func (in *intake) closing() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.shut
}

// close begins the end and waits for the requests that are running, or for ctx.
func (in *intake) close(ctx context.Context) error {
	in.begin()
	select {
	case <-in.idle:
		return nil
	default:
	}
	select {
	case <-in.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for running requests: %w", ctx.Err())
	}
}
