package gate_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// A counted store counts the looks at what is used.
type counted struct {
	checkpoint.Store
	looks atomic.Int32
}

func (s *counted) Usage(ctx context.Context, scope checkpoint.Hash) (checkpoint.Usage, error) {
	s.looks.Add(1)
	return s.Store.Usage(ctx, scope)
}

// R33: far from the limits few requests look at what is used, and near them each does, so that the
// last room is given once, however many ask for it at once.
func TestUsageIsReadNearTheLimits(t *testing.T) {
	const limit = 400
	var effects counter
	clock := newClock()
	store := &counted{Store: newMem()}
	g := open(t, store, gate.Options{
		Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now, Capacity: gate.Capacity{Open: gate.Unlimited, OpenPerScope: limit},
	})
	for range limit / 4 {
		mustAsk(t, g, call("deploy", `{"service":"api"}`))
	}
	if n := store.looks.Load(); n > 4 {
		t.Errorf("%d looks for a hundred calls", n)
	}
	var asked atomic.Int32
	var together sync.WaitGroup
	for range 8 {
		together.Go(func() {
			for range limit / 8 {
				_, err := g.Invoke(context.Background(), call("deploy", `{"service":"api"}`))
				if err == nil {
					asked.Add(1)
				} else if !errors.Is(err, gate.ErrBusy) {
					t.Error(err)
				}
			}
		})
	}
	together.Wait()
	for { // one that is on its way may have stood in the way of another
		if _, err := g.Invoke(t.Context(), call("deploy", `{"service":"api"}`)); err != nil {
			wantCode(t, "there is no room", err, gate.ErrBusy)
			break
		}
		asked.Add(1)
	}
	if n := asked.Load(); n != limit*3/4 {
		t.Errorf("%d calls found room, want %d", n, limit*3/4)
	}
}

// R33: what another process stores is seen after a moment.
func TestUsageOfOthers(t *testing.T) {
	const limit = 40
	var effects counter
	clock := newClock()
	store := newMem()
	opts := gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now, Capacity: gate.Capacity{OpenPerScope: limit}}
	g, other := open(t, store, opts), open(t, store, opts)
	mustAsk(t, g, call("deploy", `{"service":"api"}`))
	for range limit - 1 {
		mustAsk(t, other, call("deploy", `{"service":"api"}`))
	}
	clock.add(time.Second + time.Millisecond)
	mustFail(t, g, call("deploy", `{"service":"api"}`), gate.ErrBusy)
}
