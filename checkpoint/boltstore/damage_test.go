package boltstore_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
)

func TestCorruptRow(t *testing.T) {
	path := filled(t)
	edit(t, path, func(tx *bolt.Tx) error {
		records, large := tx.Bucket([]byte("records")), tx.Bucket([]byte("large"))
		id, other, big := idOf(7), idOf(9), idOf(100)
		row := bytes.Clone(records.Get(id[:]))
		row[20] ^= 1
		data := bytes.Clone(large.Get(big[:]))
		data[1000] ^= 1
		return errors.Join(records.Put(id[:], row), records.Delete(other[:]), large.Put(big[:], data))
	})
	var log strings.Builder
	s, err := boltstore.Open(path, &boltstore.Options{Logger: textLogger(&log)})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer shut(t, s)
	for _, n := range []int{7, 100} {
		_, err := s.Load(t.Context(), idOf(n))
		wantCorrupt(t, err, n)
	}
	_, err = s.Find(t.Context(), checkpoint.Hash{2, 7})
	wantCorrupt(t, err, 7)
	wantCorrupt(t, s.Commit(t.Context(), put(record(7, 2))), 7)
	wantCorrupt(t, s.Commit(t.Context(), lazily(put(record(7, 2)))), 7)
	wantRevision(t, s, 8, 1)
	commit(t, s, put(record(200, 1)))

	page, err := s.List(t.Context(), checkpoint.Query{})
	if err != nil || len(page.Records) != 49 {
		t.Errorf("list: %d records, error %v, want 49", len(page.Records), err)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 3 {
		t.Errorf("%d lines in the log, want one for each record left out:\n%s", lines, log.String())
	}
	findings := s.Check(t.Context())
	wantCorrupt(t, findings, 7)
	t.Logf("check: %v", findings)
}

// What is damaged of rows, audit trail, usage and start hashes is told, and the rest goes on.
func TestCorruptParts(t *testing.T) {
	path := filled(t)
	id := idOf(3)
	damage := func(tx *bolt.Tx, bucket string, key []byte) error {
		value := bytes.Clone(tx.Bucket([]byte(bucket)).Get(key))
		value[len(value)-1] ^= 1
		return tx.Bucket([]byte(bucket)).Put(key, value)
	}
	edit(t, path, func(tx *bolt.Tx) error {
		return errors.Join(
			damage(tx, "rows", append(id[:], "step"...)),
			damage(tx, "audit", []byte{0, 0, 0, 0, 0, 0, 0, 2}),
			damage(tx, "usage", append([]byte{1}, make([]byte, 31)...)),
			damage(tx, "start", append([]byte{2, 7}, make([]byte, 30)...)),
		)
	})
	s, err := boltstore.Open(path, nil)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer shut(t, s)
	_, err = s.Rows(t.Context(), id, "", 10)
	wantCorrupt(t, err, 3)
	if rows, err := s.Rows(t.Context(), id, "", 1); err != nil || len(rows) != 1 {
		t.Errorf("rows before it: %d, error %v, want one", len(rows), err)
	}
	if page, err := s.Audit(t.Context(), 0, 10); err != nil || len(page) != 1 {
		t.Errorf("audit: %d entries, error %v, want one", len(page), err)
	}
	_, err = s.Audit(t.Context(), 1, 10)
	wantDamaged(t, err)
	if page, err := s.Audit(t.Context(), 2, 10); err != nil || len(page) != 1 || page[0].Seq != 3 {
		t.Errorf("audit behind it: %d entries, error %v, want one", len(page), err)
	}
	_, err = s.Usage(t.Context(), checkpoint.Hash{1})
	wantDamaged(t, err)
	for _, lazy := range []bool{false, true} {
		b := put(record(3, 2))
		b.Lazy = lazy
		wantDamaged(t, s.Commit(t.Context(), b)) // it could not be counted
	}
	wantRevision(t, s, 3, 1)
	elsewhere := record(300, 1)
	elsewhere.Scope = checkpoint.Hash{2}
	commit(t, s, put(elsewhere))

	// A start hash that leads to another record is not taken for a free one, nor for that record's.
	if _, err := s.Find(t.Context(), checkpoint.Hash{2, 7}); err == nil || errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("find: got %v, want a damage", err)
	}
	elsewhere.ID, elsewhere.Start = idOf(301), checkpoint.Hash{2, 7}
	err = s.Commit(t.Context(), put(elsewhere))
	if _, ok := errors.AsType[*boltstore.CorruptError](err); !ok {
		t.Errorf("commit: got %v, want a damage", err)
	}
	t.Logf("check: %v", s.Check(t.Context()))
}

