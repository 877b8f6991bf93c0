package agent

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"sync"
)

// A capture is eino's checkpoint store for one going of a run: it serves the checkpoints that the
// run was claimed with and keeps what eino writes, for the run's own commit. There is one
// checkpoint for the agent and one for each agent in a tool that waits. It cannot fail, and does
// not look at the caller's context: where a store fails eino shows a question that it could not
// save.
type capture struct {
	mu          sync.Mutex // guards what follows
	checkpoints map[string][]byte
	written     map[string]bool
}

// open reads what pack wrote; nil is a run that has stopped nowhere yet.
func (c *capture) open(blob []byte) error {
	c.checkpoints, c.written = map[string][]byte{}, map[string]bool{}
	if blob == nil {
		return nil
	}
	if err := gob.NewDecoder(bytes.NewReader(blob)).Decode(&c.checkpoints); err != nil {
		return fmt.Errorf("read the checkpoints: %w", err)
	}
	return nil
}

// pack writes the checkpoints as one blob.
func (c *capture) pack() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var buf bytes.Buffer
	err := gob.NewEncoder(&buf).Encode(c.checkpoints)
	return buf.Bytes(), err
}

// Get implements eino's store.
func (c *capture) Get(_ context.Context, id string) ([]byte, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	checkpoint, ok := c.checkpoints[id]
	return checkpoint, ok, nil
}

// Set implements eino's store.
func (c *capture) Set(_ context.Context, id string, checkpoint []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checkpoints[id], c.written[id] = bytes.Clone(checkpoint), true
	return nil
}

// has reports whether there is a checkpoint, and whether eino wrote it in this going.
func (c *capture) has(id string) (there, written bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, there = c.checkpoints[id]
	return there, c.written[id]
}

// drop forgets the checkpoint of an agent that came to its end.
func (c *capture) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.checkpoints, id)
}
