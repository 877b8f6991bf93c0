package boltstore_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
)

func TestIdleFlush(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		s := open(t, path, &boltstore.Options{IdleFlush: time.Minute})
		commit(t, s, put(record(1, 1)))
		commit(t, s, lazily(put(record(1, 2))))

		time.Sleep(time.Minute - 1)
		synctest.Wait()
		killed := open(t, copyFile(t, path), nil)
		wantRevision(t, killed, 1, 1)
		wantRevision(t, s, 1, 2)

		time.Sleep(time.Nanosecond)
		synctest.Wait()
		killed = open(t, copyFile(t, path), nil)
		wantRevision(t, killed, 1, 2)
		wantRevision(t, s, 1, 2)
	})
}

func TestManyLazyAreFlushedEarly(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		s := open(t, path, &boltstore.Options{IdleFlush: time.Hour})
		const count = 600
		created := &checkpoint.Batch{}
		for n := range count {
			created.Puts = append(created.Puts, checkpoint.Put{Record: record(n, 1)})
		}
		commit(t, s, created)
		for n := range count {
			commit(t, s, lazily(put(record(n, 2))))
		}
		synctest.Wait()
		wantRevision(t, open(t, copyFile(t, path), nil), 0, 2)
	})
}

// sized returns the record with so much data, which says of which revision it is.
func sized(r checkpoint.Record, size int) checkpoint.Record {
	r.Data = bytes.Repeat([]byte{byte(r.Revision)}, size)
	return r
}

func TestMuchLazyDataIsFlushedEarly(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		s := open(t, path, &boltstore.Options{IdleFlush: time.Hour})
		inFile := func(n int, want uint64) {
			t.Helper()
			synctest.Wait()
			wantRevision(t, open(t, copyFile(t, path), nil), n, want)
		}
		const size = 1 << 20
		commit(t, s, put(record(1, 1), record(2, 1), record(3, 1), record(4, 1)))
		// What a newer lazy write replaced does not count any more.
		for revision := range uint64(20) {
			commit(t, s, lazily(put(sized(record(1, revision+2), size))))
		}
		inFile(1, 1)
		commit(t, s, lazily(put(sized(record(2, 2), 3*size))))
		inFile(2, 1)
		commit(t, s, lazily(put(sized(record(3, 2), 5*size))))
		inFile(1, 21)
		inFile(2, 2)
		inFile(3, 2)
		// Nor does what is in the file.
		commit(t, s, lazily(put(record(4, 2))))
		inFile(4, 1)
		wantRevision(t, s, 4, 2)
	})
}

// R25: nobody waits for a finish mark, however large its record is.
func TestLargeLazyDoesNotWaitForTheDisk(t *testing.T) {
	path := newPath(t)
	s := open(t, path, &boltstore.Options{IdleFlush: time.Hour})
	const count, size = 10, 2 << 20 // more than the overlay is to hold
	first := &checkpoint.Batch{}
	for n := range count {
		first.Puts = append(first.Puts, checkpoint.Put{Record: record(n, 1)})
	}
	commit(t, s, first)
	entered, release := blockCommits(s)
	release = sync.OnceFunc(release)
	t.Cleanup(release) // before the store is closed, however the test ends
	done := make(chan error, 1)
	go func() { done <- s.Commit(context.Background(), put(record(100, 1))) }()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for revision := range uint64(3) {
		for n := range count {
			if err := s.Commit(ctx, lazily(put(sized(record(n, revision+2), size)))); err != nil {
				t.Fatalf("commit of record %d: %v", n, err)
			}
		}
	}
	wantSized := func(s *boltstore.Store) {
		t.Helper()
		q := checkpoint.Query{}
		for seen := 0; ; {
			page, err := s.List(t.Context(), q)
			if err != nil || len(page.Records)*size > 8<<20+size {
				t.Fatalf("list: %d records, error %v, want no more than fit into a page", len(page.Records), err)
			}
			for _, r := range page.Records {
				if want := sized(record(seen, 4), size); r.ID != want.ID || !bytes.Equal(r.Data, want.Data) {
					t.Fatalf("list: record %s at revision %d as number %d", r.ID, r.Revision, seen)
				}
				if seen++; seen == count {
					return
				}
			}
			if page.Next == "" {
				t.Fatalf("list: %d records, want %d", seen, count)
			}
			q.After = page.Next
		}
	}
	wantSized(s)
	release()
	if err := <-done; err != nil {
		t.Fatalf("commit: %v", err)
	}
	wantSized(s)
	shut(t, s)
	s = open(t, path, nil)
	wantSized(s)
	commit(t, s, put(record(0, 5)))
	wantRevision(t, s, 0, 5)
}

