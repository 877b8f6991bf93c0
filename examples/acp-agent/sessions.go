package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cloudwego/eino/schema"
	"github.com/coder/acp-go-sdk"
)

// sessions keeps what was said in each session in a file of its own.
type sessions struct{ dir string }

func (s sessions) create() (id string, err error) {
	id = rand.Text()
	return id, s.write(id, nil)
}

func (s sessions) path(id string) string { return filepath.Join(s.dir, "session-"+id+".json") }

// read returns what was said, or the protocol's error for a session that there is not.
func (s sessions) read(id string) (said []*schema.Message, err error) {
	unknown := acp.NewInvalidParams(map[string]any{"error": "there is no such session"})
	if strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" { // no id of rand.Text, and perhaps a path
		return nil, unknown
	}
	data, err := os.ReadFile(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	return said, json.Unmarshal(data, &said)
}

// write replaces the file whole.
func (s sessions) write(id string, said []*schema.Message) error {
	data, err := json.Marshal(said)
	if err != nil {
		return err
	}
	next := s.path(id) + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.path(id))
}
