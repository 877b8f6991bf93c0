package gate_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing/synctest"

	"github.com/parley-go/parley/gate"
)

// An actor is a request on its way. It stops at every point at which the world can turn, until the
// scheduler lets it go on.
type actor struct {
	sim    *simulation
	gate   *simGate
	number int       // of its exchange; 0: it closes its gate
	x      *exchange // nil: it closes its gate
	cancel context.CancelFunc
	wake   chan order

	// What follows is guarded by the simulation's mutex.
	parked string // where it stands; empty: it goes on, or waits inside the gate
	killed bool   // its process died
	done   bool
}

// An order is what the scheduler lets an actor do at the point where it stands.
type order int

const (
	goOn       order = iota
	failBefore       // the call of the store fails
	failAfter        // the call is carried out, and fails
	hangBefore       // nothing is carried out until the context ends
	hangAfter        // the call is carried out, and does not return until the context ends
	failLate         // the call fails, and is carried out later
	die              // the process dies here
)

type actorKey struct{}

func actorOf(ctx context.Context) *actor {
	a, _ := ctx.Value(actorKey{}).(*actor)
	return a
}

// act begins a request; do is the request itself, and its outcome is recorded unless the process
// dies.
func (s *simulation) act(g *simGate, x *exchange, do func(ctx context.Context) (gate.Outcome, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	a := &actor{sim: s, gate: g, x: x, cancel: cancel, wake: make(chan order)}
	s.mu.Lock()
	if x != nil {
		x.number = len(s.history.exchanges) + 1
		x.begin, x.gate = s.history.next(), g.number
		s.history.exchanges = append(s.history.exchanges, x)
		a.number = x.number
	}
	s.actors = append(s.actors, a)
	s.mu.Unlock()
	go func() {
		defer func() {
			cancel()
			s.mu.Lock()
			defer s.mu.Unlock()
			a.done = true
		}()
		outcome, err := do(context.WithValue(ctx, actorKey{}, a))
		s.mu.Lock()
		defer s.mu.Unlock()
		if x != nil && !a.killed {
			x.end = s.history.next()
			s.record(x, outcome, err)
		}
	}()
	synctest.Wait()
}

// record keeps what came of a request.
func (s *simulation) record(x *exchange, outcome gate.Outcome, err error) {
	leaks.text(err)
	x.interaction, x.result = outcome.Interaction, string(outcome.Result)
	if p := outcome.Prompt; p != nil {
		if s.aliases[p.Token] == "" {
			leaks.outcome(outcome)
			s.aliases[p.Token] = fmt.Sprint("t", len(s.aliases)+1)
		}
		x.prompt = &promptSeen{p.Interaction, p.Round, s.alias(p.Token), string(p.Arguments), p.Expires}
		s.works[x.work].saw(p, x)
	}
	var e *gate.Error
	switch {
	case errors.As(err, &e):
		x.code, x.ended, x.stillOpen, x.interaction = e.Code, e.Ended, e.StillOpen, e.Interaction
	case err != nil:
		x.code = "given up" // the caller's own context
	}
}

// stop is called by an actor at a point at which the world can turn. It does not return where the
// process dies.
func (a *actor) stop(point string) order {
	a.sim.mu.Lock()
	killed := a.killed
	a.parked = point
	a.sim.mu.Unlock()
	o := die
	if !killed {
		o = <-a.wake
	}
	if o == die {
		runtime.Goexit()
	}
	return o
}

// look returns how many actors there are, and those that stand at a point.
func (s *simulation) look() (running int, parked []*actor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actors = slices.DeleteFunc(s.actors, func(a *actor) bool { return a.done })
	for _, a := range s.actors {
		if a.parked != "" {
			parked = append(parked, a)
		}
	}
	return len(s.actors), parked
}

// goOn lets an actor go on to its next point, with or without a fault.
func (s *simulation) goOn(a *actor) {
	o := goOn
	if s.rand.Float64() < s.profile.faults {
		switch a.parked {
		case "commit":
			o = one(s, failBefore, failAfter, failAfter, hangBefore, hangAfter, failLate)
		case "read", "authorize":
			o = failBefore
		}
	}
	if o != goOn {
		s.turned(turn{what: "fault", gate: a.gate.number, exchange: a.number})
	}
	s.send(a, o)
}

func (s *simulation) send(a *actor, o order) {
	s.mu.Lock()
	a.parked = ""
	s.mu.Unlock()
	a.wake <- o
	synctest.Wait()
}

// giveUp ends the contexts of the requests that wait inside a gate, one after the other: of two that
// end at once the runtime would choose which is the first.
func (s *simulation) giveUp() {
	for _, a := range slices.Clone(s.actors) {
		if a.parked == "" {
			a.cancel()
			synctest.Wait()
		}
	}
}

// kill ends an actor as the death of its process does: where it stands, nothing more happens.
func (s *simulation) kill(a *actor) {
	s.mu.Lock()
	a.killed = true
	parked := a.parked != ""
	s.mu.Unlock()
	a.cancel()
	if parked {
		s.send(a, die)
	}
	synctest.Wait()
}
