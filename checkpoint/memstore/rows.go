package memstore

import (
	"bytes"
	"cmp"
	"context"
	"strings"

	"github.com/parley-go/parley/checkpoint"
)

// maxRowBytes ends a page of rows.
const maxRowBytes = 4 << 20

// Rows implements [checkpoint.Store].
func (s *Store) Rows(ctx context.Context, id checkpoint.ID, from string, limit int) ([]checkpoint.Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkpoint.CheckLimit(limit); err != nil {
		return nil, err
	}
	var rows []checkpoint.Row
	size := 0
	s.mu.RLock()
	s.index.rows.AscendGreaterOrEqual(&checkpoint.Row{ID: id, Name: from}, func(row *checkpoint.Row) bool {
		if row.ID != id || len(rows) >= limit || size >= maxRowBytes {
			return false
		}
		rows = append(rows, *row)
		size += len(row.Data)
		return true
	})
	s.mu.RUnlock()
	for i := range rows { // a stored row is never changed, only replaced
		rows[i].Data = bytes.Clone(rows[i].Data)
	}
	return rows, nil
}

func lessRow(a, b *checkpoint.Row) bool {
	return cmp.Or(a.ID.Compare(b.ID), strings.Compare(a.Name, b.Name)) < 0
}

// checkRows compares what the rows of the batch expect of their records with what the batch leaves
// of them.
func (x *index) checkRows(b *checkpoint.Batch) error {
	for i := range b.Rows {
		id := b.Rows[i].Row.ID
		record := x.records[id]
		for j := range b.Puts {
			if b.Puts[j].Record.ID == id {
				record = &b.Puts[j].Record
			}
		}
		if record == nil || record.Claim.Epoch != b.Rows[i].Epoch {
			return &checkpoint.ConflictError{ID: id}
		}
	}
	return nil
}

// setRow writes the row, or removes it where it has no data. Its record is there.
func (x *index) setRow(row *checkpoint.Row) {
	scope := x.records[row.ID].Scope
	old, had := x.rows.Delete(row)
	if had {
		x.countRow(scope, old, -1)
	}
	if row.Data != nil {
		x.rows.ReplaceOrInsert(row)
		x.countRow(scope, row, 1)
	}
}

// dropRows removes all rows of a record of that scope.
func (x *index) dropRows(id checkpoint.ID, scope checkpoint.Hash) {
	var rows []*checkpoint.Row
	x.rows.AscendGreaterOrEqual(&checkpoint.Row{ID: id}, func(row *checkpoint.Row) bool {
		if row.ID == id {
			rows = append(rows, row)
		}
		return row.ID == id
	})
	for _, row := range rows {
		x.rows.Delete(row)
		x.countRow(scope, row, -1)
	}
}
