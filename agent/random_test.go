package agent_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// A property test: random agents with random tools in random nestings are run, answered, restarted
// and crashed as one seed says, and whatever happened, no tool has its effect again outside of what
// it chose (R27), none has it without a person's yes to exactly its arguments, and the run ends.
// What the plan is follows from the seed alone; in which order tools of one turn run is eino's
// choice.
//
// A failure names its seed: go test ./agent -run TestRandomAgents -seed N -v plays it alone and
// tells what was done.

var (
	randomSeed  = flag.Uint64("seed", 0, "play this seed alone, and tell what was done")
	randomFrom  = flag.Uint64("from", 1, "the first seed to play")
	randomPlays = flag.Int("plays", 0, "how many seeds to play; 0: as many as are in order for an ordinary run")
	slowed      bool // by the race detector; set in random_race_test.go
)

const closeTime = time.Minute

func TestRandomAgents(t *testing.T) {
	if *randomSeed != 0 {
		p := playSeed(t, *randomSeed, false)
		t.Logf("seed %d:\n%s", *randomSeed, p)
		p.report()
		return
	}
	n := uint64(*randomPlays)
	switch {
	case n > 0:
	case slowed, testing.Short():
		n = 10
	default:
		n = 40
	}
	for i := range n {
		if p := playSeed(t, *randomFrom+i, false); p.report() {
			return
		}
	}
}

// The test finds what it is for: a disk that loses what it said it had written makes tools run again.
func TestRandomAgentsFindALyingDisk(t *testing.T) {
	for seed := range uint64(200) {
		if p := playSeed(t, 1+seed, true); len(p.violations) > 0 {
			return
		}
	}
	t.Error("commits were lost, and nothing was found")
}

// A playing is what becomes of one seed.
type playing struct {
	testing.TB
	*rand.Rand
	seed      uint64
	forgets   bool // the disk does
	streaming bool
	tools     []*toolPlan
	top       *agentPlan
	disk      *disk
	processes []*process // that are alive
	troubled  bool       // something was broken off, so that not all that was asked for is sure
	stale     bool       // and nobody was told since where the run stands

	run    checkpoint.ID
	open   []agent.Question
	seen   []agent.Question // all there ever were
	tokens map[string]gate.Token
	ended  *agent.Run

	mu         sync.Mutex // guards what follows
	asked      int        // how often a model was
	failed     map[string]bool
	calls      map[string]*toolPlan     // by the id of the call in the plan
	shown      map[string]checkpoint.ID // the interaction in which a call asked
	yes, no    map[string]bool          // by call and round
	effects    map[string]int           // by call
	told       map[string]string        // by call
	disturbed  int                      // how often it was
	rough      bool                     // what is done now is one of those times
	calm       map[string]int           // by call: disturbed when it ran first, -1 where that was such a time
	cancel     func()                   // called when a tool is entered
	violations []string
	log        []string
}

// playSeed plays a seed.
func playSeed(t *testing.T, seed uint64, forgets bool) (p *playing) {
	t.Helper()
	plans := &planner{Rand: rand.New(rand.NewPCG(seed, 0))}
	plans.makeTools()
	p = &playing{
		Rand: rand.New(rand.NewPCG(seed, 1)), seed: seed, forgets: forgets, tools: plans.tools, top: plans.agent(3),
		disk: nil, tokens: map[string]gate.Token{}, failed: map[string]bool{}, calls: map[string]*toolPlan{},
		shown: map[string]checkpoint.ID{}, yes: map[string]bool{}, no: map[string]bool{}, effects: map[string]int{}, told: map[string]string{}, calm: map[string]int{},
	}
	p.streaming = p.chance(40)
	synctest.Test(t, func(t *testing.T) {
		p.TB, p.disk = t, &disk{memory: memstore.New()}
		p.start()
		for range 4 + p.IntN(12) {
			p.step()
		}
		p.settle()
		p.judge()
		for _, proc := range p.processes {
			proc.close()
		}
	})
	p.TB = t
	return p
}

// name is that of the play in a failure.
func (p *playing) name() string { return fmt.Sprintf("seed %d", p.seed) }

func (p *playing) chance(percent int) bool { return p.IntN(100) < percent }

func (p *playing) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

func (p *playing) violated(format string, args ...any) {
	p.note("VIOLATED "+format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.violations = append(p.violations, fmt.Sprintf(format, args...))
}

func (p *playing) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "streaming=%t\n%s", p.streaming, p.top)
	for _, t := range p.tools {
		fmt.Fprintf(&b, "%+v\n", *t)
	}
	return b.String() + strings.Join(p.log, "\n")
}

