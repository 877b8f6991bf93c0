package boltstore

import (
	"bytes"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A write is a batch that was checked for its form and encoded. It has no memory in common with the
// caller's batch, which the caller may change as soon as Commit has returned, even where its
// context ended before the batch was applied.
type write struct {
	time    time.Time
	owner   string // who writes; empty: nobody who has to be alive
	changes []*change
	rows    []*rowChange
	audit   [][]byte
	trim    uint64 // audit entries that are removed, up to this one
	meta    []byte // nil: the ledger's stays
}

// A change is one record's part of a write. It is never changed itself.
type change struct {
	record   checkpoint.Record // what is written, without data; of a delete only the id
	row      []byte            // nil for a delete
	large    []byte
	data     int    // how many bytes of data the record has
	revision uint64 // what is expected to be stored; 0: nothing
	epoch    uint64 // the claim's epoch there; not compared for a delete
}

// A rowChange is the part of a write that concerns one row under a record. It is never changed
// itself.
type rowChange struct {
	id    checkpoint.ID
	name  string
	value []byte // nil where the row is removed
	large []byte
	data  int
	epoch uint64 // that the claim of the record is expected at
}

func newWrite(b *checkpoint.Batch) *write {
	w := &write{time: b.Time, owner: b.Owner, trim: b.TrimAudit, meta: bytes.Clone(b.Meta)}
	for i := range b.Puts {
		p := &b.Puts[i]
		c := &change{record: p.Record, data: len(p.Record.Data), revision: p.Record.Revision - 1, epoch: p.Epoch}
		c.row, c.large = encodeRow(&p.Record)
		c.record.Data = nil
		c.record.Due = p.Record.Due.UTC()
		w.changes = append(w.changes, c)
	}
	for _, d := range b.Deletes {
		w.changes = append(w.changes, &change{record: checkpoint.Record{ID: d.ID}, revision: d.Revision})
	}
	for i := range b.Rows {
		p := &b.Rows[i]
		c := &rowChange{id: p.Row.ID, name: p.Row.Name, data: len(p.Row.Data), epoch: p.Epoch}
		if p.Row.Data != nil {
			c.value, c.large = encodeUnder(rowKey(c.id, c.name), p.Row.Data)
		}
		w.rows = append(w.rows, c)
	}
	for _, entry := range b.Audit {
		w.audit = append(w.audit, bytes.Clone(entry))
	}
	return w
}

// size is how many bytes the change writes; nil writes none.
func (c *change) size() int {
	if c == nil {
		return 0
	}
	return len(c.row) + len(c.large)
}

func (c *rowChange) size() int {
	if c == nil {
		return 0
	}
	return len(c.value) + len(c.large)
}

// concerns goes through the records that the write changes, or has rows of; some may come twice.
func (w *write) concerns(yield func(checkpoint.ID) bool) {
	for _, c := range w.changes {
		if !yield(c.record.ID) {
			return
		}
	}
	for _, c := range w.rows {
		if !yield(c.id) {
			return
		}
	}
}

// auditSize is how many bytes of audit entries the write has.
func (w *write) auditSize() (n int) {
	for _, entry := range w.audit {
		n += len(entry)
	}
	return n
}

// read returns a copy of the record that the change wrote, or checkpoint.ErrNotFound for a delete.
func (c *change) read() (checkpoint.Record, error) {
	if c.row == nil {
		return checkpoint.Record{}, checkpoint.ErrNotFound
	}
	h, err := decodeHead(c.record.ID, c.row)
	if err != nil {
		return checkpoint.Record{}, err
	}
	return h.complete(c.large)
}

// head is what the change leaves of its record: nil for a delete.
func (c *change) head() *head {
	if c.row == nil {
		return nil
	}
	return &head{record: c.record, dataSize: uint32(c.data)}
}

// expects reports whether the change may be written over what is stored, nil for nothing.
func (c *change) expects(stored *head) bool {
	if stored == nil {
		return c.row != nil && c.revision == 0 && c.epoch == 0
	}
	r := &stored.record
	return r.Revision == c.revision && (c.row == nil || r.Claim.Epoch == c.epoch && r.Scope == c.record.Scope)
}
