//go:build unix

package boltstore_test

import (
	"syscall"
	"testing"
)

// makePipe makes a pipe that nobody writes to: to open it would wait for ever.
func makePipe(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
}