func wantDamaged(t *testing.T, err error) {
	t.Helper()
	if file, ok := errors.AsType[*boltstore.FileError](err); !ok || file.Reason != boltstore.Damaged {
		t.Errorf("got %v, want a file error: %s", err, boltstore.Damaged)
	}
}

// An index entry has no checksum; it is compared with its record.
func TestListLeavesOutDamagedIndexEntries(t *testing.T) {
	path := filled(t)
	id := idOf(3)
	edit(t, path, func(tx *bolt.Tx) error {
		key := append([]byte{0, 0, 0, 0, 0, 0, 0, 4}, id[:]...)
		other := append([]byte{0, 0, 0, 0, 0, 0, 0, 2}, id[:]...)
		place := append(append([]byte{1}, make([]byte, 31)...), id[:]...)
		return errors.Join(tx.Bucket([]byte("due")).Delete(key), tx.Bucket([]byte("due")).Put(other, nil),
			tx.Bucket([]byte("live")).Delete(place), tx.Bucket([]byte("ended")).Put(place, nil))
	})
	var log strings.Builder
	s, err := boltstore.Open(path, &boltstore.Options{Logger: textLogger(&log)})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer shut(t, s)
	for i, q := range []checkpoint.Query{{DueBefore: time.UnixMilli(1000)}, {DueBefore: time.UnixMilli(2)}, {}} {
		page, err := s.List(t.Context(), q)
		if want := []int{49, 2, 50}[i]; err != nil || len(page.Records) != want {
			t.Errorf("list %d: %d records, error %v, want %d", i, len(page.Records), err, want)
		}
		if lines := strings.Count(log.String(), "\n"); lines != i+1 {
			t.Errorf("list %d: %d lines in the log, want one for each list:\n%s", i, lines, log.String())
		}
	}
}

func wantCorrupt(t *testing.T, err error, n int) {
	t.Helper()
	if corrupt, ok := errors.AsType[*boltstore.CorruptError](err); !ok || corrupt.ID != idOf(n) {
		t.Errorf("got %v, want record %d to be corrupt", err, n)
	}
}

func TestCheckFindsContradictions(t *testing.T) {
	id := idOf(3)
	place := append(append([]byte{1}, make([]byte, 31)...), id[:]...)
	for name, change := range map[string]func(tx *bolt.Tx) error{
		"missing in live": func(tx *bolt.Tx) error { return tx.Bucket([]byte("live")).Delete(place) },
		"also in ended":   func(tx *bolt.Tx) error { return tx.Bucket([]byte("ended")).Put(place, []byte{}) },
		"missing in due": func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("due")).Delete(append([]byte{0, 0, 0, 0, 0, 0, 0, 4}, id[:]...))
		},
		"another due": func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("due")).Put(append([]byte{0, 0, 0, 0, 0, 0, 0, 5}, id[:]...), nil)
		},
		"missing in start": func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("start")).Delete(append([]byte{2, 3}, make([]byte, 30)...))
		},
		"another start":  func(tx *bolt.Tx) error { return tx.Bucket([]byte("start")).Put(make([]byte, 32), id[:]) },
		"missing row":    func(tx *bolt.Tx) error { return tx.Bucket([]byte("records")).Delete(id[:]) },
		"data of nobody": func(tx *bolt.Tx) error { return tx.Bucket([]byte("large")).Put(id[:], []byte("data")) },
		"large row's data missing": func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("large")).Delete(append(bytes.Clone(id[:]), "blob"...))
		},
		"data of no row": func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("large")).Put(append(bytes.Clone(id[:]), "step"...), []byte("data"))
		},
		"row under another name": func(tx *bolt.Tx) error {
			rows := tx.Bucket([]byte("rows"))
			return rows.Put(append(bytes.Clone(id[:]), "steq"...), rows.Get(append(bytes.Clone(id[:]), "step"...)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filled(t)
			edit(t, path, change)
			s, err := boltstore.Open(path, nil)
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			defer shut(t, s)
			wantCorrupt(t, s.Check(t.Context()), 3)
		})
	}
}

