package pgstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/parley-go/parley/checkpoint"
)

// A request is a batch on its way to the server.
type request struct {
	batch *checkpoint.Batch // the store's own copy
	state atomic.Int32      // waits, taken or given up
	done  chan error        // holds one
}

const (
	waits int32 = iota
	taken
	givenUp
)

// Commit implements [checkpoint.Store]. The batches of callers that commit at the same time go to
// the server as one transaction, in one round trip; what one of them conflicts with is no matter of
// the others. A lazy batch is visible on all replicas when Commit returns, and durable within a few
// times the server's wal_writer_delay.
//
// After ctx's error the batch may still be on its way. The store keeps nothing of b then either.
func (s *Store) Commit(ctx context.Context, b *checkpoint.Batch) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := b.Validate(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if s.opts.ReadOnly {
		return fmt.Errorf("commit: %w", checkpoint.ErrReadOnly)
	}
	if s.hasLeft(b.Owner) {
		return fmt.Errorf("commit for owner %q: %w", b.Owner, checkpoint.ErrLapsed)
	}
	r := &request{batch: copied(b), done: make(chan error, 1)}
	bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout) // other commits come first
	defer cancel()
	select {
	case s.queue <- r:
	case <-bounded.Done():
		return fmt.Errorf("commit: %w", explain(ctx, bounded.Err()))
	case <-s.closing:
		return errClosed
	}
	select {
	case err := <-r.done:
		return err
	case <-bounded.Done():
		if !r.state.CompareAndSwap(waits, givenUp) {
			s.doubt() // whoever reads back waits for what is under way
		}
		return fmt.Errorf("commit: %w", explain(ctx, bounded.Err()))
	case <-s.drained:
	}
	select { // it may have been the last one
	case err := <-r.done:
		return err
	default:
		return errClosed
	}
}

// copied returns a copy that shares nothing with the batch: the caller can go away, with what is
// its own, while the batch is being sent.
func copied(b *checkpoint.Batch) *checkpoint.Batch {
	c := *b
	c.Puts, c.Deletes, c.Rows, c.Audit = slices.Clone(b.Puts), slices.Clone(b.Deletes), slices.Clone(b.Rows), slices.Clone(b.Audit)
	for i := range c.Puts {
		c.Puts[i].Record.Data = append([]byte{}, c.Puts[i].Record.Data...) // empty data is no NULL
	}
	for i := range c.Rows {
		c.Rows[i].Row.Data = bytes.Clone(c.Rows[i].Row.Data) // no data is one: the row goes
	}
	for i := range c.Audit {
		c.Audit[i] = bytes.Clone(c.Audit[i])
	}
	c.Meta = bytes.Clone(b.Meta)
	return &c
}

// changed wakes those of this process who wait for a record of the batch.
func (s *Store) changed(b *checkpoint.Batch) {
	for i := range b.Puts {
		s.hub.Changed(b.Puts[i].Record.ID)
	}
	for _, d := range b.Deletes {
		s.hub.Changed(d.ID)
	}
}
