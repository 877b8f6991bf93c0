package boltstore_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/internal/crash"
)

// childCompacts names the variable that makes the test binary a process that compacts the files it
// is asked to.
const childCompacts = "BOLTSTORE_TEST_COMPACT"

func compactUntilKilled() int {
	err := crash.Serve(os.Stdin, os.Stdout, func(request json.RawMessage) any {
		var path string
		if err := json.Unmarshal(request, &path); err != nil {
			return err.Error()
		}
		return fmt.Sprint(boltstore.Compact(path, &boltstore.Options{Logger: textLogger(os.Stderr)}))
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

func skipWhereNoFileIsReplaced(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a file in use cannot be replaced there")
	}
}

func TestCompact(t *testing.T) {
	skipWhereNoFileIsReplaced(t)
	path := filled(t)
	want := snapshot(t, open(t, copyFile(t, path), nil))
	edit(t, path, func(tx *bolt.Tx) error { // one that was counted wrong is counted anew
		key, value := boltstore.EncodeUsage(checkpoint.Hash{9}, checkpoint.Usage{Active: 1})
		return tx.Bucket([]byte("usage")).Put(key, value)
	})
	link := newPath(t)
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	before := read(t, path)
	if err := boltstore.Compact(link, nil); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(before, read(t, path)) {
		t.Error("the file is as it was")
	}
	wantOnly(t, path, true)
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: mode %v, error %v", info.Mode(), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, error %v, want 0600", info.Mode(), err)
	}
	if err := boltstore.Check(t.Context(), path, nil); err != nil {
		t.Errorf("check: %v", err)
	}
	s := open(t, path, nil)
	if got := snapshot(t, s); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// The number of the last audit entry is kept, also where all are removed.
	commit(t, s, &checkpoint.Batch{TrimAudit: 10})
	err := boltstore.Compact(path, &boltstore.Options{Timeout: time.Millisecond})
	if file, ok := errors.AsType[*boltstore.FileError](err); !ok || file.Reason != boltstore.Held {
		t.Errorf("while it is open: got %v, want a file error: %s", err, boltstore.Held)
	}
	shut(t, s)
	if err := boltstore.Compact(path, nil); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, nil)
	commit(t, s, &checkpoint.Batch{Audit: [][]byte{[]byte("fourth")}})
	if page, err := s.Audit(t.Context(), 0, 10); err != nil || len(page) != 1 || page[0].Seq != 4 {
		t.Errorf("audit: %v, error %v, want number 4", page, err)
	}
}

func TestCompactOldFormat(t *testing.T) {
	skipWhereNoFileIsReplaced(t)
	path := copyFile(t, "testdata/v1.db")
	if err := boltstore.Compact(path, nil); err != nil {
		t.Fatal(err)
	}
	wantKept(t, open(t, path, nil), 0)
}

func TestCompactRefuses(t *testing.T) {
	skipWhereNoFileIsReplaced(t)
	path := newPath(t)
	if err := boltstore.Compact(path, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v, want fs.ErrNotExist", err)
	}
	write(t, path, []byte("somebody else's"))
	if err := boltstore.Compact(path, nil); err == nil {
		t.Error("a foreign file: no error")
	}
	if string(read(t, path)) != "somebody else's" {
		t.Error("the file was changed")
	}
	wantOnly(t, path, true)
}

// snapshot is all that a store of [filled] holds, in words.
func snapshot(t testing.TB, s *boltstore.Store) string {
	t.Helper()
	var text strings.Builder
	for q := (checkpoint.Query{}); ; {
		page, err := s.List(t.Context(), q)
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		for _, r := range page.Records {
			rows, err := s.Rows(t.Context(), r.ID, "", 1000)
			found, errFind := r, error(nil)
			if !r.Start.IsZero() {
				found, errFind = s.Find(t.Context(), r.Start)
			}
			if err := errors.Join(err, errFind); err != nil {
				t.Fatalf("read %s: %v", r.ID, err)
			}
			fmt.Fprintf(&text, "%s %d %s %x %x %s found %s", r.ID, r.Revision, r.Status, r.Start[:2], r.Data[:min(len(r.Data), 9)], r.Due,
				found.ID)
			for _, row := range rows {
				fmt.Fprintf(&text, " %s: %d bytes", row.Name, len(row.Data))
			}
			text.WriteString("\n")
		}
		if q.After = page.Next; page.Next == "" {
			break
		}
	}
	page, err := s.Audit(t.Context(), 0, 1000)
	used, errUsage := s.Usage(t.Context(), checkpoint.Hash{})
	due, errDue := s.List(t.Context(), checkpoint.Query{DueBefore: time.UnixMilli(10)})
	if err := errors.Join(err, errUsage, errDue); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&text, "audit %v, usage %+v, %d due\n", page, used, len(due.Records))
	return text.String()
}