func TestCheckFindsWhatIsCountedWrong(t *testing.T) {
	scope := append([]byte{1}, make([]byte, 31)...)
	for name, change := range map[string]func(tx *bolt.Tx) error{
		"usage missing": func(tx *bolt.Tx) error { return tx.Bucket([]byte("usage")).Delete(scope) },
		"usage of nobody": func(tx *bolt.Tx) error {
			key, value := boltstore.EncodeUsage(checkpoint.Hash{9}, checkpoint.Usage{Active: 1})
			return tx.Bucket([]byte("usage")).Put(key, value)
		},
		"usage wrong": func(tx *bolt.Tx) error {
			key, value := boltstore.EncodeUsage(checkpoint.Hash{}, checkpoint.Usage{Active: 51, Bytes: 1})
			return tx.Bucket([]byte("usage")).Put(key, value)
		},
		"usage damaged":   func(tx *bolt.Tx) error { return tx.Bucket([]byte("usage")).Put(scope, []byte("damaged")) },
		"audit gap":       func(tx *bolt.Tx) error { return tx.Bucket([]byte("audit")).Delete([]byte{7: 2}) },
		"audit end":       func(tx *bolt.Tx) error { return tx.Bucket([]byte("audit")).Delete([]byte{7: 3}) },
		"audit entry":     func(tx *bolt.Tx) error { return tx.Bucket([]byte("audit")).Put([]byte{7: 2}, []byte("damaged")) },
		"audit too much":  func(tx *bolt.Tx) error { return tx.Bucket([]byte("audit")).Put(boltstore.EncodeAudit(4, []byte("4"))) },
		"audit no number": func(tx *bolt.Tx) error { return tx.Bucket([]byte("audit")).Put([]byte{1}, []byte("damaged")) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filled(t)
			edit(t, path, change)
			s, err := boltstore.Open(path, nil)
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			defer shut(t, s)
			wantDamaged(t, s.Check(t.Context()))
		})
	}
}

// damaged returns the data with some bytes changed at random. Half of the damage is near the
// beginning of a page, where its header is.
func damaged(data []byte, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	data = bytes.Clone(data)
	for range 1 + random.IntN(20) {
		at := random.IntN(len(data))
		if random.IntN(2) == 0 {
			at = at&^4095 | random.IntN(64)
		}
		data[at] = byte(random.Uint32())
	}
	return data
}

// TestDamage flips bytes at random. Whatever the store makes of it, it must not panic, hang or
// fault.
func TestDamage(t *testing.T) {
	whole := read(t, filled(t))
	path := newPath(t)
	opened := 0
	for seed := range uint64(60) {
		write(t, path, damaged(whole, seed))
		s, err := boltstore.Open(path, &boltstore.Options{Logger: textLogger(new(strings.Builder))})
		if err != nil {
			if _, ok := errors.AsType[*boltstore.FileError](err); !ok {
				t.Errorf("seed %d: open: got %v, want a file error", seed, err)
			}
			continue
		}
		opened++
		for n := range 50 {
			s.Load(t.Context(), idOf(n))
			s.Find(t.Context(), checkpoint.Hash{2, byte(n)})
			s.Rows(t.Context(), idOf(n), "", 1000)
		}
		s.Audit(t.Context(), 0, 1000)
		s.Usage(t.Context(), checkpoint.Hash{1})
		s.List(t.Context(), checkpoint.Query{})
		s.Check(t.Context())
		s.Backup(t.Context(), newPath(t))
		for n := range 5 {
			s.Commit(t.Context(), put(record(n, 2)))
		}
		s.Close()
	}
	t.Logf("%d of 60 damaged files could be opened", opened)
}

