package gate_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// A simGate is one gate of a simulation, with its faces by name; that without one is its own.
type simGate struct {
	gate    *gate.Gate
	faces   map[string]simFace
	store   *simStore
	number  int // over all gates there were
	slot    int
	closing bool
	left    bool
}

// A simFace is a gate or one of its faces.
type simFace interface {
	host
	Wait(ctx context.Context, call gate.Call) (gate.Outcome, error)
	Inspect(ctx context.Context, scope, startID string) (gate.Summary, error)
	Decisions(ctx context.Context, q gate.DecisionQuery) (gate.DecisionPage, error)
	Revoke(ctx context.Context, scope string, id checkpoint.ID) error
}

var simFaces = []string{"", "mcp", "acp"}

func (s *simulation) open(slot int, readOnly bool) *simGate {
	s.opened++
	g := &simGate{store: &simStore{Store: s.memory, sim: s}, number: s.opened, slot: slot}
	s.history.readOnly[g.number] = readOnly
	opts := &gate.Options{
		Keys: s.ring(), Tools: s.tools, Now: s.clock.Now, Random: s.random,
		Logger: slog.New(slog.NewTextHandler(&leaks, nil)), Retention: s.profile.retention,
		StartRetention: gate.NoExpiry, AuditRetention: gate.NoExpiry, ReadOnly: readOnly, Observer: told{s},
		PollInterval: time.Second,
	}
	if s.profile.sealed {
		opts.DataKeys = [][]byte{dataKey}
	}
	if s.profile.limited {
		opts.Capacity = gate.Capacity{Open: 8, OpenPerScope: 4}
	}
	var err error
	if g.gate, err = gate.Open(context.Background(), g.store, opts); err != nil {
		s.Fatalf("open: %v", err)
	}
	g.faces = map[string]simFace{"": g.gate}
	for _, name := range simFaces[1:] {
		if g.faces[name], err = g.gate.NewFace(name, nil); err != nil {
			s.Fatalf("face: %v", err)
		}
	}
	return g
}

// told is an observer.
type told struct{ sim *simulation }

func (o told) Observe(_ context.Context, e gate.Event) {
	leaks.text(fmt.Sprintf("%+v", e))
	o.sim.mu.Lock()
	defer o.sim.mu.Unlock()
	o.sim.history.told = append(o.sim.history.told, e.Entry)
}

func (s *simulation) ring() [][]byte {
	var ring [][]byte
	for _, name := range s.keys {
		ring = append(ring, bytes.Repeat([]byte(name), 32)[:32])
	}
	return ring
}

// turn lets the world do something.
func (s *simulation) turn() {
	switch roll := s.rand.IntN(100); {
	case roll < 55:
		moment := s.moment()
		if moment > 10*time.Minute {
			s.landLate(len(s.late)) // no store takes that long
		}
		s.clock.add(moment)
		s.turned(turn{what: "clock"})
	case roll < 70:
		if len(s.late) > 0 {
			s.landLate(1)
		}
	case roll < 80 && s.profile.keysChange:
		s.rotate()
	case roll >= 80 && s.profile.gatesGo:
		g := one(s, s.gates...)
		switch {
		case roll < 90:
			s.drop(g)
			s.gates[g.slot] = s.open(g.slot, s.history.readOnly[g.number])
		case roll < 93 && !g.left:
			// It stalls: the store no longer counts it alive, and it does not know.
			s.leave(g)
		case !g.closing:
			s.close(g, roll > 97)
		}
	}
}

// rotate puts a new key first, or takes the oldest one out.
func (s *simulation) rotate() {
	if len(s.keys) == 1 || len(s.keys) < 3 && s.chance(2) {
		s.newest++
		s.keys = slices.Insert(s.keys, 0, fmt.Sprint("key ", s.newest))
	} else {
		s.keys = s.keys[:len(s.keys)-1]
	}
	for _, g := range s.gates {
		if err := g.gate.SetKeys(s.ring()); err != nil {
			s.Fatalf("set keys: %v", err)
		}
	}
	s.turned(turn{what: "keys"})
}

func (s *simulation) leave(g *simGate) {
	if !g.left {
		g.left = true
		s.turned(turn{what: "left", gate: g.number})
		_ = g.store.member.Leave() // that of memstore does not fail
	}
}

// drop lets the process of a gate die.
func (s *simulation) drop(g *simGate) {
	s.leave(g)
	s.mu.Lock()
	actors := slices.Clone(s.actors)
	s.mu.Unlock()
	for _, a := range actors {
		if a.gate == g {
			s.kill(a)
		}
	}
}

// close shuts a gate down beside what is going on, at once or when its requests are done, and has
// another one take its place.
func (s *simulation) close(g *simGate, atOnce bool) {
	g.closing = true
	s.turned(turn{what: "closing", gate: g.number})
	s.gates[g.slot] = s.open(g.slot, s.history.readOnly[g.number])
	s.act(g, nil, func(ctx context.Context) (gate.Outcome, error) {
		if atOnce {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			ctx = ended
		}
		// Where it returns before its requests are done, their claims are given up.
		leaks.text(g.gate.Close(ctx))
		s.mu.Lock()
		left := g.left
		g.left = true
		s.mu.Unlock()
		if !left {
			s.turned(turn{what: "left", gate: g.number})
		}
		return gate.Outcome{}, nil
	})
}
