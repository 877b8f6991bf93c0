package agent

import (
	"bytes"
	"context"
	"sync"
)

// A capture is eino's checkpoint store for one going of a run: it serves the blob that the run was
// claimed with and keeps what eino writes, for the run's own commit. It cannot fail, and does not
// look at the caller's context: where a store fails eino shows a question that it could not save.
type capture struct {
	mu   sync.Mutex
	blob []byte
	set  bool
}

func (c *capture) Get(context.Context, string) ([]byte, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blob, c.blob != nil, nil
}

func (c *capture) Set(_ context.Context, _ string, blob []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blob, c.set = bytes.Clone(blob), true
	return nil
}

// taken is what eino wrote.
func (c *capture) taken() ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blob, c.set
}
