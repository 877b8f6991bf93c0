package gate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A membership is the gate's in its store. A store that lost touch with it ends it (R23): then the
// contexts of what runs under its claims are cancelled, and the next request joins anew, as another
// owner. A request stays with the owner under which it began.
type membership struct {
	store   checkpoint.Store
	ledger  checkpoint.Ledger
	joining chan struct{} // holds one token while somebody joins anew

	mu     sync.RWMutex // guards what follows
	member checkpoint.Member
	left   bool
}

func newMembership(store checkpoint.Store, ledger checkpoint.Ledger, member checkpoint.Member) *membership {
	return &membership{store: store, ledger: ledger, joining: make(chan struct{}, 1), member: member}
}

func (m *membership) current() checkpoint.Member {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.member
}

// Owner is the present owner of new claims.
func (m *membership) Owner() string { return m.current().Owner() }

func (m *membership) Alive(ctx context.Context, owner string) (bool, error) {
	return m.current().Alive(ctx, owner)
}

func (m *membership) Now(local time.Time) time.Time { return m.current().Now(local) }

func (m *membership) Leave() error {
	m.mu.Lock()
	m.left = true
	member := m.member
	m.mu.Unlock()
	return member.Leave()
}

// lapsed is closed when what the owner claimed is lost; nil: that cannot happen.
func (m *membership) lapsed(owner string) <-chan struct{} {
	member := m.current()
	if member.Owner() != owner {
		gone := make(chan struct{})
		close(gone)
		return gone
	}
	if lapser, ok := member.(checkpoint.Lapser); ok {
		return lapser.Lapsed()
	}
	return nil
}

// lost reports whether what the owner claimed is lost, as far as the store has told.
func (m *membership) lost(owner string) bool {
	select {
	case <-m.lapsed(owner): // never, where it is nil
		return true
	default:
		return false
	}
}

// renew joins anew where the membership lapsed.
func (m *membership) renew(ctx context.Context) error {
	if !m.over() {
		return nil
	}
	select {
	case m.joining <- struct{}{}:
		defer func() { <-m.joining }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !m.over() { // somebody else did
		return nil
	}
	ledger, member, err := m.store.Join(ctx, m.ledger)
	if err != nil {
		return err
	}
	m.mu.Lock()
	left := m.left
	if !left && ledger.ID == m.ledger.ID {
		m.member = member
	}
	m.mu.Unlock()
	switch {
	case left:
		_ = member.Leave() // the gate has closed meanwhile, and told its own end
		return closing()
	case ledger.ID != m.ledger.ID:
		_ = member.Leave() // what is told is the worse trouble
		return fmt.Errorf("the store holds ledger %x now, and this gate is of %x", ledger.ID, m.ledger.ID)
	}
	return nil
}

func (m *membership) over() bool {
	lapser, ok := m.current().(checkpoint.Lapser)
	if !ok {
		return false
	}
	select {
	case <-lapser.Lapsed():
		return true
	default:
		return false
	}
}

// guard calls lose when what the owner claimed is lost, until stop.
func (m *membership) guard(owner string, lose func()) (stop func()) {
	lapsed := m.lapsed(owner)
	if lapsed == nil {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-lapsed:
			lose()
		case <-over:
		}
	}()
	return func() { close(over); <-ended }
}
