package boltstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-go/parley/checkpoint"
)

// Commit implements [checkpoint.Store]. It returns checkpoint.ErrReadOnly for a store that was
// opened to be read, a *checkpoint.ConflictError, and a [*CorruptError] where a record that the
// batch writes is damaged, with nothing written. After checkpoint.ErrUnavailable or ctx's own error
// only reading back tells whether the batch was applied.
//
// A lazy batch does not wait for the disk, unless it creates a record, changes a start hash, or
// writes a record that the transaction under way writes too: then it is as durable as any other
// when Commit returns.
func (s *Store) Commit(ctx context.Context, b *checkpoint.Batch) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if s.readOnly {
		return checkpoint.ErrReadOnly
	}
	if err := b.Validate(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	w := newWrite(b)
	if b.Lazy {
		if done, err := s.commitLazily(w); done {
			return err
		}
	}
	return s.submit(ctx, &request{write: w})
}

// submit hands a request to the committer and waits for its answer.
func (s *Store) submit(ctx context.Context, r *request) error {
	r.answer = make(chan error, 1)
	select {
	case s.queue <- r:
	case <-s.closing:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.stopped:
	}
	// The committer is gone; it answered or never saw the request.
	select {
	case err := <-r.answer:
		return err
	default:
		return errClosed
	}
}

// commitLazily checks the write against what is stored and puts it into the overlay. It returns
// false where that cannot tell whether the write is good: then the committer must.
//
// A record in the overlay always exists in the file and has the same start hash there. So the
// overlay needs no index of its own, and the file alone decides whose a start hash is. The reading
// under admit is of mapped memory, as the committer's is.
func (s *Store) commitLazily(w *write) (done bool, err error) {
	s.admit.Lock()
	defer s.admit.Unlock()
	stored, ok, err := s.pending(w)
	if !ok || err != nil {
		return err != nil, err
	}
	// The committer is done with what is not in flight, so the file says what is not in the
	// overlay.
	err = s.view(func(t *tables) error {
		for _, c := range w.changes {
			if _, lazy := stored[c.record.ID]; lazy {
				continue
			}
			h, err := t.head(c.record.ID)
			if err != nil {
				return err
			}
			if h != nil {
				stored[c.record.ID] = &h.record
			}
		}
		return nil
	})
	if err != nil {
		return true, err
	}
	for _, c := range w.changes {
		if old := stored[c.record.ID]; !c.expects(old) {
			return true, &checkpoint.ConflictError{ID: c.record.ID}
		}
	}
	for _, c := range w.changes {
		old := stored[c.record.ID]
		if old == nil || c.row != nil && old.Start != c.record.Start {
			return false, nil
		}
	}
	return true, s.lay(w)
}

// pending returns the records of the write that are in the overlay, nil for those deleted there; ok
// is false where the transaction under way writes one of them.
func (s *Store) pending(w *write) (stored map[checkpoint.ID]*checkpoint.Record, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.serving(); err != nil {
		return nil, false, err
	}
	stored = make(map[checkpoint.ID]*checkpoint.Record, len(w.changes))
	for _, c := range w.changes {
		id := c.record.ID
		if s.inFlight[id] {
			return nil, false, nil
		}
		if lazy := s.overlay[id]; lazy != nil && lazy.row == nil {
			stored[id] = nil
		} else if lazy != nil {
			stored[id] = &lazy.record
		}
	}
	return stored, true, nil
}

// lay puts the write into the overlay, where every reader sees it, and wakes the committer.
func (s *Store) lay(w *write) error {
	s.mu.Lock()
	err := s.serving()
	if err == nil {
		err = s.lapsed(w.owner)
	}
	if err == nil {
		for _, c := range w.changes {
			s.overlayData += c.size() - s.overlay[c.record.ID].size()
			s.overlay[c.record.ID] = c
		}
		if w.time.After(s.floor) {
			s.floor = w.time
		}
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case s.dirty <- struct{}{}:
	default:
	}
	s.changed(w)
	return nil
}

// check compares every expectation of the write with what the transaction holds, and returns the
// heads of the records it writes. Its error is a *checkpoint.ConflictError, or says what cannot be
// read.
func (w *write) check(t *tables) (map[checkpoint.ID]*head, error) {
	old := make(map[checkpoint.ID]*head, len(w.changes))
	touched := make(map[checkpoint.ID]bool, len(w.changes))
	for _, c := range w.changes {
		h, err := t.head(c.record.ID)
		if err != nil {
			return nil, err
		}
		var stored *checkpoint.Record
		if h != nil {
			stored = &h.record
		}
		if !c.expects(stored) {
			return nil, &checkpoint.ConflictError{ID: c.record.ID}
		}
		old[c.record.ID], touched[c.record.ID] = h, true
	}
	taken := make(map[checkpoint.Hash]bool)
	for _, c := range w.changes {
		start := c.record.Start
		if start.IsZero() {
			continue
		}
		// Who is written in this batch gives up the hash it has, or keeps it and is found by taken.
		id, held, err := t.holder(start)
		if err != nil {
			return nil, err
		}
		if taken[start] || held && !touched[id] {
			return nil, &checkpoint.ConflictError{ID: c.record.ID}
		}
		taken[start] = true
	}
	return old, nil
}

// apply writes what check allowed. Deletes come first, so that a start hash they free can be taken
// by a put beside them.
func (w *write) apply(t *tables, old map[checkpoint.ID]*head) error {
	for _, c := range w.changes {
		if c.row != nil {
			continue
		}
		if err := t.remove(old[c.record.ID]); err != nil {
			return err
		}
	}
	var errs []error
	for _, c := range w.changes {
		if c.row != nil {
			errs = append(errs, t.put(old[c.record.ID], c))
		}
	}
	return errors.Join(errs...)
}
