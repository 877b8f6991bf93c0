package bench_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
)

// rawGrowth is growth with bbolt alone.
func rawGrowth(b *testing.B, n int) {
	path := filepath.Join(b.TempDir(), "db")
	r := openRaw(b, path)
	ids := r.fill(b, n)
	b.Run("op=raise", func(b *testing.B) {
		measure(b, 1, func(int64) error { return r.wait(newID(b), raised) })
	})
	b.Run("op=list", func(b *testing.B) { measure(b, 1, func(int64) error { return r.page("live", r.scope[:], pageSize) }) })
	b.Run("op=due", func(b *testing.B) { measure(b, 1, func(int64) error { return r.page("due", nil, dueSize) }) })
	b.Run("op=reopen", func(b *testing.B) {
		measureFew(b, func() { r.reopen(b) })
	})
	began := time.Now()
	swept := ids[:n*9/10]
	first := r.scope
	for from := 0; from < len(swept); from += fillBatch {
		binary.BigEndian.PutUint64(r.scope[:], uint64(from))
		err := r.db.Update(func(tx *bolt.Tx) error {
			for _, id := range swept[from:min(from+fillBatch, len(swept))] {
				if err := r.remove(tx, id); err != nil {
					return err
				}
			}
			return r.total(tx)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	r.scope = first
	b.Logf("%d of %d were removed in %v", len(swept), n, time.Since(began))
	b.Run("op=raise-after-sweep", func(b *testing.B) {
		measure(b, 1, func(int64) error { return r.wait(newID(b), raised) })
	})
}

// fill leaves n open interactions; a thousand each have a scope.
func (r *raw) fill(b *testing.B, n int) (ids []checkpoint.ID) {
	first := r.scope
	defer func() { r.scope = first }()
	for from := 0; from < n; from += fillBatch {
		binary.BigEndian.PutUint64(r.scope[:], uint64(from))
		err := r.db.Update(func(tx *bolt.Tx) error {
			for range min(fillBatch, n-from) {
				ids = append(ids, newID(b))
				if err := r.put(tx, &rawWrite{id: ids[len(ids)-1], step: raised}); err != nil {
					return err
				}
			}
			return r.total(tx)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return ids
}

// page reads a page of records by an index whose entries end in their ids.
func (r *raw) page(index string, prefix []byte, limit int) error {
	return r.db.View(func(tx *bolt.Tx) error {
		records := tx.Bucket([]byte("records"))
		cursor := tx.Bucket([]byte(index)).Cursor()
		found := 0
		for key, _ := cursor.Seek(prefix); found < limit && bytes.HasPrefix(key, prefix); key, _ = cursor.Next() {
			if row := bytes.Clone(records.Get(key[len(key)-len(checkpoint.ID{}):])); len(row) > 0 {
				found++
			}
		}
		if found < limit {
			return fmt.Errorf("a page has %d rows", found)
		}
		return nil
	})
}

// remove deletes an open interaction whose scope is that of its place in the fill.
func (r *raw) remove(tx *bolt.Tx, id checkpoint.ID) error {
	due := append(binary.BigEndian.AppendUint64(nil, uint64(raised+1)<<40), id[:]...)
	if err := tx.Bucket([]byte("records")).Delete(id[:]); err != nil {
		return err
	}
	if err := tx.Bucket([]byte("due")).Delete(due); err != nil {
		return err
	}
	return tx.Bucket([]byte("live")).Delete(append(bytes.Clone(r.scope[:]), id[:]...))
}

func (r *raw) reopen(b *testing.B) {
	path := r.db.Path()
	if err := r.db.Close(); err != nil {
		b.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, rawOptions())
	if err != nil {
		b.Fatal(err)
	}
	r.db = db
}
