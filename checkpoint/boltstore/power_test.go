package boltstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/powercut"
)

const powerWriters = 8

// R25: what was acknowledged before the power was cut is there, byte for byte, when it is back:
// after every cut, on the same disk.
func TestPowerCut(t *testing.T) {
	for _, tc := range []struct {
		fs   powercut.FileSystem
		size int64
		cuts int
	}{
		{powercut.Ext4, 256 << 20, 4},
		{powercut.XFS, 512 << 20, 2},
	} {
		t.Run(string(tc.fs), func(t *testing.T) {
			p := newPower(t, powercut.NewDisk(t, tc.fs, tc.size), false)
			cuts := powercut.Cuts(t, tc.cuts)
			enough := func() bool { return p.acknowledged >= cuts*powerWriters }
			n := 0
			for ; n < cuts || !enough() && n < 5*cuts; n++ { // a busy machine gets little done before a cut, and has more of them
				p.writeUntilCut()
				if err := p.boot(); err != nil {
					t.Fatalf("cut %d: %v", n+1, err)
				}
			}
			t.Logf("%d cuts, %d batches acknowledged before them, nothing lost", n, p.acknowledged)
			if !enough() {
				t.Error("too little was written to prove anything")
			}
		})
	}
}

// The same load without syncs loses what was acknowledged, and this test's own check says so:
// otherwise TestPowerCut would prove nothing.
func TestPowerCutFindsMissingSync(t *testing.T) {
	for n := range 5 {
		p := newPower(t, powercut.NewDisk(t, powercut.Ext4, 256<<20), true)
		p.writeUntilCut()
		err := p.boot()
		if err != nil {
			t.Logf("cut %d, %d batches acknowledged: %v", n+1, p.acknowledged, err)
			return
		}
	}
	t.Fatal("no cut lost anything, though nothing was synced")
}

// A power is a store on a disk whose power is cut, and those who write to it.
type power struct {
	t            *testing.T
	disk         *powercut.Disk
	machine      *powercut.Machine
	noSync       bool
	rng          *rand.Rand
	writers      []*writer
	ledger       [16]byte
	acknowledged int

	mu  sync.Mutex
	cut bool // acknowledgements prove nothing any more
}

// newPower boots a machine with an empty store.
func newPower(t *testing.T, disk *powercut.Disk, noSync bool) *power {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	p := &power{t: t, disk: disk, noSync: noSync, rng: rand.New(rand.NewPCG(seed, 1000))}
	clock := new(atomic.Int64)
	for n := range powerWriters {
		p.writers = append(p.writers, newWriter(seed, n, clock))
	}
	if err := p.boot(); err != nil {
		t.Fatal(err)
	}
	return p
}

// do has the machine carry out an order, which it must live to do.
func (p *power) do(o order) (reply, error) {
	var r reply
	if err := p.machine.Call(o, &r); err != nil {
		return r, err
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

func (p *power) must(o order) {
	p.t.Helper()
	if _, err := p.do(o); err != nil {
		p.t.Fatal(err)
	}
}

// boot starts a machine with the disk, and compares what it finds there with what must be.
func (p *power) boot() error {
	if p.machine != nil {
		p.machine.Kill()
	}
	p.machine = p.disk.Boot(p.t)
	return p.open()
}

func (p *power) open() error {
	r, err := p.do(order{Open: true, NoSync: p.noSync})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if p.ledger != r.Ledger && p.ledger != [16]byte{} {
		return fmt.Errorf("the ledger is %x and was %x", r.Ledger, p.ledger)
	}
	p.ledger = r.Ledger
	if _, err := p.do(order{Check: true}); err != nil {
		return err
	}
	return p.compare(r.Now)
}

// compare holds all records of the store against what each writer knows of its own.
func (p *power) compare(now time.Time) error {
	found := make([]map[checkpoint.ID]checkpoint.Record, len(p.writers))
	for n := range found {
		found[n] = map[checkpoint.ID]checkpoint.Record{}
	}
	query := checkpoint.Query{Limit: 200}
	for {
		r, err := p.do(order{List: &query})
		if err != nil {
			return err
		}
		for _, r := range r.Page.Records {
			if int(r.ID[11]) >= len(found) {
				return fmt.Errorf("record %s is nobody's", r.ID)
			}
			found[r.ID[11]][r.ID] = r
		}
		if query.After = r.Page.Next; query.After == "" {
			break
		}
	}
	var lost []error
	for n, w := range p.writers {
		if now.Before(w.floor) {
			lost = append(lost, fmt.Errorf("the store's time is %v, before %v, which was acknowledged", now, w.floor))
		}
		if err := w.rebooted(found[n]); err != nil {
			lost = append(lost, err)
		}
	}
	return errors.Join(lost...)
}

// writeUntilCut lets the writers write for a while and cuts the power under them.
func (p *power) writeUntilCut() {
	p.t.Helper()
	p.cut = false
	var wg sync.WaitGroup
	for _, w := range p.writers {
		wg.Go(func() {
			for p.write(w) {
			}
		})
	}
	<-time.After(100*time.Millisecond + time.Duration(p.rng.Int64N(int64(400*time.Millisecond))))
	p.mu.Lock()
	p.cut = true
	p.mu.Unlock()
	p.machine.Cut()
	wg.Wait()
}

// write commits one batch of the writer, and reports whether the writer can go on.
func (p *power) write(w *writer) bool {
	_, err := p.do(order{Commit: w.next()})
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.cut:
		return false
	case err != nil:
		p.t.Errorf("writer %d: commit before the cut: %v", w.number, err)
		return false
	}
	p.acknowledged++
	w.acknowledged()
	return true
}
