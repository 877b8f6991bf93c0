package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
)

// A row under a record stands under the record's id and its name, big endian:
//
//	version 1 · flags 1 · data length 4 · CRC-32C of the data 4
//	CRC-32C of the key and all before 4
//
// and then the data, or nothing where the data is large: that is in the bucket of large data, under
// the same key.
const (
	underVersion = 1
	underHead    = 1 + 1 + 4 + 4 + 4
	// maxRowBytes ends a page of rows.
	maxRowBytes = 4 << 20
)

func rowKey(id checkpoint.ID, name string) []byte {
	return append(append(make([]byte, 0, len(id)+len(name)), id[:]...), name...)
}

// encodeUnder returns the value of a row, and its data where it is large. It keeps none of data's
// memory.
func encodeUnder(key, data []byte) (value, large []byte) {
	var flags byte
	inside := data
	if len(data) > largeData {
		flags, inside, large = flagLarge, nil, bytes.Clone(data)
	}
	value = make([]byte, 0, underHead+len(inside))
	value = append(value, underVersion, flags)
	value = binary.BigEndian.AppendUint32(value, uint32(len(data)))
	value = binary.BigEndian.AppendUint32(value, crc32.Checksum(data, castagnoli))
	value = binary.BigEndian.AppendUint32(value, sumUnder(key, value))
	return append(value, inside...), large
}

// An under is a row without its data.
type under struct {
	inside   []byte // the data that is in the value; it is the value's memory
	large    bool
	dataSize uint32
	dataSum  uint32
}

// decodeUnder reads the value that stands under the key. Its errors are [*CorruptError].
func decodeUnder(key, value []byte) (*under, error) {
	fail := func(text string) (*under, error) { return nil, corruptUnder(key, text) }
	if len(key) <= len(checkpoint.ID{}) || len(value) < underHead {
		return fail("is too short")
	}
	if binary.BigEndian.Uint32(value[underHead-4:]) != sumUnder(key, value[:underHead-4]) {
		return fail("has a wrong checksum")
	}
	u := &under{
		inside:   value[underHead:],
		large:    value[1]&flagLarge != 0,
		dataSize: binary.BigEndian.Uint32(value[2:]),
		dataSum:  binary.BigEndian.Uint32(value[6:]),
	}
	if value[0] != underVersion || value[1]&^flagLarge != 0 || u.large != (u.dataSize > largeData) {
		return fail("has a field that is impossible")
	}
	return u, nil
}

// complete returns a copy of the row's data, which is in large where the row says so.
func (u *under) complete(key, large []byte) ([]byte, error) {
	data := u.inside
	if u.large {
		if len(u.inside) > 0 {
			return nil, corruptUnder(key, "has data behind that of a large row")
		}
		data = large
	}
	if uint64(len(data)) != uint64(u.dataSize) || crc32.Checksum(data, castagnoli) != u.dataSum {
		return nil, corruptUnder(key, "has data with a wrong checksum")
	}
	return append(make([]byte, 0, len(data)), data...), nil
}

func corruptUnder(key []byte, text string) error {
	id, name := splitRowKey(key)
	return &CorruptError{ID: id, Err: fmt.Errorf("its row %.80q %s", name, text)}
}

func splitRowKey(key []byte) (id checkpoint.ID, name []byte) {
	return id, key[copy(id[:], key):]
}

// rowsUnder goes through the rows of a record from a name on, until visit returns false.
func (t *tables) rowsUnder(id checkpoint.ID, from string, visit func(key, value []byte) (bool, error)) error {
	if t.rows() == nil {
		return nil
	}
	cursor := t.rows().Cursor()
	for key, value := cursor.Seek(rowKey(id, from)); bytes.HasPrefix(key, id[:]); key, value = cursor.Next() {
		if more, err := visit(key, value); err != nil || !more {
			return err
		}
	}
	return nil
}

