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
	ids      map[checkpoint.ID]bool
	starts   map[checkpoint.Hash]bool
	size     int
	single   bool // one of them replaces the meta data or trims the audit trail
}

func newGroup() *group {
	return &group{ids: make(map[checkpoint.ID]bool), starts: make(map[checkpoint.Hash]bool)}
}

// add takes the request in, or reports that it is for another group.
func (g *group) add(r *request) bool {
	ids, starts, size := touched(r.batch)
	single := r.batch.Meta != nil || r.batch.TrimAudit > 0
	if len(g.requests) > 0 {
		if len(g.requests) == maxGroup || g.size+size > maxGroupBytes || single && g.single {
			return false
		}
		for _, id := range ids {
			if g.ids[id] {
				return false
			}
		}
		for _, start := range starts {
			if g.starts[start] {
				return false
			}
		}
	}
	for _, id := range ids {
		g.ids[id] = true
	}
	for _, start := range starts {
		g.starts[start] = true
	}
	g.requests = append(g.requests, r)
	g.size += size
	g.single = g.single || single
	return true
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

// lazy reports whether nobody waits for the group to be durable.
func (g *group) lazy() bool {
	for _, r := range g.requests {
		if !r.batch.Lazy {
			return false
		}
	}
	return true
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
