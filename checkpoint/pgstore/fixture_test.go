package pgstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

func idOf(n int) (id checkpoint.ID) {
	binary.BigEndian.PutUint32(id[:], uint32(n))
	id[11] = 1
	return id
}

func record(n int) checkpoint.Record {
	return checkpoint.Record{ID: idOf(n), Revision: 1, Status: checkpoint.Open, Scope: checkpoint.Hash{1}, Data: []byte("data")}
}

func next(r checkpoint.Record) checkpoint.Record {
	r.Revision++
	return r
}

func puts(records ...checkpoint.Record) *checkpoint.Batch {
	b := &checkpoint.Batch{}
	for _, r := range records {
		b.Puts = append(b.Puts, checkpoint.Put{Record: r})
	}
	return b
}

func commit(t testing.TB, s checkpoint.Store, b *checkpoint.Batch) {
	t.Helper()
	if err := s.Commit(context.Background(), b); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

func join(t testing.TB, s checkpoint.Store) checkpoint.Member {
	t.Helper()
	_, m, err := s.Join(context.Background(), checkpoint.Ledger{ID: [16]byte{1}})
	if err != nil {
		t.Fatalf("join: %v", err)
	}
	return m
}

func wantAlive(t testing.TB, m checkpoint.Member, owner string, want bool) {
	t.Helper()
	if alive, err := m.Alive(context.Background(), owner); err != nil || alive != want {
		t.Fatalf("owner %q is alive: %t, error %v, want %t", owner, alive, err, want)
	}
}

func isReadOnly(err error) bool { return errors.Is(err, checkpoint.ErrReadOnly) }

func isUnavailable(err error) bool { return errors.Is(err, checkpoint.ErrUnavailable) }

// eventually waits for what a server or another goroutine does in its own time.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within half a minute: %s", what)
		}
	}
}

// wait ends the test where the channel is not closed in good time.
func wait(t testing.TB, what string, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(30 * time.Second):
		t.Fatalf("not within half a minute: %s", what)
	}
}
