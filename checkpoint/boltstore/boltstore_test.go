package boltstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/checkpointtest"
	"github.com/parley-go/parley/internal/powercut"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		os.Exit(commitUntilKilled(path))
	}
	if os.Getenv(childCompacts) != "" {
		os.Exit(compactUntilKilled())
	}
	if powercut.Booted() {
		os.Exit(powercut.Serve(serveStore))
	}
	goleak.VerifyTestMain(m)
}

func TestContract(t *testing.T) {
	paths := make(map[checkpoint.Store]string)
	openAt := func(t testing.TB, path string) checkpoint.Store {
		s := open(t, path, nil)
		paths[s] = path
		return s
	}
	checkpointtest.Run(t, checkpointtest.Harness{
		Open: func(t testing.TB) checkpoint.Store { return openAt(t, newPath(t)) },
		Reopen: func(t testing.TB, s checkpoint.Store) checkpoint.Store {
			shut(t, s.(*boltstore.Store))
			return openAt(t, paths[s])
		},
		Crash: func(t testing.TB, s checkpoint.Store) checkpoint.Store {
			return openAt(t, copyFile(t, paths[s]))
		},
		Check: func(t testing.TB, s checkpoint.Store) { check(t, s.(*boltstore.Store)) },
	})
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "ledger.db") }

// open opens a store, and has it checked and closed when the test ends.
func open(t testing.TB, path string, opts *boltstore.Options) *boltstore.Store {
	t.Helper()
	s, err := boltstore.Open(path, opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		check(t, s)
		shut(t, s)
	})
	return s
}

// check fails the test where the store contradicts itself; one that serves nothing any more is not
// looked at.
func check(t testing.TB, s *boltstore.Store) {
	t.Helper()
	if err := s.Check(context.Background()); err != nil && !errors.Is(err, checkpoint.ErrUnavailable) {
		t.Errorf("check: %v", err)
	}
}

func shut(t testing.TB, s *boltstore.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// copyFile returns the path of a copy: what a killed process has written the system has, so it
// holds what would be found after a kill.
func copyFile(t testing.TB, path string) string {
	t.Helper()
	to := newPath(t)
	write(t, to, read(t, path))
	return to
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func commit(t testing.TB, s *boltstore.Store, b *checkpoint.Batch) {
	t.Helper()
	if err := s.Commit(context.Background(), b); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

// wantRevision fails the test where the record is not at the revision; 0 means that there is none.
func wantRevision(t testing.TB, s *boltstore.Store, n int, want uint64) {
	t.Helper()
	r, err := s.Load(context.Background(), idOf(n))
	if err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
		t.Fatalf("load: %v", err)
	}
	if r.Revision != want {
		t.Fatalf("load: revision %d, want %d", r.Revision, want)
	}
}

func idOf(n int) (id checkpoint.ID) {
	binary.BigEndian.PutUint32(id[:], uint32(n))
	id[11] = 1
	return id
}

func record(n int, revision uint64) checkpoint.Record {
	return checkpoint.Record{ID: idOf(n), Revision: revision, Status: checkpoint.Open, Scope: checkpoint.Hash{1},
		Data: []byte("data")}
}

func put(records ...checkpoint.Record) *checkpoint.Batch {
	b := &checkpoint.Batch{}
	for _, r := range records {
		b.Puts = append(b.Puts, checkpoint.Put{Record: r})
	}
	return b
}

func lazily(b *checkpoint.Batch) *checkpoint.Batch {
	b.Lazy = true
	return b
}

func TestFileMode(t *testing.T) {
	path := newPath(t)
	open(t, path, nil)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != fs.FileMode(0o600) {
		t.Fatalf("mode %v, error %v, want 0600", info.Mode(), err)
	}
	if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1 {
		t.Fatalf("%d files, error %v, want the store only", len(names), err)
	}
}

func TestClosed(t *testing.T) {
	s := open(t, newPath(t), nil)
	_, m, err := s.Join(t.Context(), checkpoint.Ledger{ID: [16]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	shut(t, s)
	_, err1 := s.Load(t.Context(), idOf(1))
	_, err2 := s.Find(t.Context(), checkpoint.Hash{1})
	_, err3 := s.List(t.Context(), checkpoint.Query{})
	_, _, err4 := s.Join(t.Context(), checkpoint.Ledger{})
	_, err5 := m.Alive(t.Context(), m.Owner())
	err6 := s.Commit(t.Context(), put(record(1, 1)))
	err7 := s.Commit(t.Context(), lazily(put(record(1, 1))))
	for i, err := range []error{err1, err2, err3, err4, err5, err6, err7, s.Check(t.Context())} {
		if !errors.Is(err, checkpoint.ErrUnavailable) {
			t.Errorf("call %d: got %v, want ErrUnavailable", i+1, err)
		}
	}
	if err := m.Leave(); err != nil {
		t.Errorf("leave: %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	path := newPath(t)
	if _, err := boltstore.Open(path, &boltstore.Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("open what is not there: got %v, want fs.ErrNotExist", err)
	}
	s := open(t, path, nil)
	shut(t, s)
	s = open(t, path, &boltstore.Options{ReadOnly: true})
	if _, _, err := s.Join(t.Context(), checkpoint.Ledger{ID: [16]byte{1}}); !errors.Is(err, checkpoint.ErrReadOnly) {
		t.Fatalf("join without a ledger: got %v, want ErrReadOnly", err)
	}
	shut(t, s)

	s = open(t, path, nil)
	if _, _, err := s.Join(t.Context(), checkpoint.Ledger{ID: [16]byte{1}}); err != nil {
		t.Fatal(err)
	}
	commit(t, s, put(record(1, 1)))
	shut(t, s)
	before := read(t, path)
	s = open(t, path, &boltstore.Options{ReadOnly: true})
	beside := open(t, path, &boltstore.Options{ReadOnly: true})
	wantRevision(t, s, 1, 1)
	wantRevision(t, beside, 1, 1)
	if err := s.Commit(t.Context(), put(record(1, 2))); !errors.Is(err, checkpoint.ErrReadOnly) {
		t.Fatalf("commit: got %v, want ErrReadOnly", err)
	}
	ledger, _, err := s.Join(t.Context(), checkpoint.Ledger{ID: [16]byte{2}})
	if err != nil || ledger.ID != [16]byte{1} {
		t.Fatalf("join: ledger %x, error %v, want the stored one", ledger.ID, err)
	}
	check(t, s)
	shut(t, s)
	if string(before) != string(read(t, path)) {
		t.Fatal("the file was changed")
	}
}
