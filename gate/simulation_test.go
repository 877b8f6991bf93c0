package gate_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// A deterministic simulation: two or three gates with several faces on one store, many requests at
// once, and a scheduler that decides from one seed which of them goes on next, at every call of the
// store, of Authorize, and at every step of a handler. Only one of them goes on at a time, so a seed
// is a schedule: the same one each time. What came of it is a history, which the checker judges.
//
// A failure names its seed; go test ./gate -run TestSimulation -seed N -v repeats it alone and tells
// its history.

var (
	simulatedSeed = flag.Uint64("seed", 0, "simulate this seed alone, and print its history")
	simulatedFrom = flag.Uint64("from", 1, "the first seed to simulate")
	simulations   = flag.Int("schedules", 0, "how many seeds to simulate; 0: as many as are in order for an ordinary run")
	raceDetector  bool // set in race_test.go
)

func TestSimulation(t *testing.T) {
	if *simulatedSeed != 0 {
		h := simulate(t, *simulatedSeed)
		t.Logf("seed %d:\n%s", *simulatedSeed, h)
		return
	}
	n := uint64(*simulations)
	switch {
	case n > 0:
	case raceDetector:
		n = 150
	case testing.Short():
		n = 300
	default:
		n = 2000
	}
	const shards = 4
	for shard := range uint64(shards) {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			for i := shard; i < n && !t.Failed(); i += shards {
				simulate(t, *simulatedFrom+i)
			}
		})
	}
}

// The same seed is the same schedule.
func TestSameSeedSameHistory(t *testing.T) {
	for seed := range uint64(30) {
		first, second := simulate(t, 1+seed).String(), simulate(t, 1+seed).String()
		if first != second {
			t.Fatalf("seed %d has two histories:\n%s\n%s", 1+seed, first, second)
		}
	}
}

// simulate plays a seed and checks its history.
func simulate(t *testing.T, seed uint64) (h *history) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, seed)
		s.play()
		s.settle()
		h = s.end()
		if violations := h.check(); len(violations) > 0 {
			t.Errorf("seed %d (%+v):\n%s", seed, s.profile, h)
			for _, v := range violations {
				t.Errorf("seed %d: %s", seed, v)
			}
		}
	})
	return h
}

// A profile is what kind of world a seed has.
type profile struct {
	gates, exchanges, atOnce int
	faults                   float64 // of a call to the store
	turns                    int     // of the world, per hundred moves
	gatesGo, keysChange      bool
	retention                time.Duration
	sealed, limited          bool
	readOnly                 bool // there is another gate that only reads
}

func newProfile(r *rand.Rand) profile {
	return profile{
		gates: 2 + r.IntN(2), exchanges: 8 + r.IntN(20), atOnce: 1 + r.IntN(5),
		faults: []float64{0, 0, 0.04, 0.15}[r.IntN(4)], turns: []int{0, 8, 20}[r.IntN(3)], gatesGo: r.IntN(2) == 0,
		keysChange: r.IntN(3) == 0, retention: []time.Duration{20 * time.Minute, 1000 * time.Hour}[r.IntN(2)],
		sealed: r.IntN(5) == 0, limited: r.IntN(6) == 0, readOnly: r.IntN(5) == 0,
	}
}

// A simulation is the world of one seed.
type simulation struct {
	*testing.T
	profile profile
	rand    *rand.Rand
	random  io.Reader // of the gates
	clock   *clock
	memory  *memstore.Store
	tools   []*gate.Tool
	keys    []string // the ring: the first mints
	newest  int      // key there ever was
	gates   []*simGate
	opened  int
	works   []*errand
	said    []said // every call that can be made again
	late    []lateBatch
	aliases map[gate.Token]string

	mu      sync.Mutex // guards what follows
	history *history
	actors  []*actor
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{
		T: t, rand: rand.New(rand.NewPCG(seed, 1)), random: rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}),
		aliases: map[gate.Token]string{}, clock: newClock(), memory: memstore.New(), keys: []string{"key 1"}, newest: 1,
		history: &history{tools: map[string]gate.ToolOptions{}, readOnly: map[int]bool{}},
	}
	s.profile = newProfile(s.rand)
	s.history.limited = s.profile.limited
	s.turned(turn{what: "clock"})
	s.tools = s.makeTools()
	for slot := range s.profile.gates {
		s.gates = append(s.gates, s.open(slot, s.profile.readOnly && slot == 0))
	}
	return s
}

// play makes moves until every request that is to be made is made and has come to its end.
func (s *simulation) play() {
	for moves := 0; !s.Failed(); moves++ {
		synctest.Wait()
		if moves > 10_000 {
			s.Fatalf("it comes to no end:\n%s", s.history)
		}
		running, parked := s.look()
		more := len(s.history.exchanges) < s.profile.exchanges
		if !more && running == 0 {
			return
		}
		switch roll := s.rand.IntN(100); {
		case more && running < s.profile.atOnce && (running == 0 || roll < 30):
			s.request()
		case roll > 99-s.profile.turns:
			s.turn()
		case len(parked) > 0:
			s.goOn(parked[s.rand.IntN(len(parked))])
		case more && s.chance(2):
			s.request() // somebody waits inside a gate for somebody else
		case s.chance(3):
			time.Sleep(time.Second) // who waits looks again
		default:
			s.giveUp()
		}
	}
}

// settle lets the world come to rest, and then looks once more at all that anybody was shown, at a
// gate that has no memory.
func (s *simulation) settle() {
	s.profile.faults, s.profile.turns = 0, 0
	s.landLate(len(s.late))
	for slot, g := range s.gates {
		s.drop(g)
		s.gates[slot] = s.open(slot, false)
	}
	for _, w := range s.works {
		for _, p := range w.seen {
			s.lookAgain(w, p)
			for running, parked := s.look(); running > 0; running, parked = s.look() {
				if len(parked) == 0 {
					s.Fatal("nothing goes on")
				}
				s.goOn(parked[0])
				synctest.Wait()
			}
		}
	}
}

// end reads the audit trail and closes what is left; what that does is no part of the history.
func (s *simulation) end() *history {
	s.readAudit(s.gates[0].gate)
	h := s.history
	s.history = &history{}
	for _, g := range s.gates {
		if err := g.gate.Close(context.Background()); err != nil {
			s.Errorf("close: %v", err)
		}
	}
	return h
}

func (s *simulation) readAudit(g *gate.Gate) {
	for after := uint64(0); ; {
		page, err := g.Audit(context.Background(), gate.AuditQuery{After: after, Limit: 1000})
		if err != nil {
			s.Fatalf("audit: %v", err)
		}
		if len(page.Entries) == 0 {
			return
		}
		for _, e := range page.Entries {
			if e.Problem != nil {
				s.Errorf("audit entry %d: %v", e.Seq, e.Problem)
			}
			s.history.audit = append(s.history.audit, e.Entry)
		}
		after = page.Next
	}
}

func (s *simulation) turned(t turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.at, t.now, t.keys = s.history.next(), s.clock.Now(), append([]string(nil), s.keys...)
	s.history.turns = append(s.history.turns, t)
}

// chance is one in n.
func (s *simulation) chance(n int) bool { return s.rand.IntN(n) == 0 }

// one draws one of them.
func one[T any](s *simulation, of ...T) T { return of[s.rand.IntN(len(of))] }
