package boltstore_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
)

// filled returns the path of a closed store with some records.
func filled(t testing.TB) string {
	t.Helper()
	path := newPath(t)
	s := open(t, path, nil)
	if _, _, err := s.Join(t.Context(), checkpoint.Ledger{ID: [16]byte{1}, Meta: []byte("meta")}); err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		r := record(n, 1)
		r.Start, r.Due = checkpoint.Hash{2, byte(n)}, time.UnixMilli(int64(n+1))
		commit(t, s, put(r))
	}
	large := record(100, 1)
	large.Data = bytes.Repeat([]byte("large"), 30_000)
	last := put(large)
	last.Time = time.Unix(1, 0)
	last.Audit = [][]byte{[]byte("first"), []byte("second"), []byte("third")}
	last.Rows = []checkpoint.RowPut{
		{Row: checkpoint.Row{ID: idOf(3), Name: "step", Data: []byte("result")}},
		{Row: checkpoint.Row{ID: idOf(3), Name: "blob", Data: bytes.Repeat([]byte("blob"), 30_000)}},
	}
	commit(t, s, last)
	shut(t, s)
	// bbolt makes a file larger than it needs; the rest is left out, so that damage hits what is
	// used.
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	db.View(func(tx *bolt.Tx) error { size = tx.Size(); return nil })
	if err := errors.Join(db.Close(), os.Truncate(path, size)); err != nil {
		t.Fatal(err)
	}
	return path
}

// edit changes a store's file through bbolt.
func edit(t testing.TB, path string, change func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(change), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// flip changes one bit of a value in the bucket meta.
func flip(tx *bolt.Tx, key string) error {
	meta := tx.Bucket([]byte("meta"))
	value := bytes.Clone(meta.Get([]byte(key)))
	value[len(value)/2] ^= 1
	return meta.Put([]byte(key), value)
}

func TestUnusableFiles(t *testing.T) {
	whole := read(t, filled(t))
	for _, tc := range []struct {
		name string
		want boltstore.Reason
		make func(t *testing.T, path string)
	}{
		{"empty", boltstore.NotDatabase, func(t *testing.T, path string) { write(t, path, nil) }},
		{"short text", boltstore.NotDatabase, func(t *testing.T, path string) { write(t, path, []byte("hello")) }},
		{"long text", boltstore.NotDatabase,
			func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("hello\n"), 20_000)) }},
		{"zeros", boltstore.NotDatabase, func(t *testing.T, path string) { write(t, path, make([]byte, 1<<20)) }},
		{"directory", boltstore.NotDatabase, func(t *testing.T, path string) { os.Mkdir(path, 0o700) }},
		{"pipe", boltstore.NotDatabase, makePipe},
		{"one page", boltstore.Truncated, func(t *testing.T, path string) { write(t, path, whole[:4096]) }},
		{"two pages and a half", boltstore.Truncated,
			func(t *testing.T, path string) { write(t, path, whole[:10_000]) }},
		{"without its end", boltstore.Truncated,
			func(t *testing.T, path string) { write(t, path, whole[:len(whole)-4096]) }},
		{"another application", boltstore.Foreign, func(t *testing.T, path string) {
			edit(t, path, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err })
		}},
		{"empty database", boltstore.Foreign,
			func(t *testing.T, path string) { edit(t, path, func(*bolt.Tx) error { return nil }) }},
		{"a bucket more", boltstore.Foreign, func(t *testing.T, path string) {
			write(t, path, whole)
			edit(t, path, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err })
		}},
		{"a bucket less", boltstore.Damaged, func(t *testing.T, path string) {
			write(t, path, whole)
			edit(t, path, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("due")) })
		}},
		{"newer format", boltstore.Newer, func(t *testing.T, path string) {
			write(t, path, whole)
			edit(t, path, func(tx *bolt.Tx) error {
				return tx.Bucket([]byte("meta")).Put([]byte("version"), binary.BigEndian.AppendUint32(nil, 3))
			})
		}},
		{"no version", boltstore.Damaged, func(t *testing.T, path string) {
			write(t, path, whole)
			edit(t, path, func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("version")) })
		}},
		{"version 1 with buckets of version 2", boltstore.Foreign, func(t *testing.T, path string) {
			write(t, path, whole)
			edit(t, path, func(tx *bolt.Tx) error {
				return tx.Bucket([]byte("meta")).Put([]byte("version"), binary.BigEndian.AppendUint32(nil, 1))
			})
		}},
		{"version 2 without them", boltstore.Damaged, func(t *testing.T, path string) {
			write(t, path, whole)
			edit(t, path, func(tx *bolt.Tx) error {
				return errors.Join(tx.DeleteBucket([]byte("rows")), tx.DeleteBucket([]byte("audit")),
					tx.DeleteBucket([]byte("usage")))
			})
		}},
		{"a damaged number of the last audit entry", boltstore.Damaged, func(t *testing.T, path string) {
			write(t, path, whole)
			edit(t, path, func(tx *bolt.Tx) error { return flip(tx, "audit") })
		}},
		{"a damaged ledger", boltstore.Damaged, func(t *testing.T, path string) {
			write(t, path, whole)
			edit(t, path, func(tx *bolt.Tx) error { return flip(tx, "ledger") })
		}},
		{"a lost ledger", boltstore.Damaged, func(t *testing.T, path string) {
			write(t, path, whole)
			edit(t, path, func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("ledger")) })
		}},
		{"a damaged meta page", boltstore.Damaged, func(t *testing.T, path string) {
			damaged := bytes.Clone(whole)
			damaged[40] ^= 1
			write(t, path, damaged)
		}},
		{"the other meta page damaged", boltstore.Damaged, func(t *testing.T, path string) {
			damaged := bytes.Clone(whole)
			damaged[4096+40] ^= 1
			write(t, path, damaged)
		}},
		{"a damaged clock", boltstore.Damaged, func(t *testing.T, path string) {
			write(t, path, whole)
			edit(t, path, func(tx *bolt.Tx) error { return flip(tx, "floor") })
		}},
		{"zeros behind the meta pages", boltstore.Damaged, func(t *testing.T, path string) {
			write(t, path, append(bytes.Clone(whole[:8192]), make([]byte, len(whole)-8192)...))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := newPath(t)
			tc.make(t, path)
			before := content(path)
			for _, readOnly := range []bool{false, true} {
				s, err := boltstore.Open(path, &boltstore.Options{ReadOnly: readOnly})
				if err == nil {
					s.Close()
				}
				file, ok := errors.AsType[*boltstore.FileError](err)
				if !ok || file.Reason != tc.want || file.Path != path {
					t.Errorf("open: got %v, want a file error: %s", err, tc.want)
				}
			}
			err := boltstore.Check(t.Context(), path, nil)
			if file, ok := errors.AsType[*boltstore.FileError](err); !ok || file.Reason != tc.want {
				t.Errorf("check: got %v, want a file error: %s", err, tc.want)
			}
			if !bytes.Equal(before, content(path)) {
				t.Error("the file was changed")
			}
			if names, _ := os.ReadDir(filepath.Dir(path)); len(names) != 1 {
				t.Errorf("%d files beside each other, want one", len(names))
			}
		})
	}
}

