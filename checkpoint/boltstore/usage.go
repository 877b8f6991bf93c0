package boltstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
)

// What a scope uses stands under its hash, and what is used in all under the zero hash, big endian:
//
//	active records 8 · bytes 8 · CRC-32C of the key and all before 4
//
// A scope that uses nothing has no entry.
const usageSize = 8 + 8 + 4

func encodeUsage(scope checkpoint.Hash, u checkpoint.Usage) []byte {
	value := make([]byte, 0, usageSize)
	value = binary.BigEndian.AppendUint64(value, uint64(u.Active))
	value = binary.BigEndian.AppendUint64(value, uint64(u.Bytes))
	return binary.BigEndian.AppendUint32(value, sumUnder(scope[:], value))
}

func decodeUsage(key, value []byte) (scope checkpoint.Hash, u checkpoint.Usage, err error) {
	if len(key) != len(scope) || len(value) != usageSize ||
		binary.BigEndian.Uint32(value[usageSize-4:]) != sumUnder(key, value[:usageSize-4]) {
		return scope, u, fmt.Errorf("read usage of scope %x: its checksum is wrong", key)
	}
	copy(scope[:], key)
	u.Active = int(binary.BigEndian.Uint64(value))
	u.Bytes = int64(binary.BigEndian.Uint64(value[8:]))
	return scope, u, nil
}

// sumUnder is the checksum of what begins a value, and of the key that it stands under.
func sumUnder(key, start []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, start)
}

// A tally is what records and rows amount to, by scope; the zero scope's is in all. Or it is by how
// much that changes.
type tally map[checkpoint.Hash]checkpoint.Usage

// record adds a record, or takes it away where sign is -1; nil is none.
func (y tally) record(h *head, sign int) {
	if h == nil {
		return
	}
	active := 0
	if h.record.Status.Active() {
		active = sign
	}
	y.add(h.record.Scope, active, sign*(int(h.dataSize)+checkpoint.Charge))
}

// row adds a row under a record of that scope, or takes it away where sign is -1.
func (y tally) row(scope checkpoint.Hash, data, sign int) {
	y.add(scope, 0, sign*(data+checkpoint.Charge))
}

func (y tally) add(scope checkpoint.Hash, active, bytes int) {
	all := y[checkpoint.Hash{}]
	y[checkpoint.Hash{}] = checkpoint.Usage{Active: all.Active + active, Bytes: all.Bytes + int64(bytes)}
	if !scope.IsZero() {
		u := y[scope]
		y[scope] = checkpoint.Usage{Active: u.Active + active, Bytes: u.Bytes + int64(bytes)}
	}
}

// over makes the changes of the tally into what is used after them, by what is used before.
func (y tally) over(used func(scope checkpoint.Hash) (checkpoint.Usage, error)) error {
	for scope, change := range y {
		u, err := used(scope)
		if err != nil {
			return err
		}
		y[scope] = checkpoint.Usage{Active: u.Active + change.Active, Bytes: u.Bytes + change.Bytes}
	}
	return nil
}

// usageOf returns what is stored of a scope.
func (t *tables) usageOf(scope checkpoint.Hash) (checkpoint.Usage, error) {
	if t.usage() == nil {
		return t.count()[scope], nil
	}
	value := t.usage().Get(scope[:])
	if value == nil {
		return checkpoint.Usage{}, nil
	}
	_, u, err := decodeUsage(scope[:], value)
	return u, err
}

func (t *tables) putUsage(scope checkpoint.Hash, u checkpoint.Usage) error {
	if u == (checkpoint.Usage{}) {
		return t.usage().Delete(scope[:])
	}
	return t.usage().Put(scope[:], encodeUsage(scope, u))
}

// count goes through all records and rows and returns what they amount to, without those that
// cannot be read.
func (t *tables) count() tally {
	y := make(tally)
	cursor := t.records().Cursor()
	for key, row := cursor.First(); key != nil; key, row = cursor.Next() {
		id, _ := splitRowKey(key)
		h, err := decodeHead(id, row)
		if err != nil {
			continue
		}
		y.record(h, 1)
		t.rowsUnder(id, "", func(key, value []byte) (bool, error) {
			if u, err := decodeUnder(key, value); err == nil {
				y.row(h.record.Scope, int(u.dataSize), 1)
			}
			return true, nil
		})
	}
	return y
}

// recount makes what is stored what records and rows amount to.
func recount(tx *bolt.Tx) error {
	t := &tables{tx: tx}
	if t.usage() == nil {
		return nil // a file of version 1 is counted when it is upgraded
	}
	name := []byte(tableNames[tableUsage])
	if err := tx.DeleteBucket(name); err != nil {
		return err
	}
	if _, err := tx.CreateBucket(name); err != nil {
		return err
	}
	return (&tables{tx: tx}).putCount()
}

// putCount writes what records and rows amount to into the empty bucket of usages.
func (t *tables) putCount() error {
	for scope, u := range t.count() {
		if err := t.putUsage(scope, u); err != nil {
			return err
		}
	}
	return nil
}

// Usage implements [checkpoint.Store]. It sees lazy commits too, and may already see a commit that
// has not returned. A file of format version 1 that was opened to be read is gone through whole.
func (s *Store) Usage(ctx context.Context, scope checkpoint.Hash) (checkpoint.Usage, error) {
	u, err := s.usageNow(ctx, scope)
	if err != nil {
		return checkpoint.Usage{}, fmt.Errorf("read usage: %w", err)
	}
	return u, nil
}

func (s *Store) usageNow(ctx context.Context, scope checkpoint.Hash) (u checkpoint.Usage, err error) {
	if err := ctx.Err(); err != nil {
		return u, err
	}
	s.mu.Lock()
	err = s.serving()
	u, known := s.used[scope]
	s.mu.Unlock()
	if known || err != nil {
		return u, err
	}
	err = s.view(func(t *tables) (err error) {
		if u, err = t.usageOf(scope); err != nil {
			err = &FileError{Path: s.path, Reason: Damaged, Err: err}
		}
		return err
	})
	return u, err
}

// usedBefore returns what a scope uses, with all writes that were admitted. It is called with admit
// held.
func (s *Store) usedBefore(t *tables, scope checkpoint.Hash) (checkpoint.Usage, error) {
	s.mu.Lock()
	u, known := s.used[scope]
	s.mu.Unlock()
	if known {
		return u, nil
	}
	u, err := t.usageOf(scope)
	if err != nil {
		err = &FileError{Path: s.path, Reason: Damaged, Err: err}
	}
	return u, err
}
