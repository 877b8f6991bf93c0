package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/coder/acp-go-sdk"

	acpbridge "github.com/parley-go/parley/bridge/acp"
)

// calls keeps the calls of all sessions in a file.
type calls struct {
	mu   sync.Mutex // guards the file
	file string
}

// left returns the calls of a session that there is.
func (c *calls) left(id acp.SessionId) ([]acpbridge.Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, err := c.read()
	left, ok := all[id]
	if err == nil && !ok {
		err = acp.NewInvalidParams(map[string]any{"error": "there is no such session"})
	}
	return left, err
}

func (c *calls) keep(id acp.SessionId, left []acpbridge.Call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, err := c.read()
	if err != nil {
		return err
	}
	all[id] = left
	data, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(c.file+".next", data, 0o600)
	}
	if err == nil {
		err = os.Rename(c.file+".next", c.file) // whole, or as it was
	}
	return err
}

func (c *calls) read() (map[acp.SessionId][]acpbridge.Call, error) {
	all := map[acp.SessionId][]acpbridge.Call{}
	data, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(data, &all)
}
