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

// The checkpoints of a run as one blob:
//
//	captureFormat ‖ for each: uvarint(len(name)) ‖ name ‖ uvarint(len(checkpoint)) ‖ checkpoint
//
// The first releases wrote a map with gob, no stream of which begins with that byte.
const captureFormat = 0x81

var errCapture = errors.New("read the checkpoints: they are damaged")

// open reads what pack wrote; nil is a run that has stopped nowhere yet. It keeps blob.
func (c *capture) open(blob []byte) error {
	c.checkpoints, c.written = map[string][]byte{}, map[string]bool{}
	if blob == nil {
		return nil
	}
	if len(blob) == 0 || blob[0] != captureFormat {
		if err := gob.NewDecoder(bytes.NewReader(blob)).Decode(&c.checkpoints); err != nil {
			return fmt.Errorf("read the checkpoints: %w", err)
		}
		return nil
	}
	for rest := blob[1:]; len(rest) > 0; {
		var name, checkpoint []byte
		var ok bool
		if name, rest, ok = cutPart(rest); ok {
			checkpoint, rest, ok = cutPart(rest)
		}
		if _, twice := c.checkpoints[string(name)]; twice || !ok {
			return errCapture
		}
		c.checkpoints[string(name)] = checkpoint
	}
	return nil
}

// pack writes the checkpoints as one blob.
func (c *capture) pack() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := 1
	for name, checkpoint := range c.checkpoints {
		size += 2*binary.MaxVarintLen64 + len(name) + len(checkpoint)
	}
	blob := append(make([]byte, 0, size), captureFormat)
	for _, name := range slices.Sorted(maps.Keys(c.checkpoints)) {
		blob = appendPart(appendPart(blob, []byte(name)), c.checkpoints[name])
	}
	return blob
}

func appendPart(to, part []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(part))), part...)
}

func cutPart(from []byte) (part, rest []byte, ok bool) {
	size, n := binary.Uvarint(from)
	if n <= 0 || size > uint64(len(from)-n) {
		return nil, nil, false
	}
	end := n + int(size)
	return from[n:end:end], from[end:], true
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
