package boltstore_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
)

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
