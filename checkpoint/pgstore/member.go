package pgstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-go/parley/checkpoint"
)

var (
	_ checkpoint.Member = (*member)(nil)
	_ checkpoint.Lapser = (*member)(nil)
)

// member is one membership. It is alive as long as its process is.
type member struct {
	store  *Store
	owner  string
	lapsed <-chan struct{} // nil: it owns no claims
}

// Join implements [checkpoint.Store]. A store that was opened to be read has the ledger that is
// stored; where there is none, it returns checkpoint.ErrReadOnly.
func (s *Store) Join(ctx context.Context, proposed checkpoint.Ledger) (checkpoint.Ledger, checkpoint.Member, error) {
	if err := s.ready(ctx); err != nil {
		return checkpoint.Ledger{}, nil, fmt.Errorf("join store: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	ledger, err := s.joinLedger(bounded, proposed)
	if err != nil {
		return checkpoint.Ledger{}, nil, fmt.Errorf("join store: %w", explain(ctx, err))
	}
	m, err := s.newMember(bounded)
	if err != nil {
		return checkpoint.Ledger{}, nil, fmt.Errorf("join store: %w", explain(ctx, err))
	}
	return ledger, m, nil
}

func (s *Store) joinLedger(ctx context.Context, proposed checkpoint.Ledger) (checkpoint.Ledger, error) {
	stored, err := s.ledger(ctx)
	if !errors.Is(err, checkpoint.ErrNotFound) {
		return stored, err
	}
	if s.opts.ReadOnly {
		return checkpoint.Ledger{}, fmt.Errorf("nobody joined it before: %w", checkpoint.ErrReadOnly)
	}
	// Of several that are first at once one is; all read what it wrote.
	if err := s.writeOne(ctx, nil, s.sql.join, proposed.ID[:], append([]byte{}, proposed.Meta...)); err != nil {
		return checkpoint.Ledger{}, err
	}
	return s.ledger(ctx)
}

func (s *Store) ledger(ctx context.Context) (ledger checkpoint.Ledger, err error) {
	err = s.read(ctx, func(ctx context.Context, pool *pgxpool.Pool) error {
		var id []byte
		var floor int64
		if err := pool.QueryRow(ctx, s.sql.ledger).Scan(&id, &ledger.Meta, &floor); err != nil {
			return err
		}
		if copy(ledger.ID[:], id) != len(id) {
			return &ServerError{Broken, fmt.Errorf("the ledger's id is %x", id)}
		}
		s.raiseFloor(floor)
		return nil
	})
	return ledger, err
}

func (s *Store) newMember(ctx context.Context) (*member, error) {
	if s.opts.ReadOnly {
		return &member{store: s, owner: "reader " + rand.Text()}, nil
	}
	s.mu.Lock()
	p := s.process
	s.joined++
	n := s.joined
	s.mu.Unlock()
	if p == nil {
		return nil, &ServerError{Unreachable, errors.New("no sign of life got through yet")}
	}
	m := &member{store: s, owner: fmt.Sprintf("%s.%d", p.id, n), lapsed: p.lapsed}
	err := s.writeOne(ctx, nil, s.sql.joinMember, []byte(m.owner), p.id)
	if refused(err) {
		err = &ServerError{Unreachable, errors.New("no sign of life got through in time")}
	}
	return m, err
}

// Owner implements [checkpoint.Member].
func (m *member) Owner() string { return m.owner }

// Alive implements [checkpoint.Member]: the server's clock decides.
func (m *member) Alive(ctx context.Context, owner string) (bool, error) {
	if m.store.hasLeft(owner) {
		return false, ctx.Err()
	}
	err := m.store.ask(ctx, m.store.sql.owners, []byte(owner), func(pgx.Row) error { return nil })
	switch {
	case errors.Is(err, checkpoint.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("ask for owner %q: %w", owner, err)
	}
	return true, nil
}

// Now implements [checkpoint.Member]: it is the server's time, and the latest that this process saw
// committed is its floor. What was loaded was seen.
func (m *member) Now(time.Time) time.Time { return m.store.now() }

// Lapsed implements [checkpoint.Lapser].
func (m *member) Lapsed() <-chan struct{} { return m.lapsed }

// Leave implements [checkpoint.Member]. Where the server cannot be told now, its claims are dead
// for other processes when it was, or when this process ends.
func (m *member) Leave() error {
	s := m.store
	s.mu.Lock()
	if s.closed || m.lapsed == nil {
		s.mu.Unlock()
		return nil
	}
	s.left[m.owner] = true
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
	defer cancel()
	if err := s.writeLeft(ctx); err != nil {
		return fmt.Errorf("leave store: %w", explain(ctx, err))
	}
	return nil
}

// hasLeft reports whether the owner left here, and the server may not know yet.
func (s *Store) hasLeft(owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left[owner]
}
