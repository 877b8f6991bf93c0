package gate_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/powercut"
)

const powerCallers = 8

// R25, R26, R27, R28: after a cut of the power every prompt whose token was given out is there with
// its token, every answer that was acknowledged is recorded, and no handler had its effect twice.
func TestPowerCut(t *testing.T) {
	p := newPower(t, powercut.NewDisk(t, powercut.Ext4, 4<<30))
	cuts, enough := powercut.Cuts(t, 3), false
	n := 0
	for ; n < cuts || !enough && n < 5*cuts; n++ { // a busy machine gets little done before a cut, and has more of them
		p.workUntilCut()
		p.boot()
		if err := p.survived(); err != nil {
			t.Fatalf("cut %d: %v", n+1, err)
		}
		enough = len(p.effects()) >= 2*cuts && p.count()[asked] > 0
	}
	t.Logf("%d cuts, %d interactions, %d carried out, the last ones by stage: %v", n, p.made, len(p.effects()), p.count())
	if !enough {
		t.Error("too little happened to prove anything")
	}
}

// Where an answer is acknowledged before the disk has it, the check of TestPowerCut finds that it
// was lost.
func TestPowerCutFindsLostAnswers(t *testing.T) {
	p := newPower(t, powercut.NewDisk(t, powercut.Ext4, 256<<20), lazyEnv+"=1")
	for n := range 10 {
		p.workUntilCut()
		p.boot()
		if err := p.survived(); err != nil {
			t.Logf("cut %d: %v", n+1, err)
			return
		}
	}
	t.Fatal("no cut lost anything, though answers were not synced")
}

