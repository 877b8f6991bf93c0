package boltstore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
)

func wantConflict(t *testing.T, err error) {
	t.Helper()
	if _, ok := errors.AsType[*checkpoint.ConflictError](err); !ok {
		t.Fatalf("got %v, want a conflict", err)
	}
}

func TestFailedCommit(t *testing.T) {
	for _, tc := range []struct {
		name      string
		committed bool
		want      uint64 // what the file holds when it is opened again
	}{
		{"before it is in the file", false, 1},
		{"after it is in the file", true, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := newPath(t)
			s := open(t, path, nil)
			_, m, err := s.Join(t.Context(), checkpoint.Ledger{ID: [16]byte{1}})
			if err != nil {
				t.Fatal(err)
			}
			commit(t, s, put(record(1, 1)))
			cause := errors.New("the disk is gone")
			s.SetFailpoint(func(committed bool) error {
				if committed == tc.committed {
					return cause
				}
				return nil
			})
			err0 := s.Commit(t.Context(), put(record(1, 2)))
			s.SetFailpoint(nil)

			_, err1 := s.Load(t.Context(), idOf(1))
			_, err2 := s.Find(t.Context(), checkpoint.Hash{1})
			_, err3 := s.List(t.Context(), checkpoint.Query{})
			_, _, err4 := s.Join(t.Context(), checkpoint.Ledger{})
			_, err5 := m.Alive(t.Context(), m.Owner())
			err6 := s.Commit(t.Context(), put(record(2, 1)))
			err7 := s.Commit(t.Context(), lazily(put(record(1, 2))))
			for i, err := range []error{err0, err1, err2, err3, err4, err5, err6, err7} {
				if !errors.Is(err, checkpoint.ErrUnavailable) || !errors.Is(err, cause) {
					t.Errorf("call %d: got %v, want ErrUnavailable and the cause", i, err)
				}
			}
			shut(t, s)
			s = open(t, path, nil)
			wantRevision(t, s, 1, tc.want)
			wantRevision(t, s, 2, 0)
			commit(t, s, put(record(1, tc.want+1)))
		})
	}
}

func TestFailedGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newPath(t), nil)
		cause := errors.New("the disk is gone")
		gate := make(chan struct{})
		s.SetFailpoint(func(bool) error { <-gate; return cause })
		answers := make(chan error, 10)
		// The first waits for the disk, the others for it; all of them are answered.
		for n := range 5 {
			go func() { answers <- s.Commit(t.Context(), put(record(n, 1))) }()
		}
		synctest.Wait()
		close(gate)
		for range 5 {
			if err := <-answers; !errors.Is(err, checkpoint.ErrUnavailable) {
				t.Errorf("got %v, want ErrUnavailable", err)
			}
		}
	})
}

func TestConflictInAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newPath(t), nil)
		entered, release := blockCommits(s)
		commitInBackground := func(b *checkpoint.Batch) <-chan error {
			answer := make(chan error, 1)
			go func() { answer <- s.Commit(t.Context(), b) }()
			synctest.Wait()
			return answer
		}
		first := commitInBackground(put(record(1, 1)))
		<-entered
		// These share the next transaction; each is compared with what those before it leave.
		good := commitInBackground(put(record(2, 1)))
		bad := commitInBackground(put(record(3, 1), record(2, 1)))
		onTop := commitInBackground(put(record(2, 2)))
		release()
		for _, answer := range []<-chan error{first, good, onTop} {
			if err := <-answer; err != nil {
				t.Errorf("commit: %v", err)
			}
		}
		wantConflict(t, <-bad)
		wantRevision(t, s, 2, 2)
		wantRevision(t, s, 3, 0)
	})
}

func TestCommitAfterContextEnded(t *testing.T) {
	s := open(t, newPath(t), nil)
	entered, release := blockCommits(s)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	r := record(1, 1)
	b := put(r)
	go func() { answer <- s.Commit(ctx, b) }()
	<-entered
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Fatalf("commit: got %v, want context.Canceled", err)
	}
	clear(r.Data) // the batch is the caller's again, though it is still being written
	release()
	commit(t, s, put(record(2, 1)))
	got, err := s.Load(t.Context(), idOf(1))
	if err != nil || string(got.Data) != "data" {
		t.Fatalf("load: data %q, error %v", got.Data, err)
	}
}

func TestCloseWhileCommitting(t *testing.T) {
	path := newPath(t)
	s := open(t, path, &boltstore.Options{IdleFlush: time.Hour})
	answers := make(chan int, 50)
	for n := range 50 {
		go func() {
			if err := s.Commit(t.Context(), put(record(n, 1))); err == nil {
				answers <- n
			} else {
				if !errors.Is(err, checkpoint.ErrUnavailable) {
					t.Errorf("commit: got %v, want ErrUnavailable", err)
				}
				answers <- -1
			}
		}()
	}
	first := <-answers
	shut(t, s)
	again := open(t, path, nil)
	for range 50 {
		if first >= 0 {
			wantRevision(t, again, first, 1)
		}
		if len(answers) == 0 {
			break
		}
		first = <-answers
	}
}