// putRow writes the change of a row.
func (t *tables) putRow(c *rowChange) error {
	key := rowKey(c.id, c.name)
	if c.large == nil {
		// It may have been large before; where it was not, there is nothing to delete.
		if err := t.large().Delete(key); err != nil {
			return err
		}
	}
	if c.value == nil {
		return t.rows().Delete(key)
	}
	err := t.rows().Put(key, c.value)
	if c.large != nil {
		err = errors.Join(err, t.large().Put(key, c.large))
	}
	return err
}

// dropRows removes all rows of a record, damaged ones too.
func (t *tables) dropRows(id checkpoint.ID) error {
	for _, bucket := range []*bolt.Bucket{t.rows(), t.large()} {
		var keys [][]byte
		cursor := bucket.Cursor()
		for key, _ := cursor.Seek(id[:]); bytes.HasPrefix(key, id[:]); key, _ = cursor.Next() {
			if len(key) > len(id) {
				keys = append(keys, bytes.Clone(key))
			}
		}
		for _, key := range keys {
			if err := bucket.Delete(key); err != nil {
				return err
			}
		}
	}
	return nil
}

// Rows implements [checkpoint.Store]. It sees lazy commits too. A page ends with the row that makes
// it 4 MiB. Where a row of the page is damaged, it returns a [*CorruptError].
func (s *Store) Rows(ctx context.Context, id checkpoint.ID, from string, limit int) ([]checkpoint.Row, error) {
	if err := checkpoint.CheckLimit(limit); err != nil {
		return nil, err
	}
	rows, err := s.rows(ctx, id, from, limit)
	if err != nil {
		return nil, fmt.Errorf("read rows of record %s: %w", id, err)
	}
	return rows, nil
}

func (s *Store) rows(ctx context.Context, id checkpoint.ID, from string, limit int) ([]checkpoint.Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// The overlay comes first, as for Load.
	s.mu.Lock()
	err := s.serving()
	record, lazy := s.overlay.records[id], maps.Clone(s.overlay.rows[id])
	s.mu.Unlock()
	if err != nil || record != nil && record.row == nil {
		return nil, err
	}
	p := &rowPage{id: id, limit: limit, lazy: lazy}
	for name := range lazy {
		if name >= from {
			p.names = append(p.names, name)
		}
	}
	slices.Sort(p.names)
	err = s.view(func(t *tables) error {
		err := t.rowsUnder(id, from, func(key, value []byte) (bool, error) { return p.stored(t, key, value) })
		if err == nil {
			_, err = p.overlaid("", false)
		}
		return err
	})
	return p.rows, err
}

// A rowPage is one page of rows in the making: those of the file and those of the overlay, in one
// order.
type rowPage struct {
	id    checkpoint.ID
	limit int
	lazy  map[string]*rowChange
	names []string // of lazy, those that come yet
	rows  []checkpoint.Row
	size  int
}

func (p *rowPage) full() bool { return len(p.rows) >= p.limit || p.size >= maxRowBytes }

// stored takes a row of the file, after those of the overlay that come before it.
func (p *rowPage) stored(t *tables, key, value []byte) (more bool, err error) {
	_, name := splitRowKey(key)
	if more, err := p.overlaid(string(name), true); err != nil || !more {
		return false, err
	}
	if p.lazy[string(name)] != nil {
		return true, nil
	}
	return p.take(key, value, t.large().Get(key))
}

// overlaid takes the rows of the overlay that come before the name, where there is one, or else all
// that are left.
func (p *rowPage) overlaid(name string, bounded bool) (more bool, err error) {
	for len(p.names) > 0 && !p.full() && (!bounded || p.names[0] < name) {
		c := p.lazy[p.names[0]]
		p.names = p.names[1:]
		if c.value != nil {
			if _, err := p.take(rowKey(c.id, c.name), c.value, c.large); err != nil {
				return false, err
			}
		}
	}
	return !p.full(), nil
}

func (p *rowPage) take(key, value, large []byte) (more bool, err error) {
	u, err := decodeUnder(key, value)
	if err != nil {
		return false, err
	}
	data, err := u.complete(key, large)
	if err != nil {
		return false, err
	}
	_, name := splitRowKey(key)
	p.rows = append(p.rows, checkpoint.Row{ID: p.id, Name: string(name), Data: data})
	p.size += len(data)
	return !p.full(), nil
}
