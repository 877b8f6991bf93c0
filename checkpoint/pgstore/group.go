package pgstore

import (
	"github.com/parley-go/parley/checkpoint"
)

// maxGroup is how many batches one transaction takes, and maxGroupBytes how much data, but at least
// one batch.
const (
	maxGroup      = 256
	maxGroupBytes = 8 << 20
)

// A group is batches that go to the server together. No two of them touch one record or start hash,
// so that each can be judged by what is stored, and written in any order.
type group struct {
	requests []*request
	ids      map[checkpoint.ID]*request
	starts   map[checkpoint.Hash]*request
	size     int
	single   bool // one of them replaces the meta data or trims the audit trail
	rivals   []rival
	later    []*request // for another group
}

// A rival is a request that is a conflict once another one of the group is applied.
type rival struct {
	*request
	of *request
	id checkpoint.ID // of the conflict
}

func newGroup() *group {
	return &group{ids: make(map[checkpoint.ID]*request), starts: make(map[checkpoint.Hash]*request)}
}

// add takes the request in, as one of the group, as a rival of one, or for another group.
func (g *group) add(r *request) {
	ids, starts, size := touched(r.batch)
	single := r.batch.Meta != nil || r.batch.TrimAudit > 0
	if len(g.requests) > 0 && (len(g.requests) == maxGroup || g.size+size > maxGroupBytes || single && g.single) {
		g.later = append(g.later, r)
		return
	}
	if of, id, meet := g.meets(ids, starts, r); meet {
		if of != nil {
			g.rivals = append(g.rivals, rival{r, of, id})
		} else {
			g.later = append(g.later, r)
		}
		return
	}
	for _, id := range ids {
		g.ids[id] = r
	}
	for _, start := range starts {
		g.starts[start] = r
	}
	g.requests = append(g.requests, r)
	g.size += size
	g.single = g.single || single
}

// meets reports whether one of the group touches what the request touches. of is that one, where
// the request wants to write what it writes: a record at the same revision, or a new one with the
// same start hash.
func (g *group) meets(ids []checkpoint.ID, starts []checkpoint.Hash, r *request) (of *request, id checkpoint.ID, meet bool) {
	for _, id := range ids {
		if other := g.ids[id]; other != nil {
			if mine, ok := puts(r.batch, id); ok && mine.Record.Revision == revisionOf(other.batch, id) {
				return other, id, true
			}
			return nil, id, true
		}
	}
	for _, start := range starts {
		if other := g.starts[start]; other != nil {
			for i := range r.batch.Puts {
				if mine := &r.batch.Puts[i].Record; mine.Start == start {
					return other, mine.ID, true
				}
			}
		}
	}
	return nil, checkpoint.ID{}, false
}

func puts(b *checkpoint.Batch, id checkpoint.ID) (*checkpoint.Put, bool) {
	for i := range b.Puts {
		if b.Puts[i].Record.ID == id {
			return &b.Puts[i], true
		}
	}
	return nil, false
}

// revisionOf is the revision that the batch writes of a record; 0: none.
func revisionOf(b *checkpoint.Batch, id checkpoint.ID) uint64 {
	if p, ok := puts(b, id); ok {
		return p.Record.Revision
	}
	return 0
}

// settle answers the rivals of what was applied, and leaves the others for another group.
func (g *group) settle(applied map[*request]bool) {
	for _, r := range g.rivals {
		if applied[r.of] {
			r.done <- &checkpoint.ConflictError{ID: r.id}
		} else {
			g.later = append(g.later, r.request)
		}
	}
}

// touched returns the records of a batch, the start hashes that it takes, and how much data it has.
func touched(b *checkpoint.Batch) (ids []checkpoint.ID, starts []checkpoint.Hash, size int) {
	for i := range b.Puts {
		r := &b.Puts[i].Record
		ids, size = append(ids, r.ID), size+len(r.Data)
		if !r.Start.IsZero() {
			starts = append(starts, r.Start)
		}
	}
	for _, d := range b.Deletes {
		ids = append(ids, d.ID)
	}
	for i := range b.Rows {
		ids, size = append(ids, b.Rows[i].Row.ID), size+len(b.Rows[i].Row.Data)
	}
	for _, entry := range b.Audit {
		size += len(entry)
	}
	return ids, starts, size
}

// claim leaves out the requests whose callers have gone.
func (g *group) claim() (batches []*checkpoint.Batch) {
	kept := g.requests[:0]
	for _, r := range g.requests {
		if r.state.CompareAndSwap(waits, taken) {
			kept = append(kept, r)
			batches = append(batches, r.batch)
		}
	}
	g.requests = kept
	return batches
}
