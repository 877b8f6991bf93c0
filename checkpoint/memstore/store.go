package memstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/watch"
)

var (
	_ checkpoint.Store   = (*Store)(nil)
	_ checkpoint.Watcher = (*Store)(nil)
)

// A Store holds records in memory. It is safe for concurrent use, needs no closing, and never
// fails. The zero Store is not usable: make one with [New].
type Store struct {
	hub watch.Hub

	mu      sync.RWMutex
	index   index
	ledger  *checkpoint.Ledger // nil before the first Join
	members map[string]bool    // the owners that are alive
	floor   time.Time          // the latest time that was committed
	audit   []checkpoint.AuditEntry
	seq     uint64 // of the last audit entry
}

// New returns an empty store.
func New() *Store {
	return &Store{index: newIndex(), members: make(map[string]bool)}
}

// Load implements [checkpoint.Store].
func (s *Store) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Record, error) {
	if err := ctx.Err(); err != nil {
		return checkpoint.Record{}, err
	}
	s.mu.RLock()
	r := s.index.records[id]
	s.mu.RUnlock()
	if r == nil {
		return checkpoint.Record{}, fmt.Errorf("load record %s: %w", id, checkpoint.ErrNotFound)
	}
	return copyOut(r), nil
}

// Find implements [checkpoint.Store].
func (s *Store) Find(ctx context.Context, start checkpoint.Hash) (checkpoint.Record, error) {
	if err := ctx.Err(); err != nil {
		return checkpoint.Record{}, err
	}
	s.mu.RLock()
	r := s.index.starts[start]
	s.mu.RUnlock()
	if r == nil {
		return checkpoint.Record{}, fmt.Errorf("find record by start hash: %w", checkpoint.ErrNotFound)
	}
	return copyOut(r), nil
}

// Commit implements [checkpoint.Store]. Where it returns an error it has written nothing.
func (s *Store) Commit(ctx context.Context, b *checkpoint.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.Validate(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	records := make([]*checkpoint.Record, len(b.Puts))
	for i, p := range b.Puts {
		r := copyOut(&p.Record)
		r.Due = r.Due.UTC()
		records[i] = &r
	}
	rows := make([]*checkpoint.Row, len(b.Rows))
	for i, p := range b.Rows {
		row := p.Row
		row.Data = bytes.Clone(row.Data)
		rows[i] = &row
	}
	if err := s.apply(b, records, rows); err != nil {
		return err
	}
	for i := range b.Puts {
		s.hub.Changed(b.Puts[i].Record.ID)
	}
	for _, d := range b.Deletes {
		s.hub.Changed(d.ID)
	}
	return nil
}

func (s *Store) apply(b *checkpoint.Batch, records []*checkpoint.Record, rows []*checkpoint.Row) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.Owner != "" && !s.members[b.Owner] {
		return fmt.Errorf("commit for owner %q: %w", b.Owner, checkpoint.ErrLapsed)
	}
	if err := s.index.check(b); err != nil {
		return err
	}
	if b.Meta != nil && s.ledger == nil {
		return fmt.Errorf("commit: %w: it has a ledger's meta, and nobody has joined", checkpoint.ErrInvalidBatch)
	}
	// Deletes come first, so that a start hash they free can be taken by a put beside them.
	for _, d := range b.Deletes {
		old := s.index.records[d.ID]
		s.index.dropRows(old.ID, old.Scope)
		s.index.remove(old)
	}
	for _, r := range records {
		s.index.remove(s.index.records[r.ID])
	}
	for _, r := range records {
		s.index.add(r)
	}
	for _, row := range rows {
		s.index.setRow(row)
	}
	s.appendAudit(b)
	if b.Meta != nil {
		s.ledger.Meta = bytes.Clone(b.Meta)
	}
	if b.Time.After(s.floor) {
		s.floor = b.Time
	}
	return nil
}

// Watch implements [checkpoint.Watcher].
func (s *Store) Watch(id checkpoint.ID) (<-chan struct{}, func()) { return s.hub.Watch(id) }

// copyOut copies a record with its data. A stored record is never changed, only replaced, so it can
// be copied without the mutex.
func copyOut(r *checkpoint.Record) checkpoint.Record {
	out := *r
	out.Data = slices.Clone(r.Data)
	return out
}
