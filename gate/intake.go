package gate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// An intake takes the requests of a gate or a face, until it is closed, and knows those that are
// running.
type intake struct {
	begun   chan struct{} // closed when the end begins
	mu      sync.Mutex    // guards what follows
	shut    bool
	running map[*visit]bool
	idle    chan struct{} // closed when shut and nothing is running
}

// A visit is one request or run that is going on. It has one context, whichever of its intakes
// ends.
type visit struct{ cancel func() }

func newIntake() *intake {
	return &intake{begun: make(chan struct{}), idle: make(chan struct{}), running: map[*visit]bool{}}
}

// enter begins a request, and reports false where none is taken any more.
func (in *intake) enter(v *visit) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.shut {
		return false
	}
	in.running[v] = true
	return true
}

func (in *intake) leave(v *visit) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if delete(in.running, v); in.shut && len(in.running) == 0 {
		close(in.idle)
	}
}

// end cancels what is still running after close.
func (in *intake) end() {
	in.mu.Lock()
	running := slices.Collect(maps.Keys(in.running))
	in.mu.Unlock()
	for _, v := range running {
		v.cancel()
	}
}

func (in *intake) begin() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.shut {
		in.shut = true
		close(in.begun)
		if len(in.running) == 0 {
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
