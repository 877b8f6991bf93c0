package boltstore

import (
	"maps"
	"slices"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

const (
	// maxOverlay is how many lazy writes wait for the store to be idle, and maxOverlayData how many
	// bytes of them; with more they are flushed at once. It bounds what a listing goes through, and
	// what is held in memory. No lazy write waits for it (R25): those that come while the disk is
	// busy are in the next transaction.
	maxOverlay     = 512
	maxOverlayData = 8 << 20
)

// An overlay is what lazy writes did that is not in the file yet. A record in it always exists in
// the file and has the same start hash there; so does the record of a row. So the overlay needs no
// index of its own, and the file alone decides whose a start hash is.
type overlay struct {
	records map[checkpoint.ID]*change
	rows    map[checkpoint.ID]map[string]*rowChange
	audit   []*write                 // the writes that append to the audit trail or trim it, in their order
	scopes  map[checkpoint.Hash]bool // those whose usage is not in the file yet
	entries int                      // how many rows and writes with audit entries there are
	data    int                      // how many bytes all of it has
	// earliest is not after the due of any record in it; zero: none is ever due. It may be that of
	// a record that has left.
	earliest time.Time
}

func newOverlay() overlay {
	return overlay{
		records: make(map[checkpoint.ID]*change),
		rows:    make(map[checkpoint.ID]map[string]*rowChange),
		scopes:  make(map[checkpoint.Hash]bool),
	}
}

// empty reports whether the file has everything.
func (o *overlay) empty() bool { return len(o.records)+o.entries == 0 }

// full reports whether the overlay is to be flushed at once.
func (o *overlay) full() bool {
	return len(o.records)+o.entries > maxOverlay || o.data > maxOverlayData
}

// lay puts a write into the overlay.
func (o *overlay) lay(w *write) {
	for _, c := range w.changes {
		id := c.record.ID
		o.data += c.size() - o.records[id].size()
		o.records[id] = c
		if due := c.record.Due; !due.IsZero() && (o.earliest.IsZero() || due.Before(o.earliest)) {
			o.earliest = due
		}
		if c.row == nil {
			for _, row := range o.rows[id] {
				o.removeRow(row)
			}
		}
	}
	for _, c := range w.rows {
		rows := o.rows[c.id]
		if rows == nil {
			rows = make(map[string]*rowChange)
			o.rows[c.id] = rows
		}
		if rows[c.name] == nil {
			o.entries++
		}
		o.data += c.size() - rows[c.name].size()
		rows[c.name] = c
	}
	if len(w.audit) > 0 || w.trim > 0 {
		o.audit = append(o.audit, w)
		o.entries++
		o.data += w.auditSize()
	}
}

func (o *overlay) removeRow(c *rowChange) {
	rows := o.rows[c.id]
	if rows[c.name] != c {
		return // a newer one came over it
	}
	if delete(rows, c.name); len(rows) == 0 {
		delete(o.rows, c.id)
	}
	o.entries--
	o.data -= c.size()
}

// A flushed is what of an overlay a transaction writes.
type flushed struct {
	records []*change
	rows    []*rowChange
	audit   []*write
}

// flush returns all that is in the overlay. It stays there until settle.
func (o *overlay) flush() flushed {
	f := flushed{records: slices.Collect(maps.Values(o.records)), audit: slices.Clone(o.audit)}
	for _, rows := range o.rows {
		f.rows = slices.AppendSeq(f.rows, maps.Values(rows))
	}
	return f
}

// settle takes out what is in the file now, except where a newer lazy write came over it.
func (o *overlay) settle(f flushed) {
	for _, c := range f.records {
		if o.records[c.record.ID] == c {
			delete(o.records, c.record.ID)
			o.data -= c.size()
		}
	}
	if len(o.records) == 0 {
		o.earliest = time.Time{}
	}
	for _, c := range f.rows {
		o.removeRow(c)
	}
	for _, w := range f.audit {
		o.data -= w.auditSize()
	}
	o.audit = slices.Delete(o.audit, 0, len(f.audit))
	o.entries -= len(f.audit)
}

// part returns what the overlay has of the records that a write concerns.
func (o *overlay) part(w *write) *overlay {
	p := &overlay{records: make(map[checkpoint.ID]*change), rows: make(map[checkpoint.ID]map[string]*rowChange)}
	for id := range w.concerns {
		if c := o.records[id]; c != nil {
			p.records[id] = c
		}
		if rows := o.rows[id]; rows != nil && p.rows[id] == nil {
			p.rows[id] = maps.Clone(rows)
		}
	}
	return p
}
