package boltstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
)

const (
	// maxGroup is how many requests share one transaction at most.
	maxGroup = 512
	// maxOverlay is how many lazy writes wait for the store to be idle, and maxOverlayData how many
	// bytes of them; with more they are flushed at once. It bounds what a listing goes through, and
	// what is held in memory. No lazy write waits for it (R25): those that come while the disk is
	// busy are in the next transaction.
	maxOverlay     = 512
	maxOverlayData = 8 << 20
)

// A request is what the committer does in a transaction: a write, or the ledger of whoever joins
// first.
type request struct {
	write   *write
	ledger  *checkpoint.Ledger // where it is set, it becomes the stored one
	answer  chan error
	outcome error
}

// serve is the committer: the one goroutine that writes to the file. Commits do not wait for each
// other or for a timer: while one transaction is synced, the requests for the next one gather in
// the queue.
func (s *Store) serve() {
	defer close(s.stopped)
	var idle <-chan time.Time // set while a lazy write waits for the store to be idle
	for {
		select {
		case r := <-s.queue:
			s.run(s.gather(r))
			idle = nil
		case <-s.dirty:
			if s.overlayFull() {
				s.run(nil)
				idle = nil
			} else if idle == nil {
				idle = time.After(s.idleFlush)
			}
		case <-idle:
			s.run(nil)
			idle = nil
		case <-s.closing:
			for {
				group := s.gather()
				s.run(group)
				if len(group) == 0 {
					return
				}
			}
		}
	}
}

func (s *Store) overlayFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.overlay) > maxOverlay || s.overlayData > maxOverlayData
}

// gather takes what is in the queue.
func (s *Store) gather(group ...*request) []*request {
	for len(group) < maxGroup {
		select {
		case r := <-s.queue:
			group = append(group, r)
		default:
			return group
		}
	}
	return group
}

// run carries out the requests, and writes the overlay, in one transaction. A request that is
// refused does not concern the others; when the transaction itself fails nobody knows what of it is
// in the file, and the store serves nothing any more.
func (s *Store) run(requests []*request) {
	g := &group{store: s, requests: requests}
	err := s.ready(context.Background())
	if errors.Is(err, errClosed) {
		err = nil // the last groups before the file is closed
	}
	if err == nil {
		err = guard(s.path, g.build)
		if err == nil && g.changed {
			err = guard(s.path, g.commit)
		}
		g.end()
	}
	g.settle(err)
}

// A group is one transaction of the committer.
type group struct {
	store    *Store
	requests []*request
	tx       *bolt.Tx
	flushed  []*change // what was in the overlay
	inFlight map[checkpoint.ID]bool
	floor    time.Time
	changed  bool
}

// build fills the transaction. What was in the overlay comes first: every later check of a request
// then needs the transaction only, and a request that builds on a lazy write finds it.
func (g *group) build() (err error) {
	// The database's own lock comes before admit: a check that holds it (Check) must not make lazy
	// commits wait.
	if g.tx, err = g.store.db.bolt.Begin(true); err != nil {
		return err
	}
	g.store.admit.Lock()
	defer g.store.admit.Unlock()
	t, err := tablesOf(g.tx)
	if err != nil {
		return err
	}
	g.store.mu.Lock()
	g.flushed = slices.Collect(maps.Values(g.store.overlay))
	g.floor = g.store.floor
	g.store.mu.Unlock()
	if err := g.flush(t); err != nil {
		return err
	}
	g.inFlight = make(map[checkpoint.ID]bool)
	for _, r := range g.requests {
		if err := g.apply(t, r); err != nil {
			return err
		}
	}
	if g.floor.After(g.store.saved) {
		g.changed = true
		if err := t.putFloor(g.floor); err != nil {
			return err
		}
	}
	g.store.mu.Lock()
	g.store.inFlight = g.inFlight
	g.store.mu.Unlock()
	return nil
}

// flush writes the overlay. It was checked when it was laid.
func (g *group) flush(t *tables) error {
	for _, c := range g.flushed {
		g.changed = true
		old, err := t.head(c.record.ID)
		if err != nil {
			return err
		}
		switch {
		case c.row != nil:
			err = t.put(old, c)
		case old != nil:
			err = t.remove(old)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// apply carries out one request. What is wrong with it is its outcome; the error is what concerns
// the whole transaction.
func (g *group) apply(t *tables, r *request) error {
	if r.ledger != nil {
		stored, err := t.ledger()
		if err != nil || stored != nil {
			r.outcome = err
			if stored != nil {
				*r.ledger = *stored
			}
			return nil
		}
		g.changed = true
		return t.putLedger(r.ledger)
	}
	if r.outcome = g.store.alive(r.write.owner); r.outcome != nil {
		return nil
	}
	var old map[checkpoint.ID]*head
	// A check only reads, so a damaged page that it meets concerns this request only.
	r.outcome = guard(g.store.path, func() (err error) { old, err = r.write.check(t); return err })
	if r.outcome != nil {
		return nil
	}
	for _, c := range r.write.changes {
		g.changed = true
		g.inFlight[c.record.ID] = true
	}
	if r.write.time.After(g.floor) {
		g.floor = r.write.time
	}
	return r.write.apply(t, old)
}

// commit makes the transaction durable.
func (g *group) commit() error {
	g.store.mu.Lock()
	failpoint := g.store.failpoint
	g.store.mu.Unlock()
	if failpoint != nil {
		if err := failpoint(false); err != nil {
			return err
		}
	}
	if err := g.tx.Commit(); err != nil {
		return err
	}
	if failpoint != nil {
		return failpoint(true)
	}
	return nil
}

// end lets go of the transaction where it was not committed.
func (g *group) end() {
	if g.tx == nil {
		return
	}
	err := guard(g.store.path, g.tx.Rollback)
	var damaged *FileError
	if errors.As(err, &damaged) {
		g.store.db.stuck = true
	}
}

// settle publishes what the transaction did and answers the requests.
func (g *group) settle(err error) {
	s := g.store
	s.mu.Lock()
	s.inFlight = nil
	if err != nil && s.failed == nil {
		s.failed = fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, err)
	}
	err = s.failed
	if err == nil {
		for _, c := range g.flushed {
			if s.overlay[c.record.ID] == c { // else a newer lazy write came over it
				delete(s.overlay, c.record.ID)
				s.overlayData -= c.size()
			}
		}
		if g.floor.After(s.floor) {
			s.floor = g.floor
		}
		s.saved = g.floor
	}
	s.mu.Unlock()
	for _, r := range g.requests {
		if err != nil {
			r.outcome = err
		} else if r.outcome == nil && r.write != nil {
			s.changed(r.write)
		}
		r.answer <- r.outcome
	}
}