// Whatever is damaged, Check reports it, or it is harmless: then the store holds what it held.
// Neither it nor Open changes a file that is not whole.
func TestCheckOfDamagedFiles(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() {
		seeds = 40
	}
	path := filled(t)
	whole := read(t, path)
	s := open(t, copyFile(t, path), nil)
	want := snapshot(t, s)
	shut(t, s)
	reported, refused := 0, 0
	for seed := range seeds {
		data := damaged(whole, seed)
		write(t, path, data)
		err := boltstore.Check(t.Context(), path, nil)
		if !bytes.Equal(data, read(t, path)) {
			t.Fatalf("seed %d: Check changed the file", seed)
		}
		if err != nil {
			reported++
			_, file := errors.AsType[*boltstore.FileError](err)
			_, corrupt := errors.AsType[*boltstore.CorruptError](err)
			if !file && !corrupt {
				t.Errorf("seed %d: got %v, want a finding", seed, err)
			}
		}
		s, errOpen := boltstore.Open(path, &boltstore.Options{Logger: textLogger(new(strings.Builder))})
		if errOpen != nil {
			refused++
			if err == nil {
				t.Errorf("seed %d: Check found nothing, and Open: %v", seed, errOpen)
			}
			if !bytes.Equal(data, read(t, path)) {
				t.Errorf("seed %d: Open refused the file and changed it", seed)
			}
			continue
		}
		if err == nil {
			if got := snapshot(t, s); got != want {
				t.Errorf("seed %d: Check found nothing, and the store holds\n%s\nwant\n%s", seed, got, want)
			}
		}
		s.Close()
	}
	t.Logf("of %d damaged files %d were reported and %d refused", seeds, reported, refused)
}

func TestFileGetsShorter(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be made shorter there")
	}
	path := filled(t)
	s, err := boltstore.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	_, err = s.Load(t.Context(), idOf(1))
	if file, ok := errors.AsType[*boltstore.FileError](err); !ok || file.Reason != boltstore.Damaged {
		t.Errorf("load: got %v, want a file error", err)
	}
	if err := s.Commit(t.Context(), put(record(1, 2))); err == nil {
		t.Error("commit: no error")
	}
	s.Close()
}

// R14, R39: a damaged row goes with its record; what was used is counted anew by Compact.
func TestDamagedRowIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := open(t, path, nil)
	r := checkpoint.Record{ID: checkpoint.ID{1}, Revision: 1, Status: checkpoint.Finished}
	batch := &checkpoint.Batch{
		Puts: []checkpoint.Put{{Record: r}}, Rows: []checkpoint.RowPut{{Row: checkpoint.Row{ID: r.ID, Name: "a", Data: []byte("data")}}},
	}
	if err := s.Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	edit(t, path, func(tx *bolt.Tx) error {
		rows := tx.Bucket([]byte("rows"))
		key, value := rows.Cursor().First()
		value = bytes.Clone(value)
		value[10] ^= 1
		return rows.Put(bytes.Clone(key), value)
	})
	s = open(t, path, nil)
	if _, err := s.Rows(t.Context(), r.ID, "", 1); err == nil {
		t.Fatal("the row is not damaged")
	}
	if err := s.Commit(t.Context(), &checkpoint.Batch{Deletes: []checkpoint.Delete{{ID: r.ID, Revision: 1}}}); err != nil {
		t.Fatal(err)
	}
	if rows, err := s.Rows(t.Context(), r.ID, "", 1); err != nil || len(rows) > 0 {
		t.Errorf("left: %v, %v", rows, err)
	}
	shut(t, s)
	if err := boltstore.Compact(path, nil); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, nil)
	defer shut(t, s)
	if usage, err := s.Usage(t.Context(), checkpoint.Hash{}); err != nil || usage != (checkpoint.Usage{}) {
		t.Errorf("usage %+v, %v", usage, err)
	}
}
