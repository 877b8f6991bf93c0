package gate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
)

// A simStore is the one store as one gate sees it: every call is a point at which the world can
// turn, and can fail as the scheduler says.
type simStore struct {
	*memstore.Store
	sim    *simulation
	member checkpoint.Member
}

// A lateBatch was told failed and is not applied yet.
type lateBatch struct {
	batch    *checkpoint.Batch
	exchange int
}

func (s *simStore) Join(ctx context.Context, proposed checkpoint.Ledger) (checkpoint.Ledger, checkpoint.Member, error) {
	ledger, member, err := s.Store.Join(ctx, proposed)
	s.member = member
	return ledger, member, err
}

// read is a point of a call that reads.
func (s *simStore) read(ctx context.Context) error {
	if a := actorOf(ctx); a != nil && a.stop("read") != goOn {
		return errInjected
	}
	return nil
}

func (s *simStore) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Record, error) {
	if err := s.read(ctx); err != nil {
		return checkpoint.Record{}, err
	}
	return s.Store.Load(ctx, id)
}

func (s *simStore) Find(ctx context.Context, start checkpoint.Hash) (checkpoint.Record, error) {
	if err := s.read(ctx); err != nil {
		return checkpoint.Record{}, err
	}
	return s.Store.Find(ctx, start)
}

func (s *simStore) Rows(ctx context.Context, id checkpoint.ID, from string, limit int) ([]checkpoint.Row, error) {
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	return s.Store.Rows(ctx, id, from, limit)
}

func (s *simStore) List(ctx context.Context, q checkpoint.Query) (checkpoint.Page, error) {
	if err := s.read(ctx); err != nil {
		return checkpoint.Page{}, err
	}
	return s.Store.List(ctx, q)
}

func (s *simStore) Usage(ctx context.Context, scope checkpoint.Hash) (checkpoint.Usage, error) {
	if err := s.read(ctx); err != nil {
		return checkpoint.Usage{}, err
	}
	return s.Store.Usage(ctx, scope)
}

func (s *simStore) Commit(ctx context.Context, b *checkpoint.Batch) error {
	a := actorOf(ctx)
	if a == nil {
		return s.sim.apply(0, b)
	}
	switch a.stop("commit") {
	case failBefore:
		return errInjected
	case failAfter:
		_ = s.sim.apply(a.number, b) // told or not, it is what it is
		return errInjected
	case hangBefore:
		a.stop("hanging")
		return context.DeadlineExceeded
	case hangAfter:
		_ = s.sim.apply(a.number, b)
		a.stop("hanging")
		return context.DeadlineExceeded
	case failLate:
		s.sim.late = append(s.sim.late, lateBatch{b, a.number})
		return errInjected
	}
	err := s.sim.apply(a.number, b)
	if err == nil {
		a.stop("committed")
	}
	return err
}

// apply is a commit of the store, in the history.
func (s *simulation) apply(exchange int, b *checkpoint.Batch) error {
	if err := s.memory.Commit(context.Background(), b); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, data := range b.Audit {
		leaks.bytes(data)
		entry, err := checkpoint.DecodeEntry(data)
		if err != nil {
			return fmt.Errorf("audit entry of a batch: %w", err)
		}
		s.history.commits = append(s.history.commits, commit{s.history.next(), exchange, *entry})
	}
	return nil
}

// landLate applies so many of the batches that were told failed, the oldest first.
func (s *simulation) landLate(n int) {
	for _, l := range s.late[:n] {
		_ = s.apply(l.exchange, l.batch) // a conflict where somebody else was first
	}
	s.late = s.late[n:]
}

// A simMoment is how far the clock goes in one turn.
func (s *simulation) moment() time.Duration {
	switch s.rand.IntN(12) {
	case 0:
		return 11 * time.Minute
	case 1:
		return 45 * time.Minute
	case 2, 3:
		return -time.Duration(s.rand.IntN(600)) * time.Second
	default:
		return time.Duration(1+s.rand.IntN(120)) * time.Second
	}
}
