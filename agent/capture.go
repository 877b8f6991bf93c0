package agent

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// A capture is eino's checkpoint store while a run goes on: it serves the checkpoints of the run's
// last commit, and keeps in memory what eino writes, until the run's next commit writes it to the
// real store. There is a checkpoint for the agent, and one for each agent in a tool that waits.
//
// It never fails, not even where the caller's context has ended: eino would show a question
// although its checkpoint was not saved.
type capture struct {
	mu          sync.Mutex // guards what follows
	checkpoints map[string]captured
	written     map[string]bool // those that eino wrote since open
}

// A captured is one checkpoint, in the form that it has in the run's blob:
//
//	captureFormat ‖ uvarint(len(id)) ‖ id ‖ uvarint(len(checkpoint)) ‖ checkpoint
//
// The blob is all of them, one after the other. The first releases wrote a map with gob; no gob
// stream begins with the byte captureFormat.
type captured struct {
	part       []byte
	checkpoint []byte // the end of part
}

const captureFormat = 0x81

var errCapture = errors.New("read the checkpoints: they are damaged")

func capturedAs(id string, checkpoint []byte) captured {
	part := append(make([]byte, 0, 1+2*binary.MaxVarintLen64+len(id)+len(checkpoint)), captureFormat)
	part = appendSized(appendSized(part, []byte(id)), checkpoint)
	return captured{part, part[len(part)-len(checkpoint):]}
}

// open reads what pack wrote, and keeps blob: the caller must not change it. A run without a commit
// has a nil blob.
func (c *capture) open(blob []byte) error {
	c.checkpoints, c.written = map[string]captured{}, map[string]bool{}
	switch {
	case blob == nil:
		return nil
	case len(blob) == 0 || blob[0] != captureFormat:
		return c.openGob(blob)
	}
	for len(blob) > 0 {
		id, rest, ok := cutSized(blob[1:])
		if !ok || blob[0] != captureFormat {
			return errCapture
		}
		checkpoint, rest, ok := cutSized(rest)
		if _, twice := c.checkpoints[string(id)]; twice || !ok {
			return errCapture
		}
		c.checkpoints[string(id)] = captured{blob[:len(blob)-len(rest)], checkpoint}
		blob = rest
	}
	return nil
}

func (c *capture) openGob(blob []byte) error {
	var all map[string][]byte
	if err := gob.NewDecoder(bytes.NewReader(blob)).Decode(&all); err != nil {
		return fmt.Errorf("read the checkpoints: %w", err)
	}
	for id, checkpoint := range all {
		c.checkpoints[id] = capturedAs(id, checkpoint)
	}
	return nil
}

// pack returns the checkpoints as one blob. The caller must not change it.
func (c *capture) pack() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts [][]byte
	for _, id := range slices.Sorted(maps.Keys(c.checkpoints)) {
		parts = append(parts, c.checkpoints[id].part)
	}
	if len(parts) == 1 { // the ordinary case, in which megabytes need not be copied
		return parts[0]
	}
	return slices.Concat(parts...)
}

func appendSized(to, part []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(part))), part...)
}

func cutSized(from []byte) (part, rest []byte, ok bool) {
	size, n := binary.Uvarint(from)
	if n <= 0 || size > uint64(len(from)-n) {
		return nil, nil, false
	}
	end := n + int(size)
	return from[n:end:end], from[end:], true
}

// Get implements [adk.CheckPointStore].
func (c *capture) Get(_ context.Context, id string) ([]byte, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	checkpoint, ok := c.checkpoints[id]
	return checkpoint.checkpoint, ok, nil
}

// Set implements [adk.CheckPointStore].
func (c *capture) Set(_ context.Context, id string, checkpoint []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checkpoints[id], c.written[id] = capturedAs(id, checkpoint), true
	return nil
}

// has reports whether there is a checkpoint, and whether eino wrote it since open.
func (c *capture) has(id string) (there, written bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, there = c.checkpoints[id]
	return there, c.written[id]
}

// drop forgets the checkpoint of an agent that has come to its end.
func (c *capture) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.checkpoints, id)
}
