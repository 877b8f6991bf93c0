package mcpbridge

import (
	"sync"
	"time"
)

// conversations are those of a client handler. One that asked something waits here between two runs
// of the tool's handler, for a limited time, since the question may never be answered.
type conversations struct {
	limit   time.Duration
	running sync.WaitGroup

	mu      sync.Mutex               // guards what follows
	waiting map[string]*conversation // by the step in which it asked
	closed  bool
}

// run runs a conversation, or reports false where there are no more.
func (t *conversations) run(talk func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.running.Go(talk)
	return true
}

// put lets a conversation wait.
func (t *conversations) put(step string, c *conversation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		c.cancel()
		return
	}
	t.waiting[step] = c
	c.over = time.AfterFunc(t.limit, func() { t.drop(step) })
}

// take returns the one that asked in that step; nil: there is none.
func (t *conversations) take(step string) *conversation {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.waiting[step]
	if c != nil {
		c.over.Stop()
		delete(t.waiting, step)
	}
	return c
}

// drop tells the server that nobody answers what was asked in that step.
func (t *conversations) drop(step string) {
	if c := t.take(step); c != nil {
		c.leave()
	}
}

// close breaks off those that wait, and those that would later.
func (t *conversations) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, c := range t.waiting {
		c.over.Stop()
		c.cancel()
	}
	clear(t.waiting)
}
