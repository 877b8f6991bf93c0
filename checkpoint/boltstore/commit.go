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
// A lazy batch does not wait for the disk, unless it creates a record, changes a start hash or the
// ledger's meta, or writes a record, or a row of one, that the transaction under way writes too:
// then it is as durable as any other when Commit returns.
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
// The reading under admit is of mapped memory, as the committer's is.
func (s *Store) commitLazily(w *write) (done bool, err error) {
	if w.meta != nil {
		return false, nil
	}
	s.admit.Lock()
	defer s.admit.Unlock()
	over, ok, err := s.pending(w)
	if !ok || err != nil {
		return err != nil, err
	}
	// The committer is done with what is not in flight, so the file says what is not in the
	// overlay.
	var j *judgement
	err = s.view(func(t *tables) (err error) {
		if j, err = w.judge(stored{t, over}); err != nil {
			return err
		}
		return j.used.over(func(scope checkpoint.Hash) (checkpoint.Usage, error) { return s.usedBefore(t, scope) })
	})
	if err != nil {
		return true, err
	}
	for _, c := range w.changes {
		old := j.old[c.record.ID]
		if old == nil || c.row != nil && old.record.Start != c.record.Start {
			return false, nil
		}
	}
	return true, s.lay(w, j.used)
}

// pending returns what the overlay has of the records that the write concerns; ok is false where
// the transaction under way writes one of them.
func (s *Store) pending(w *write) (over *overlay, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.serving(); err != nil {
		return nil, false, err
	}
	for id := range w.concerns {
		if s.inFlight[id] {
			return nil, false, nil
		}
	}
	return s.overlay.part(w), true, nil
}

// lay puts the write into the overlay, where every reader sees it, and wakes the committer.
func (s *Store) lay(w *write, used tally) error {
	s.mu.Lock()
	err := s.serving()
	if err == nil {
		err = s.lapsed(w.owner)
	}
	if err == nil {
		s.overlay.lay(w)
		for scope, u := range used {
			s.used[scope] = u
			s.overlay.scopes[scope] = true
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

// check compares every expectation of the write with what the transaction holds. Its error is one
// of Commit that leaves nothing written.
func (w *write) check(t *tables) (*judgement, error) {
	j, err := w.judge(stored{tables: t})
	if err != nil {
		return nil, err
	}
	if err := w.judgeStarts(t, j); err != nil {
		return nil, err
	}
	if w.meta == nil {
		return j, nil
	}
	ledger, err := t.ledger()
	if err == nil && ledger == nil {
		err = fmt.Errorf("commit: %w: it has a ledger's meta, and nobody has joined", checkpoint.ErrInvalidBatch)
	}
	return j, err
}

// apply writes what check allowed, except for the audit trail. Deletes come first, so that a start
// hash they free can be taken by a put beside them.
func (w *write) apply(t *tables, j *judgement) error {
	for _, c := range w.changes {
		if c.row != nil {
			continue
		}
		if err := t.remove(j.old[c.record.ID]); err != nil {
			return err
		}
	}
	var errs []error
	for _, c := range w.changes {
		if c.row != nil {
			errs = append(errs, t.put(j.old[c.record.ID], c))
		}
	}
	for _, c := range w.rows {
		errs = append(errs, t.putRow(c))
	}
	if w.meta != nil {
		errs = append(errs, t.putMeta(w.meta))
	}
	return errors.Join(errs...)
}
