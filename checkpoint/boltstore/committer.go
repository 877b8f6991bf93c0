package boltstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
)

const (
	// maxGroup is how many requests share one transaction at most.
	maxGroup = 512
	// maxUsed is of how many scopes the usage is kept in memory, beside those that wait for a
	// transaction.
	maxUsed = 4096
)

// A request is what the committer does in a transaction: a write, or the ledger of whoever joins
// first, or neither, which waits for the lazy writes before it to be in the file.
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
	return s.overlay.full()
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
	flushed  flushed // what was in the overlay
	inFlight map[checkpoint.ID]bool
	used     tally // of the scopes whose usage changes
	audited  uint64
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
	t := &tables{tx: g.tx}
	g.store.mu.Lock()
	g.begin()
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
	if err := g.total(t); err != nil {
		return err
	}
	g.store.mu.Lock()
	g.store.inFlight = g.inFlight
	maps.Copy(g.store.used, g.used)
	clear(g.store.overlay.scopes)
	g.store.mu.Unlock()
	return nil
}

// begin takes over what the store holds for the transaction. It is called with mu held.
func (g *group) begin() {
	s := g.store
	g.flushed, g.audited, g.floor = s.overlay.flush(), s.audited, s.floor
	g.used = make(tally)
	for scope := range s.overlay.scopes {
		g.used[scope] = s.used[scope]
	}
	if len(s.used) > maxUsed {
		s.used = maps.Clone(g.used) // what the others use is in the file
	}
}

// total writes what the requests and the overlay amount to, once for all of them.
func (g *group) total(t *tables) error {
	var errs []error
	if g.floor.After(g.store.saved) {
		g.changed = true
		errs = append(errs, t.putFloor(g.floor))
	}
	if g.audited != g.store.audited { // which only the committer changes
		errs = append(errs, t.putLastAudit(g.audited))
	}
	for scope, u := range g.used {
		errs = append(errs, t.putUsage(scope, u))
	}
	return errors.Join(errs...)
}

// flush writes the overlay. It was checked when it was laid.
func (g *group) flush(t *tables) error {
	for _, c := range g.flushed.records {
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
	for _, c := range g.flushed.rows {
		g.changed = true
		if err := t.putRow(c); err != nil {
			return err
		}
	}
	for _, w := range g.flushed.audit {
		if err := g.append(t, w); err != nil {
			return err
		}
	}
	return nil
}

// append appends the audit entries of a write, and trims the trail.
func (g *group) append(t *tables, w *write) (err error) {
	if len(w.audit) == 0 && w.trim == 0 {
		return nil
	}
	g.changed = true
	g.audited, err = t.appendAudit(w, g.audited)
	return err
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
	if r.write == nil {
		return nil
	}
	if r.outcome = g.store.alive(r.write.owner); r.outcome != nil {
		return nil
	}
	var j *judgement
	// A check only reads, so a damaged page that it meets concerns this request only.
	r.outcome = guard(g.store.path, func() (err error) {
		if j, err = r.write.check(t); err != nil {
			return err
		}
		return j.used.over(func(scope checkpoint.Hash) (checkpoint.Usage, error) { return g.usedBefore(t, scope) })
	})
	if r.outcome != nil {
		return nil
	}
	for id := range r.write.concerns {
		g.changed = true
		g.inFlight[id] = true
	}
	g.changed = g.changed || r.write.meta != nil
	maps.Copy(g.used, j.used)
	if r.write.time.After(g.floor) {
		g.floor = r.write.time
	}
	return errors.Join(r.write.apply(t, j), g.append(t, r.write))
}

// usedBefore returns what a scope uses before the next request.
func (g *group) usedBefore(t *tables, scope checkpoint.Hash) (checkpoint.Usage, error) {
	if u, ok := g.used[scope]; ok {
		return u, nil
	}
	return g.store.usedBefore(t, scope)
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
		s.overlay.settle(g.flushed)
		s.audited = g.audited
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
