package memstore

import (
	"bytes"
	"cmp"

	"github.com/google/btree"

	"github.com/parley-go/parley/checkpoint"
)

// index holds the records and the orders they are found by. Its records are never changed once they
// are in.
type index struct {
	records map[checkpoint.ID]*checkpoint.Record
	starts  map[checkpoint.Hash]*checkpoint.Record
	live    *btree.BTreeG[*checkpoint.Record]    // by scope, then id
	ended   *btree.BTreeG[*checkpoint.Record]    // by scope, then id
	due     *btree.BTreeG[*checkpoint.Record]    // by due, then id; those that have one
	rows    *btree.BTreeG[*checkpoint.Row]       // by id, then name
	usage   map[checkpoint.Hash]checkpoint.Usage // by scope; the zero scope's is in all
}

func newIndex() index {
	const degree = 32
	return index{
		records: make(map[checkpoint.ID]*checkpoint.Record),
		starts:  make(map[checkpoint.Hash]*checkpoint.Record),
		live:    btree.NewG(degree, lessPlace),
		ended:   btree.NewG(degree, lessPlace),
		due:     btree.NewG(degree, lessDue),
		rows:    btree.NewG(degree, lessRow),
		usage:   make(map[checkpoint.Hash]checkpoint.Usage),
	}
}

func (x *index) place(s checkpoint.Status) *btree.BTreeG[*checkpoint.Record] {
	if s.Ended() {
		return x.ended
	}
	return x.live
}

func (x *index) add(r *checkpoint.Record) {
	x.records[r.ID] = r
	x.place(r.Status).ReplaceOrInsert(r)
	if !r.Start.IsZero() {
		x.starts[r.Start] = r
	}
	if !r.Due.IsZero() {
		x.due.ReplaceOrInsert(r)
	}
	x.count(r, 1)
}

func (x *index) remove(r *checkpoint.Record) {
	if r == nil {
		return
	}
	delete(x.records, r.ID)
	x.place(r.Status).Delete(r)
	if !r.Start.IsZero() {
		delete(x.starts, r.Start)
	}
	if !r.Due.IsZero() {
		x.due.Delete(r)
	}
	x.count(r, -1)
}

func lessPlace(a, b *checkpoint.Record) bool {
	return cmp.Or(bytes.Compare(a.Scope[:], b.Scope[:]), a.ID.Compare(b.ID)) < 0
}

func lessDue(a, b *checkpoint.Record) bool {
	return cmp.Or(a.Due.Compare(b.Due), a.ID.Compare(b.ID)) < 0
}

// check compares every expectation of the batch with what is stored. Its error is a
// *checkpoint.ConflictError.
func (x *index) check(b *checkpoint.Batch) error {
	starts := make(map[checkpoint.Hash]checkpoint.ID) // the hashes that the batch takes
	touched := make(map[checkpoint.ID]bool)           // what is deleted or replaced, and frees the hash it has
	for i := range b.Puts {
		p := &b.Puts[i]
		var revision, epoch uint64
		scope := p.Record.Scope
		if old := x.records[p.Record.ID]; old != nil {
			revision, epoch, scope = old.Revision, old.Claim.Epoch, old.Scope
		}
		if p.Record.Revision-1 != revision || p.Epoch != epoch || p.Record.Scope != scope {
			return &checkpoint.ConflictError{ID: p.Record.ID}
		}
		touched[p.Record.ID] = true
	}
	for _, d := range b.Deletes {
		if old := x.records[d.ID]; old == nil || old.Revision != d.Revision {
			return &checkpoint.ConflictError{ID: d.ID}
		}
		touched[d.ID] = true
	}
	if err := x.checkRows(b); err != nil {
		return err
	}
	for i := range b.Puts {
		r := &b.Puts[i].Record
		if r.Start.IsZero() {
			continue
		}
		if _, twice := starts[r.Start]; twice {
			return &checkpoint.ConflictError{ID: r.ID}
		}
		starts[r.Start] = r.ID
		if holder := x.starts[r.Start]; holder != nil && !touched[holder.ID] {
			return &checkpoint.ConflictError{ID: r.ID}
		}
	}
	return nil
}
