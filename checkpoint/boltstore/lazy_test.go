package boltstore_test

import (
	"bytes"
	"context"
	"slices"
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

func rows(n int, names ...string) *checkpoint.Batch {
	b := &checkpoint.Batch{Lazy: true}
	for _, name := range names {
		b.Rows = append(b.Rows, checkpoint.RowPut{Row: checkpoint.Row{ID: idOf(n), Name: name, Data: []byte(name)}})
	}
	return b
}

// wantRows fails the test where the rows of the record have other names.
func wantRows(t *testing.T, s *boltstore.Store, n int, want ...string) {
	t.Helper()
	got, err := s.Rows(t.Context(), idOf(n), "", 1000)
	if err != nil {
		t.Fatalf("rows: %v", err)
	}
	var names []string
	for _, row := range got {
		names = append(names, row.Name)
	}
	if !slices.Equal(want, names) {
		t.Fatalf("rows: got %q, want %q", names, want)
	}
}

func wantAudit(t *testing.T, s *boltstore.Store, want ...string) {
	t.Helper()
	page, err := s.Audit(t.Context(), 0, 1000)
	if err != nil {
		t.Fatalf("audit: %v", err)
	}
	var got []string
	for i, entry := range page {
		if got = append(got, string(entry.Data)); entry.Seq != uint64(i+1) {
			t.Fatalf("audit: entry %d has number %d", i+1, entry.Seq)
		}
	}
	if !slices.Equal(want, got) {
		t.Fatalf("audit: got %q, want %q", got, want)
	}
}

// R25, R38: a finish mark is not waited for, also where it has rows and audit entries.
func TestLazyRowsAndAuditDoNotWaitForTheDisk(t *testing.T) {
	path := newPath(t)
	s := open(t, path, &boltstore.Options{IdleFlush: time.Hour})
	commit(t, s, put(record(1, 1), record(2, 1)))
	entered, release := blockCommits(s)
	done := make(chan error)
	first := put(record(1, 2), record(3, 1))
	first.Audit = [][]byte{[]byte("first")}
	go func() { done <- s.Commit(t.Context(), first) }()
	<-entered

	second := rows(2, "a", "b")
	second.Audit = [][]byte{[]byte("second")}
	commit(t, s, second)
	commit(t, s, rows(2, "b", "c"))
	removed := rows(2, "c")
	removed.Rows[0].Row.Data, removed.Audit = nil, [][]byte{[]byte("third")}
	commit(t, s, removed)
	wantRows(t, s, 2, "a", "b")
	// What is on its way to the disk is counted already.
	three := checkpoint.Usage{Active: 3, Bytes: 3*4 + 2*1 + 5*checkpoint.Charge}
	wantUsage(t, s, three)

	release()
	if err := <-done; err != nil {
		t.Fatalf("commit: %v", err)
	}
	wantRows(t, s, 2, "a", "b")
	wantAudit(t, s, "first", "second", "third")
	wantUsage(t, s, three)
	killed := open(t, copyFile(t, path), nil) // reading the trail has written it
	wantAudit(t, killed, "first", "second", "third")
	wantRows(t, killed, 2, "a", "b")
	wantUsage(t, killed, three)
}

func TestLazyRowsOverWhatIsBeingFlushed(t *testing.T) {
	path := newPath(t)
	s := open(t, path, &boltstore.Options{IdleFlush: time.Hour})
	commit(t, s, put(record(1, 1), record(2, 1), record(3, 1)))
	commit(t, s, rows(1, "a", "b"))
	commit(t, s, rows(3, "a"))
	entered, release := blockCommits(s)
	done := make(chan error)
	go func() { done <- s.Commit(t.Context(), put(record(2, 2))) }()
	<-entered
	over := rows(1, "a", "c")
	over.Rows[0].Row.Data = []byte("newer a")
	commit(t, s, over)
	commit(t, s, &checkpoint.Batch{Lazy: true, Deletes: []checkpoint.Delete{{ID: idOf(3), Revision: 1}}})
	used := checkpoint.Usage{Active: 2, Bytes: 2*4 + 7 + 2 + 5*checkpoint.Charge}
	wantUsage(t, s, used)
	release()
	if err := <-done; err != nil {
		t.Fatalf("commit: %v", err)
	}
	wantRows(t, s, 1, "a", "b", "c")
	wantRows(t, s, 3)
	wantUsage(t, s, used)
	wantRows(t, open(t, copyFile(t, path), nil), 1, "a", "b")
	wantRows(t, open(t, copyFile(t, path), nil), 3, "a")
	shut(t, s)
	s = open(t, path, nil)
	wantRows(t, s, 1, "a", "b", "c")
	wantRows(t, s, 3)
	wantUsage(t, s, used)
}

// A row of a record that the transaction under way writes can only be compared with what that
// leaves.
func TestLazyRowOfWhatIsBeingWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newPath(t), nil)
		commit(t, s, put(record(1, 1)))
		_, release := blockCommits(s)
		first, second := make(chan error, 1), make(chan error, 1)
		claimed := record(1, 2)
		claimed.Claim.Epoch = 1
		go func() { first <- s.Commit(t.Context(), put(claimed)) }()
		synctest.Wait()
		go func() { second <- s.Commit(t.Context(), rows(1, "a")) }()
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
		wantRows(t, s, 1)
	})
}

// The usage of more scopes than are kept in memory is right.
func TestUsageOfManyScopes(t *testing.T) {
	s := open(t, newPath(t), nil)
	const count = 5000
	for part := range 2 {
		b := &checkpoint.Batch{}
		for n := range count {
			r := record(n, uint64(part+1))
			r.Scope = checkpoint.Hash{1, byte(n), byte(n >> 8)}
			b.Puts = append(b.Puts, checkpoint.Put{Record: r})
		}
		commit(t, s, b)
		for _, n := range []int{0, 17, count - 1} {
			got, err := s.Usage(t.Context(), checkpoint.Hash{1, byte(n), byte(n >> 8)})
			if want := (checkpoint.Usage{Active: 1, Bytes: 4 + checkpoint.Charge}); err != nil || got != want {
				t.Errorf("usage: %+v, error %v, want %+v", got, err, want)
			}
		}
	}
	check(t, s)
}
