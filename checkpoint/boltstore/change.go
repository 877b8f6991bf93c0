package boltstore

import (
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
}

// A change is one record's part of a write. It is never changed itself.
type change struct {
	record   checkpoint.Record // what is written, without data; of a delete only the id
	row      []byte            // nil for a delete
	large    []byte
	revision uint64 // what is expected to be stored; 0: nothing
	epoch    uint64 // the claim's epoch there; not compared for a delete
}

func newWrite(b *checkpoint.Batch) *write {
	w := &write{time: b.Time, owner: b.Owner}
	for i := range b.Puts {
		p := &b.Puts[i]
		c := &change{record: p.Record, revision: p.Record.Revision - 1, epoch: p.Epoch}
		c.row, c.large = encodeRow(&p.Record)
		c.record.Data = nil
		c.record.Due = p.Record.Due.UTC()
		w.changes = append(w.changes, c)
	}
	for _, d := range b.Deletes {
		w.changes = append(w.changes, &change{record: checkpoint.Record{ID: d.ID}, revision: d.Revision})
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

// expects reports whether the change may be written over what is stored, nil for nothing.
func (c *change) expects(stored *checkpoint.Record) bool {
	if stored == nil {
		return c.row != nil && c.revision == 0 && c.epoch == 0
	}
	return stored.Revision == c.revision && (c.row == nil || stored.Claim.Epoch == c.epoch)
}
