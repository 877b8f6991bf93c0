package boltstore_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
)

// large returns a store with so many records of so many bytes.
func large(t testing.TB, opts *boltstore.Options, count, size int) *boltstore.Store {
	t.Helper()
	s := open(t, newPath(t), opts)
	for n := range count {
		commit(t, s, put(sized(record(n, 1), size)))
	}
	return s
}

// wantOnly fails the test where there is anything else in the directory of path, or not it.
func wantOnly(t *testing.T, path string, there bool) {
	t.Helper()
	names, err := os.ReadDir(filepath.Dir(path))
	if err != nil || there != (len(names) == 1 && names[0].Name() == filepath.Base(path)) || !there && len(names) > 0 {
		t.Errorf("in the directory: %v, error %v", names, err)
	}
}

func TestBackup(t *testing.T) {
	s := open(t, newPath(t), &boltstore.Options{IdleFlush: time.Hour})
	if _, _, err := s.Join(t.Context(), checkpoint.Ledger{ID: [16]byte{1}}); err != nil {
		t.Fatal(err)
	}
	b := put(record(1, 1), sized(record(2, 1), 1<<20))
	b.Audit = [][]byte{[]byte("first")}
	commit(t, s, b)
	commit(t, s, lazily(put(record(1, 2))))
	commit(t, s, rows(1, "row"))

	path := newPath(t)
	if err := s.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	wantOnly(t, path, true)
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != fs.FileMode(0o600) {
		t.Errorf("mode %v, error %v, want 0600", info.Mode(), err)
	}
	if err := boltstore.Check(t.Context(), path, nil); err != nil {
		t.Errorf("check: %v", err)
	}
	before := read(t, path)
	for _, there := range []string{path, filepath.Dir(path)} {
		if err := s.Backup(t.Context(), there); !errors.Is(err, fs.ErrExist) {
			t.Errorf("again: got %v, want fs.ErrExist", err)
		}
	}
	if err := s.Backup(t.Context(), filepath.Join(path+".none", "backup")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: got %v, want fs.ErrNotExist", err)
	}
	if !bytes.Equal(before, read(t, path)) {
		t.Error("the backup was written over")
	}

	copied := open(t, path, nil)
	wantRevision(t, copied, 1, 2)
	wantRevision(t, copied, 2, 1)
	wantRows(t, copied, 1, "row")
	wantAudit(t, copied, "first")
	ledger, _, err := copied.Join(t.Context(), checkpoint.Ledger{})
	if err != nil || ledger.ID != [16]byte{1} {
		t.Errorf("ledger %x, error %v", ledger.ID, err)
	}
	commit(t, copied, put(record(1, 3)))
	wantRevision(t, s, 1, 2)
	shut(t, copied)

	// A store that is only read can be backed up too.
	readOnly := open(t, path, &boltstore.Options{ReadOnly: true})
	second := newPath(t)
	if err := readOnly.Backup(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	wantRevision(t, open(t, second, nil), 1, 3)
}

// A backup is of one moment: both records of each commit are in it, or none.
func TestBackupIsConsistent(t *testing.T) {
	s := large(t, nil, 40, 200<<10)
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for writer := range 4 {
		writers.Go(func() {
			for revision := uint64(1); ; revision++ {
				one, two := record(1000+writer, revision), record(2000+writer, revision)
				b := put(one, two)
				b.Lazy, b.Audit = revision%5 == 0, [][]byte{[]byte("entry")}
				if err := s.Commit(context.Background(), b); err != nil {
					t.Errorf("commit: %v", err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 5 {
		path := newPath(t)
		if err := s.Backup(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		copied := open(t, path, nil)
		for writer := range 4 {
			one, err1 := copied.Load(t.Context(), idOf(1000+writer))
			two, err2 := copied.Load(t.Context(), idOf(2000+writer))
			if errors.Is(err1, checkpoint.ErrNotFound) && errors.Is(err2, checkpoint.ErrNotFound) {
				continue
			}
			if err := errors.Join(err1, err2); err != nil || one.Revision != two.Revision {
				t.Errorf("revisions %d and %d, error %v, want them alike", one.Revision, two.Revision, err)
			}
		}
		auditOf(t, copied)
		shut(t, copied)
	}
	close(stop)
	writers.Wait()
}

// While a backup stands still, commits, reads and lists go on.
func TestBackupHoldsUpNobody(t *testing.T) {
	s := large(t, nil, 20, 200<<10)
	begun, release := make(chan struct{}), make(chan struct{})
	s.SetCopyStep(sync.OnceFunc(func() { close(begun); <-release }))
	path := newPath(t)
	done := make(chan error, 1)
	go func() { done <- s.Backup(context.Background(), path) }()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for revision := range uint64(50) {
		for n := range 4 {
			if err := s.Commit(ctx, put(record(n, revision+2))); err != nil {
				t.Fatalf("commit: %v", err)
			}
		}
		page, err := s.List(ctx, checkpoint.Query{Limit: 5})
		if err != nil || len(page.Records) != 5 {
			t.Fatalf("list: %d records, error %v", len(page.Records), err)
		}
	}
	wantRevision(t, s, 1, 51)
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	copied := open(t, path, nil)
	for n := range 20 {
		wantRevision(t, copied, n, 1)
	}
}

// outgrow has a commit outgrow the memory map in each of the first tries of a backup: it begins at
// the first step, and the steps wait a while for it to be done or in the backup's way. The function
// it returns waits for the commits.
func outgrow(t *testing.T, s *boltstore.Store, tries int) (wait func()) {
	count := 0
	var pending chan error
	s.SetCopyStep(func() {
		if pending == nil && count < tries {
			pending = make(chan error, 1)
			b := &checkpoint.Batch{} // twice as much as the one before, as the map is then
			for n := range 1 << count {
				b.Puts = append(b.Puts, checkpoint.Put{Record: sized(record(1000+100*count+n, 1), 15<<20)})
			}
			count++
			go func(answer chan<- error) { answer <- s.Commit(context.Background(), b) }(pending)
		}
		if pending == nil {
			return
		}
		select {
		case err := <-pending: // of the try before, or it did not have to wait
			if pending = nil; err != nil {
				t.Errorf("commit: %v", err)
			}
		case <-time.After(300 * time.Millisecond):
		}
	})
	return func() {
		if pending != nil {
			if err := <-pending; err != nil {
				t.Errorf("commit: %v", err)
			}
		}
		if count != tries {
			t.Errorf("%d commits, want %d", count, tries)
		}
	}
}

// growing returns a store whose file outgrows its memory map with every doubling.
func growing(t *testing.T) *boltstore.Store {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the file is as large as the map there")
	}
	opts := &boltstore.Options{}
	opts.InitialMap(1)
	return large(t, opts, 20, 200<<10)
}

// A commit that has to map the file anew does not wait until a backup is done: the backup gives way
// and begins again.
func TestBackupGivesWay(t *testing.T) {
	s := growing(t)
	wait := outgrow(t, s, 1)
	path := newPath(t)
	if err := s.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	wait()
	// The second try has what the first one gave way to.
	wantRevision(t, open(t, path, nil), 1000, 1)
}

func TestBackupAborted(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 100 MiB")
	}
	s := growing(t)
	wait := outgrow(t, s, 3)
	path := newPath(t)
	if err := s.Backup(t.Context(), path); !errors.Is(err, boltstore.ErrBackupAborted) {
		t.Fatalf("got %v, want ErrBackupAborted", err)
	}
	wait()
	wantOnly(t, path, false)
	s.SetCopyStep(nil)
	if err := s.Backup(t.Context(), path); err != nil {
		t.Fatalf("a later one: %v", err)
	}
}

func TestBackupEnds(t *testing.T) {
	for name, end := range map[string]func(s *boltstore.Store, cancel func()) error{
		"by its context": func(_ *boltstore.Store, cancel func()) error { cancel(); return context.Canceled },
		"with its store": func(s *boltstore.Store, _ func()) error {
			go s.Close() // waits for it
			for {
				if _, err := s.Usage(context.Background(), checkpoint.Hash{}); err != nil {
					return checkpoint.ErrUnavailable
				}
			}
		},
		"before it began": nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := large(t, nil, 20, 200<<10)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			want := context.Canceled
			if end == nil {
				cancel()
			} else {
				s.SetCopyStep(sync.OnceFunc(func() { want = end(s, cancel) }))
			}
			path := newPath(t)
			if err := s.Backup(ctx, path); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			wantOnly(t, path, false)
		})
	}
}

// While backups are made and all records listed, the longest commit is not much longer than it is
// without. What it is depends on the disk; the bound only tells a disk from a lock.
func TestLongestCommitBesideABackup(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 200 MiB")
	}
	s := large(t, nil, 300, 200<<10)
	next := 1000
	longest := func() (longest, total time.Duration) {
		for range 150 {
			begun := time.Now()
			commit(t, s, put(record(next, 1)))
			took := time.Since(begun)
			longest, total = max(longest, took), total+took
			next++
		}
		return longest, total
	}
	alone, aloneTotal := longest()
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	backups, pages := 0, 0
	others.Go(func() {
		for ctx.Err() == nil {
			if err := s.Backup(ctx, newPath(t)); err != nil && ctx.Err() == nil {
				t.Errorf("backup: %v", err)
				return
			}
			backups++
		}
	})
	others.Go(func() {
		for q := (checkpoint.Query{Limit: 20}); ctx.Err() == nil; pages++ {
			page, err := s.List(ctx, q)
			if err != nil && ctx.Err() == nil {
				t.Errorf("list: %v", err)
				return
			}
			q.After = page.Next
		}
	})
	beside, besideTotal := longest()
	cancel()
	others.Wait()
	t.Logf("longest of 150 commits: %v, all %v; beside %d backups and %d pages: %v, all %v", alone, aloneTotal, backups, pages,
		beside, besideTotal)
	if beside > 20*alone+time.Second {
		t.Errorf("the longest commit took %v beside backups, %v without", beside, alone)
	}
}
