package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// R22: of the processes of a database none makes keys of its own, which would refuse the tokens of
// the others; -migrate makes the tables and ends.
func TestFirstStart(t *testing.T) {
	url := pgtest.Private(t).URL()
	dir := t.TempDir()
	run := func(args ...string) (string, error) {
		cmd := command(dir, args...)
		cmd.Env = append(cmd.Env, "PARLEY_POSTGRES="+url)
		var said bytes.Buffer
		cmd.Stderr = &said
		err := cmd.Run()
		return said.String(), err
	}
	if said, err := run("-migrate"); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	store, err := pgstore.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	users := filepath.Join(dir, "users")
	if said, err := run("-http", "localhost:0", "-tokens", users); err == nil || !strings.Contains(said, "(-tokens)") {
		t.Errorf("without users: %v: %s", err, said)
	}
	if err := os.WriteFile(users, []byte("the-token-of-ann ann\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := run("-http", "localhost:0", "-tokens", users); err == nil || !strings.Contains(said, "there is no key file") {
		t.Errorf("without keys: %v: %s", err, said)
	}
	if _, err := os.Stat(filepath.Join(dir, "tokens.key")); err == nil {
		t.Error("a key was made")
	}
}