// blockCommits has the store's commits wait until the returned function is called; entered receives
// a value when one begins to.
func blockCommits(s *boltstore.Store) (entered <-chan struct{}, release func()) {
	begun, gate := make(chan struct{}, 100), make(chan struct{})
	s.SetFailpoint(func(committed bool) error {
		if !committed {
			begun <- struct{}{}
			<-gate
		}
		return nil
	})
	return begun, func() { close(gate) }
}

func TestLazyDoesNotWaitForTheDisk(t *testing.T) {
	path := newPath(t)
	s := open(t, path, nil)
	commit(t, s, put(record(1, 1), record(2, 1)))
	entered, release := blockCommits(s)
	done := make(chan error)
	go func() { done <- s.Commit(t.Context(), put(record(1, 2))) }()
	<-entered

	// While record 1 waits for the disk, record 2 is written lazily, twice, and everybody sees it.
	commit(t, s, lazily(put(record(2, 2))))
	commit(t, s, lazily(put(record(2, 3))))
	wantRevision(t, s, 2, 3)
	// What is not durable yet and not lazy is not seen.
	wantRevision(t, s, 1, 1)

	release()
	if err := <-done; err != nil {
		t.Fatalf("commit: %v", err)
	}
	wantRevision(t, s, 1, 2)
	wantRevision(t, s, 2, 3)
	commit(t, s, put(record(2, 4)))
	wantRevision(t, open(t, copyFile(t, path), nil), 2, 4)
}

func TestLazyOfWhatIsBeingWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newPath(t), nil)
		commit(t, s, put(record(1, 1)))
		_, release := blockCommits(s)
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- s.Commit(t.Context(), put(record(1, 2))) }()
		synctest.Wait()
		// It can only be compared with what the transaction leaves, so it waits for that.
		go func() { second <- s.Commit(t.Context(), lazily(put(record(1, 2)))) }()
		synctest.Wait()
		select {
		case err := <-second:
			t.Fatalf("lazy commit: got %v before the outcome of the other one was known", err)
		default:
		}
		release()
		if err := <-first; err != nil {
			t.Fatalf("commit: %v", err)
		}
		wantConflict(t, <-second)
		wantRevision(t, s, 1, 2)
	})
}

func TestLazyOverWhatIsBeingFlushed(t *testing.T) {
	path := newPath(t)
	s := open(t, path, &boltstore.Options{IdleFlush: time.Hour})
	commit(t, s, put(record(1, 1), record(2, 1)))
	commit(t, s, lazily(put(record(1, 2))))
	entered, release := blockCommits(s)
	done := make(chan error)
	go func() { done <- s.Commit(t.Context(), put(record(2, 2))) }()
	<-entered
	commit(t, s, lazily(put(record(1, 3)))) // over revision 2, which is being flushed
	release()
	if err := <-done; err != nil {
		t.Fatalf("commit: %v", err)
	}
	wantRevision(t, s, 1, 3)
	wantRevision(t, open(t, copyFile(t, path), nil), 1, 2)
	shut(t, s)
	wantRevision(t, open(t, path, nil), 1, 3)
}

func TestLazyDeleteHidesFromLists(t *testing.T) {
	s := open(t, newPath(t), &boltstore.Options{IdleFlush: time.Hour})
	commit(t, s, put(record(1, 1), record(2, 1), record(3, 1)))
	commit(t, s, &checkpoint.Batch{Lazy: true, Deletes: []checkpoint.Delete{{ID: idOf(2), Revision: 1}}})
	page, err := s.List(t.Context(), checkpoint.Query{Limit: 2})
	if err != nil || len(page.Records) != 2 || page.Next != "" || page.Records[1].ID != idOf(3) {
		t.Fatalf("list: %d records, next %q, error %v", len(page.Records), page.Next, err)
	}
}