// A process that is killed while it compacts leaves the file as it was, or the new one.
func TestKillWhileCompacting(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	skipWhereNoFileIsReplaced(t)
	whole := large(t, nil, 40, 200<<10)
	commit(t, whole, rows(1, "row"))
	source := newPath(t)
	if err := whole.Backup(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	replaced, left := 0, 0
	for round := range 25 {
		path := copyFile(t, source)
		before, _ := os.Stat(path)
		cmd := exec.CommandContext(t.Context(), executable)
		cmd.Env = append(os.Environ(), childCompacts+"=1")
		child, err := crash.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			var answer string
			err := child.Call(path, &answer)
			if err == nil && answer != "<nil>" {
				err = errors.New(answer)
			}
			done <- err
		}()
		select {
		case <-time.After(time.Duration(10+rand.IntN(90)) * time.Millisecond):
		case err := <-done:
			done <- err
		}
		if err := child.Kill(); err != nil {
			t.Fatalf("kill %d: %v", round, err)
		}
		if err := <-done; err != nil && !errors.Is(err, crash.ErrDied) {
			t.Fatalf("kill %d: compact: %v", round, err)
		}
		if after, err := os.Stat(path); err != nil {
			t.Fatal(err)
		} else if !os.SameFile(before, after) {
			replaced++
		}
		names, _ := os.ReadDir(filepath.Dir(path))
		for _, name := range names {
			if !strings.HasPrefix(name.Name(), filepath.Base(path)) {
				t.Errorf("kill %d: left behind: %s", round, name.Name())
			}
		}
		left += len(names) - 1
		if err := boltstore.Check(t.Context(), path, nil); err != nil {
			t.Fatalf("kill %d: check: %v", round, err)
		}
		s := open(t, path, nil)
		wantRows(t, s, 1, "row")
		for n := range 40 {
			if r, err := s.Load(t.Context(), idOf(n)); err != nil || len(r.Data) != 200<<10 {
				t.Fatalf("kill %d: load: %d bytes, error %v", round, len(r.Data), err)
			}
		}
		shut(t, s)
	}
	t.Logf("of 25 files %d were replaced, and beside them %d left behind", replaced, left)
}

func TestCompaction(t *testing.T) {
	path := newPath(t)
	s := open(t, path, nil)
	data := bytes.Repeat([]byte("x"), 40_000)
	for n := range 60 {
		r := record(n, 1)
		r.Data = data
		commit(t, s, put(r))
	}
	gone := &checkpoint.Batch{}
	for n := range 55 {
		gone.Deletes = append(gone.Deletes, checkpoint.Delete{ID: idOf(n), Revision: 1})
	}
	commit(t, s, gone)
	commit(t, s, put(record(59, 2)))
	shut(t, s)
	before, _ := os.Stat(path)

	shut(t, open(t, path, nil)) // too little to be worth it
	if same, _ := os.Stat(path); !os.SameFile(before, same) {
		t.Fatal("the file was compacted, though little is free")
	}
	var log strings.Builder
	opts := &boltstore.Options{Logger: textLogger(&log), Timeout: time.Millisecond}
	opts.CompactAbove(1 << 20)
	shut(t, open(t, path, opts))
	after, _ := os.Stat(path)
	if os.SameFile(before, after) || after.Mode() != before.Mode() || log.Len() == 0 {
		t.Fatalf("not compacted: mode %v, log %q", after.Mode(), log.String())
	}
	s = open(t, path, opts) // there is nothing more to gain
	if again, _ := os.Stat(path); !os.SameFile(after, again) {
		t.Fatal("compacted again")
	}
	wantRevision(t, s, 54, 0)
	wantRevision(t, s, 58, 1)
	wantRevision(t, s, 59, 2)
	commit(t, s, put(record(59, 3)))
	wantRevision(t, open(t, copyFile(t, path), nil), 59, 3)
	if names, _ := os.ReadDir(filepath.Dir(path)); len(names) != 1 {
		t.Errorf("%d files beside each other, want one", len(names))
	}
	if _, err := boltstore.Open(path, opts); err == nil {
		t.Error("the store is not locked")
	}
}