// report reports the violations, if there are any.
func (p *playing) report() bool {
	p.Helper()
	if len(p.violations) == 0 {
		return false
	}
	p.Errorf("seed %d:\n%s\n\n%s", p.seed, p, strings.Join(p.violations, "\n"))
	return true
}

// settle lets the run go on, with all the answers it needs and nothing in its way, until it ends.
func (p *playing) settle() {
	p.note("settle")
	p.rough = false
	p.restart(p.processes[0])
	for range 100 {
		if p.ended != nil {
			return
		}
		var answers []agent.Answer
		for _, q := range p.open {
			answers = append(answers, p.answerTo(q, "allow"))
		}
		p.goOn(p.processes[0], answers)
	}
	p.violated("the run does not end: open %d", len(p.open))
}

// judge looks at the whole when the run has ended.
func (p *playing) judge() {
	if p.ended == nil {
		return
	}
	asked, effects := p.asked, fmt.Sprint(p.effects)
	p.restart(p.processes[0])
	for range 2 {
		run, err := p.processes[0].agent.Resume(context.Background(), agent.Resume{Scope: "ann", Run: p.run, Facilities: everything}).Run()
		if err != nil || run.Status != p.ended.Status || run.Message != p.ended.Message {
			p.violated("resumed after its end: %+v, %v", run, err)
		}
	}
	if asked != p.asked || effects != fmt.Sprint(p.effects) {
		p.violated("something ran after the end: models %d and %d, effects %s and %v", asked, p.asked, effects, p.effects)
	}
	if p.ended.Status != agent.Finished {
		p.violated("the run ended as %+v", p.ended)
	}
	for id, text := range p.told {
		switch n := p.effects[id]; {
		case strings.Contains(text, "did "+id) && n == 0:
			p.violated("call %s had no effect, and the model was told %q", id, text)
		case strings.Contains(text, "not carried out") && n > 0:
			p.violated("call %s had its effect %d times, and the model was told %q", id, n, text)
		case strings.Contains(text, "carried out before") && n == 0 && p.calls[id].fails == "":
			p.violated("call %s had no effect, and the model was told %q", id, text)
		}
	}
}

// effect is the effect of a tool, and where it is judged.
func (p *playing) effect(proc *process, t *toolPlan, in job, recovery bool) error {
	proc.store.disk.mu.Lock()
	defer proc.store.disk.mu.Unlock()
	if proc.store.dead {
		return errDead
	}
	p.mu.Lock()
	before := p.effects[in.ID]
	if recovery && before > 0 && t.replay == gate.Recover {
		p.mu.Unlock()
		return nil // the tool finds it done
	}
	p.effects[in.ID]++
	again := t.replay == gate.Repeatable && !t.once && (t.fails != "" || !p.undisturbed(in.ID))
	var missing []int
	for round := 1; round <= t.rounds; round++ {
		if at := roundOf(in.ID, round); !p.yes[at] || p.no[at] {
			missing = append(missing, round)
		}
	}
	p.mu.Unlock()
	p.note("    effect of %s, recovery %t", in.ID, recovery)
	if before > 0 && !again {
		p.violated("call %s of %+v had its effect again", in.ID, *t)
	}
	if recovery && t.replay != gate.Recover {
		p.violated("call %s of %+v was recovered", in.ID, *t)
	}
	if len(missing) > 0 {
		p.violated("call %s had its effect without a yes in rounds %v", in.ID, missing)
	}
	if in.N != len(in.ID) {
		p.violated("call %s had its effect with other arguments: %+v", in.ID, in)
	}
	return nil
}

// enter is called by every tool.
func (p *playing) enter(id string) {
	p.mu.Lock()
	p.entered(id)
	cancel := p.cancel
	p.cancel = nil
	p.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// entered notes that a call runs. The mutex is held, as for undisturbed.
func (p *playing) entered(id string) {
	if _, before := p.calm[id]; before {
		return
	}
	p.calm[id] = p.disturbed
	if p.rough {
		p.calm[id] = -1
	}
}

// undisturbed reports whether nothing was in the way of a call since it ran first.
func (p *playing) undisturbed(id string) bool {
	at, ok := p.calm[id]
	return ok && at == p.disturbed
}

func roundOf(id string, round int) string { return fmt.Sprintf("%s#%d", id, round) }