// content is what a regular file holds; of what is none nothing.
func content(path string) []byte {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, _ := os.ReadFile(path)
	return data
}

// A link is followed; one that leads nowhere, or to what is no store, is left as it is.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	if _, err := boltstore.Open(link, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open a link to nothing: got %v, want fs.ErrNotExist", err)
	}
	write(t, target, []byte("somebody else's"))
	_, err := boltstore.Open(link, nil)
	if file, ok := errors.AsType[*boltstore.FileError](err); !ok || file.Reason != boltstore.NotDatabase || file.Path != target {
		t.Errorf("open a link to a foreign file: got %v, want a file error of it", err)
	}
	if string(read(t, target)) != "somebody else's" {
		t.Error("the file was changed")
	}
	os.Remove(target)
	shut(t, open(t, target, nil))
	s := open(t, link, nil)
	commit(t, s, put(record(1, 1)))
	shut(t, s)
	wantRevision(t, open(t, target, nil), 1, 1)
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link: mode %v, error %v", info.Mode(), err)
	}
	os.Remove(link)
	if err := os.Symlink(link, link); err != nil {
		t.Fatal(err)
	}
	if _, err := boltstore.Open(link, nil); err == nil {
		t.Error("open a link to itself: no error")
	}
}

// A damaged meta page is not passed over, unless that is asked for; the next commits mend it.
func TestAllowRollback(t *testing.T) {
	path := filled(t)
	damaged := read(t, path)
	damaged[40] ^= 1
	write(t, path, damaged)
	s, err := boltstore.Open(path, &boltstore.Options{AllowRollback: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err == nil {
		t.Error("Check finds nothing")
	}
	for n := range 2 {
		commit(t, s, put(record(200+n, 1)))
	}
	shut(t, s)
	s = open(t, path, nil)
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHeld(t *testing.T) {
	path := newPath(t)
	s := open(t, path, nil)
	for _, readOnly := range []bool{false, true} {
		_, err := boltstore.Open(path, &boltstore.Options{Timeout: time.Millisecond, ReadOnly: readOnly})
		file, ok := errors.AsType[*boltstore.FileError](err)
		if !ok || file.Reason != boltstore.Held || file.Path != path {
			t.Fatalf("open: got %v, want a file error: %s", err, boltstore.Held)
		}
		t.Logf("%s: %v", runtime.GOOS, err)
	}
	commit(t, s, put(record(1, 1)))
	shut(t, s)
	wantRevision(t, open(t, path, nil), 1, 1)
}
