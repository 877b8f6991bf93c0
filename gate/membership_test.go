package gate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A remote store can lose touch with its members, as one on another machine does.
type remote struct {
	*memstore.Store
	mu      sync.Mutex
	members []*remoteMember
	away    error // why nobody can join
	ledger  *checkpoint.Ledger
}

type remoteMember struct {
	checkpoint.Member
	lapsed chan struct{}
}

func (m *remoteMember) Lapsed() <-chan struct{} { return m.lapsed }

func (s *remote) Join(ctx context.Context, proposed checkpoint.Ledger) (checkpoint.Ledger, checkpoint.Member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return checkpoint.Ledger{}, nil, s.away
	}
	ledger, member, err := s.Store.Join(ctx, proposed)
	if s.ledger != nil {
		ledger = *s.ledger
	}
	m := &remoteMember{member, make(chan struct{})}
	s.members = append(s.members, m)
	return ledger, m, err
}

// lapse ends the latest membership.
func (s *remote) lapse(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[len(s.members)-1]
	if err := m.Leave(); err != nil {
		t.Fatal(err)
	}
	close(m.lapsed)
}

func (s *remote) set(away error, ledger *checkpoint.Ledger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away, s.ledger = away, ledger
}

// R23: a handler whose claim is lost has its context cancelled, and what it returns is not recorded;
// the gate goes on as another owner, and the same answer is a recovery.
func TestLapsed(t *testing.T) {
	for name, after := range map[string]func(ctx context.Context) error{
		"it stops":    func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"it finishes": func(ctx context.Context) error { <-ctx.Done(); return nil },
		"it asks":     func(ctx context.Context) error { <-ctx.Done(); return choose("c", "d") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &remote{Store: memstore.New()}
				running := make(chan struct{})
				tool := raw("tool", func(ctx context.Context) (any, error) {
					if r, _ := interrupt.ResumeFrom(ctx); r.Recovery {
						return "recovered", nil
					}
					if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
						return nil, err
					}
					close(running)
					return nil, after(ctx)
				}, &gate.ToolOptions{Replay: gate.Recover})
				g := open(t, store, gate.Options{Tools: []*gate.Tool{tool}})
				other := open(t, store, gate.Options{Tools: []*gate.Tool{tool}})
				c := call("tool", `{}`)
				p := mustAsk(t, g, c)
				first := with(c, p, `{"selectionIdx":0}`)
				store.members[0], store.members[1] = store.members[1], store.members[0] // so that g's is the latest
				end := invoke(g, first)
				<-running
				mustFail(t, other, first, gate.ErrBusy)
				store.lapse(t)
				wantCode(t, "the run that lost its claim", (<-end).err, gate.ErrOutcomeUnknown)
				if in := recorded(t, store.Store, p.Interaction); in.Status != checkpoint.Running {
					t.Errorf("recorded %v", in.Status)
				}
				mustFinish(t, g, first, `"recovered"`)
				if n := len(store.members); n != 3 {
					t.Errorf("joined %d times, want once more", n)
				}
			})
		})
	}
}

// A gate that cannot join anew is unavailable until it can; it does not go on in another ledger.
func TestLapsedAndAway(t *testing.T) {
	var effects counter
	store := &remote{Store: memstore.New()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	store.lapse(t)
	store.set(errors.New("not reached"), nil)
	mustFail(t, g, with(c, p, allow), gate.ErrUnavailable)
	store.set(nil, &checkpoint.Ledger{ID: [16]byte{9}})
	mustFail(t, g, with(c, p, allow), gate.ErrUnavailable)
	effects.want(t, 0)
	store.set(nil, nil)
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
	effects.want(t, 1)
}
