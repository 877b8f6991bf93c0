package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// write makes the release's file, whole or not at all: a temporary file, made durable, takes the
// name in one step. Doing it again puts the same content in the same place.
func (r report) write(dir string) error {
	name := filepath.Join(dir, "release-"+r.Service+"-"+r.Version+".json")
	temp, err := os.CreateTemp(dir, ".release-*")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	defer os.Remove(temp.Name()) // after the rename there is none
	content := json.NewEncoder(temp)
	content.SetEscapeHTML(false)
	content.SetIndent("", "  ")
	if err := errors.Join(content.Encode(r), temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.Rename(temp.Name(), name); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return syncDir(dir)
}

// syncDir makes the new name durable, where a directory can be opened (Windows cannot, and needs it
// not).
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