// R25: on a full disk the gate is unavailable and runs nothing; when there is room again and the
// store was opened anew, it goes on.
func TestFullDisk(t *testing.T) {
	p := newPower(t, powercut.NewDisk(t, powercut.Ext4, 64<<20))
	for range 3 * powerCallers {
		if w := p.raise(rand.New(rand.NewPCG(1, 2))); w == nil {
			t.FailNow()
		}
	}
	p.machine.Fill()
	refused := false
	for n := 0; n < 500 && !refused; n++ {
		call := call("deploy", fmt.Sprintf(`{"name":"more","ballast":%q}`, bytes.Repeat([]byte("x"), 50_000)))
		r, err := p.ask(powerOrder{Call: &call})
		if err != nil {
			t.Fatal(err)
		}
		if refused = r.Code != ""; refused && r.Code != gate.ErrUnavailable {
			t.Errorf("ask on a full disk: got %s, want unavailable", r.Code)
		}
	}
	if !refused {
		t.Fatal("the disk never was full")
	}
	for _, w := range p.works {
		if err := w.refused(p.ask, w.answer(allow), gate.ErrUnavailable); err != nil {
			t.Error(err)
		}
	}
	if effects := p.effects(); len(effects) > 0 {
		t.Errorf("there were effects: %v", effects)
	}
	p.machine.Free()
	p.must(powerOrder{Reopen: true})
	if err := p.survived(); err != nil {
		t.Fatal(err)
	}
	for _, w := range p.works {
		for w.stage == asked {
			if err := w.goesOn(p.ask, w.answer(allow)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := p.survived(); err != nil {
		t.Fatal(err)
	}
}

// A power is a gate on a disk whose power is cut, and those outside who ask and answer.
type power struct {
	t           *testing.T
	disk        *powercut.Disk
	env         []string
	effectsFile string
	seed        uint64
	machine     *powercut.Machine

	mu    sync.Mutex
	works []*work
	made  int
	cuts  int
	cut   bool // what is told proves nothing any more
}

func newPower(t *testing.T, disk *powercut.Disk, env ...string) *power {
	t.Helper()
	effects := filepath.Join(t.TempDir(), "effects")
	p := &power{t: t, disk: disk, env: append(env, effectsEnv+"="+effects), effectsFile: effects, seed: rand.Uint64()}
	t.Logf("seed %d", p.seed)
	p.boot()
	return p
}

func (p *power) boot() {
	p.t.Helper()
	p.machine = p.disk.Boot(p.t, p.env...)
}

func (p *power) ask(o powerOrder) (r powerReply, err error) {
	err = p.machine.Call(o, &r)
	return r, err
}

func (p *power) must(o powerOrder) {
	p.t.Helper()
	if r, err := p.ask(o); err != nil || r.Code != "" {
		p.t.Fatalf("%v %s", err, r.Code)
	}
}

// workUntilCut lets callers work for a while and cuts the power under them.
func (p *power) workUntilCut() {
	p.t.Helper()
	p.cut = false
	p.cuts++
	var wg sync.WaitGroup
	for n := range powerCallers {
		rng := rand.New(rand.NewPCG(p.seed, uint64(p.cuts*powerCallers+n)))
		wg.Go(func() {
			for w := p.raise(rng); w != nil; w = p.raise(rng) {
				for p.step(w, rng) {
				}
			}
		})
	}
	<-time.After(100*time.Millisecond + time.Duration(rand.Int64N(int64(400*time.Millisecond))))
	p.mu.Lock()
	p.cut = true
	p.mu.Unlock()
	p.machine.Cut()
	wg.Wait()
}

// raise begins an interaction; nil when the power was cut.
func (p *power) raise(rng *rand.Rand) *work {
	p.mu.Lock()
	p.made++
	w := &work{effect: fmt.Sprint("n", p.made)}
	w.call = call("deploy", fmt.Sprintf(`{"name":%q,"twice":%v}`, w.effect, rng.IntN(2) == 0))
	p.mu.Unlock()
	if !p.send(w, w.first(), asked, w.told) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.works = append(p.works, w)
	return w
}

// step takes one of the steps that are open to the work, and reports whether there is another one.
func (p *power) step(w *work, rng *rand.Rand) bool {
	confirm := func(powerReply) error { w.stage = confirmed; return nil }
	switch dice := rng.IntN(10); {
	case w.stage == asked && dice < 2:
		return false // left for later
	case w.stage == asked && dice < 5:
		return p.send(w, w.elsewhere(allow), sentElsewhere, confirm)
	case w.stage == asked:
		return p.send(w, w.answer(allow), answering, w.told)
	case w.stage == confirmed && dice < 8:
		return p.send(w, w.look(), resuming, w.told)
	}
	return false
}

// send has the work in that stage until the answer is there, which counts only before the cut.
func (p *power) send(w *work, o powerOrder, meanwhile stage, told func(powerReply) error) bool {
	w.stage = meanwhile
	r, err := p.ask(o)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		return false
	}
	if err == nil && r.Code != "" {
		err = fmt.Errorf("%s: %s", r.Code, r.Message)
	}
	if err == nil {
		err = told(r)
	}
	if err != nil {
		p.t.Errorf("%s before the cut: %v", w.name(), err)
	}
	return err == nil
}

// survived holds the whole ledger against what is known outside, and answers every second prompt
// that waits.
func (p *power) survived() error {
	if r, err := p.ask(powerOrder{Check: true}); err != nil || r.Code != "" {
		return fmt.Errorf("check: %w %s", err, r.Code)
	}
	var lost []error
	for n, w := range p.works {
		err := w.survived(p.ask)
		if err == nil && w.stage == asked && n%2 == 0 {
			err = w.goesOn(p.ask, w.answer(allow))
		}
		if err != nil {
			lost = append(lost, err)
		}
	}
	effects := p.effects()
	for _, w := range p.works {
		if n := effects[w.effect]; n > 1 || n < 1 && w.stage == done {
			lost = append(lost, fmt.Errorf("%s: %d effects at stage %d", w.name(), n, w.stage))
		}
	}
	p.forget()
	return errors.Join(lost...)
}

// forget lets go of the oldest interactions that have ended, so that a long run does not go through
// all of them after every cut.
func (p *power) forget() {
	ended := len(p.works) - p.count()[asked]
	p.works = slices.DeleteFunc(p.works, func(w *work) bool {
		if w.stage == asked || ended <= 300 {
			return false
		}
		ended--
		return true
	})
}

// effects counts the lines of the file of effects.
func (p *power) effects() map[string]int {
	count := map[string]int{}
	text, err := os.ReadFile(p.effectsFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		count[string(bytes.TrimSpace(line))]++
	}
	return count
}

func (p *power) count() map[stage]int {
	count := map[stage]int{}
	for _, w := range p.works {
		count[w.stage]++
	}
	return count
}
