package boltstore

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

var _ checkpoint.Member = (*member)(nil)

// member is one membership of one boot. Since the file has one process at a time, an owner of
// another boot is dead.
type member struct {
	store *Store
	owner string
}

// Join implements [checkpoint.Store]. A store that was opened to be read has the ledger that is
// stored; where there is none, it returns checkpoint.ErrReadOnly.
func (s *Store) Join(ctx context.Context, proposed checkpoint.Ledger) (checkpoint.Ledger, checkpoint.Member, error) {
	ledger, err := s.joinLedger(ctx, proposed)
	if err != nil {
		return checkpoint.Ledger{}, nil, fmt.Errorf("join store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.serving(); err != nil {
		return checkpoint.Ledger{}, nil, fmt.Errorf("join store: %w", err)
	}
	s.joined++
	m := &member{store: s, owner: fmt.Sprintf("%s.%d", s.boot, s.joined)}
	s.members[m.owner] = true
	return ledger, m, nil
}

func (s *Store) joinLedger(ctx context.Context, proposed checkpoint.Ledger) (checkpoint.Ledger, error) {
	if err := s.ready(ctx); err != nil {
		return checkpoint.Ledger{}, err
	}
	var stored *checkpoint.Ledger
	if err := s.view(func(t *tables) (err error) { stored, err = t.ledger(); return err }); err != nil {
		return checkpoint.Ledger{}, err
	}
	if stored != nil {
		return *stored, nil
	}
	if s.readOnly {
		return checkpoint.Ledger{}, fmt.Errorf("nobody joined it before: %w", checkpoint.ErrReadOnly)
	}
	mine := &checkpoint.Ledger{ID: proposed.ID, Meta: bytes.Clone(proposed.Meta)}
	if err := s.submit(ctx, &request{ledger: mine}); err != nil {
		return checkpoint.Ledger{}, err
	}
	return *mine, nil
}

// Owner implements [checkpoint.Member].
func (m *member) Owner() string { return m.owner }

// Alive implements [checkpoint.Member].
func (m *member) Alive(ctx context.Context, owner string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	if err := m.store.serving(); err != nil {
		return false, fmt.Errorf("ask for owner %q: %w", owner, err)
	}
	return m.store.members[owner], nil
}

// alive returns checkpoint.ErrLapsed where the owner of a write has left. A write without an owner
// is nobody's claim.
func (s *Store) alive(owner string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lapsed(owner)
}

// lapsed is alive with mu held.
func (s *Store) lapsed(owner string) error {
	if owner == "" || s.members[owner] {
		return nil
	}
	return fmt.Errorf("commit for owner %q: %w", owner, checkpoint.ErrLapsed)
}

// Now implements [checkpoint.Member].
func (m *member) Now(local time.Time) time.Time {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
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
