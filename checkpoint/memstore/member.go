package memstore

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

var _ checkpoint.Member = (*member)(nil)

// member is one membership. Its claims hold until it leaves: a store in memory has no other
// process.
type member struct {
	store *Store
	owner string
}

// Join implements [checkpoint.Store].
func (s *Store) Join(ctx context.Context, proposed checkpoint.Ledger) (checkpoint.Ledger, checkpoint.Member, error) {
	if err := ctx.Err(); err != nil {
		return checkpoint.Ledger{}, nil, err
	}
	m := &member{store: s, owner: rand.Text()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger == nil {
		proposed.Meta = slices.Clone(proposed.Meta)
		s.ledger = &proposed
	}
	s.members[m.owner] = true
	return checkpoint.Ledger{ID: s.ledger.ID, Meta: slices.Clone(s.ledger.Meta)}, m, nil
}

// Owner implements [checkpoint.Member].
func (m *member) Owner() string { return m.owner }

// Alive implements [checkpoint.Member].
func (m *member) Alive(ctx context.Context, owner string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	m.store.mu.RLock()
	defer m.store.mu.RUnlock()
	return m.store.members[owner], nil
}

// Now implements [checkpoint.Member].
func (m *member) Now(local time.Time) time.Time {
	m.store.mu.RLock()
	defer m.store.mu.RUnlock()
	if m.store.floor.After(local) {
		return m.store.floor
	}
	return local
}

// Leave implements [checkpoint.Member].
func (m *member) Leave() error {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	delete(m.store.members, m.owner)
	return nil
}
