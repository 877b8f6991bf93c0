package agent_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
)

// A disk is what is left of a machine that crashes: the batches that were committed, in their
// order. Those that are lazy and came after the last one that was waited for can be lost.
type disk struct {
	mu      sync.Mutex // also held over effects: a process that is dead has none
	memory  *memstore.Store
	ledger  *checkpoint.Ledger
	batches []checkpoint.Batch
	durable int
}

// A handle is the disk as one process has it.
type handle struct {
	*memstore.Store
	disk   *disk
	member checkpoint.Member
	dead   bool
	fault  fault
	after  int // commits until it
}

// A fault comes with a commit.
type fault int

const (
	noFault fault = iota
	dieBefore
	dieAfter
	failBefore
	failAfter
)

var (
	errDead  = errors.New("the process is dead")
	errFault = errors.New("the disk has a fault")
)

// crashed is the disk of the machine after it was started again.
func (d *disk) crashed(t testing.TB, r *rand.Rand, forgets bool) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := d.durable + r.IntN(len(d.batches)-d.durable+1)
	if forgets { // a disk that lies: the proof that it would be found
		left = r.IntN(len(d.batches) + 1)
	}
	again := &disk{memory: memstore.New(), ledger: d.ledger, durable: left}
	if again.ledger != nil {
		if _, _, err := again.memory.Join(context.Background(), *again.ledger); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range d.batches[:left] {
		b.Owner = "" // has left
		if err := again.memory.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		again.batches = append(again.batches, b)
	}
	return again
}

func (d *disk) open() *handle { return &handle{Store: d.memory, disk: d} }

// arm lets something happen at one of the next commits.
func (h *handle) arm(f fault, after int) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	h.fault, h.after = f, after
}

// kill lets the process die. The disk's mutex is held.
func (h *handle) kill() {
	h.dead = true
	_ = h.member.Leave() // that of memstore does not fail
}

func (h *handle) isDead() bool {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return h.dead
}

func (h *handle) Join(ctx context.Context, proposed checkpoint.Ledger) (checkpoint.Ledger, checkpoint.Member, error) {
	ledger, member, err := h.Store.Join(ctx, proposed)
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	h.member = member
	if h.disk.ledger == nil {
		h.disk.ledger = &ledger
	}
	return ledger, member, err
}

func (h *handle) Commit(ctx context.Context, b *checkpoint.Batch) error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.dead {
		return errDead
	}
	f := noFault
	if h.after--; h.after < 0 {
		f, h.fault = h.fault, noFault
	}
	switch f {
	case dieBefore:
		h.kill()
		return errDead
	case failBefore:
		return errFault
	}
	if err := h.Store.Commit(context.WithoutCancel(ctx), b); err != nil {
		return err
	}
	h.disk.batches = append(h.disk.batches, *b)
	if !b.Lazy {
		h.disk.durable = len(h.disk.batches)
	}
	switch f {
	case dieAfter:
		h.kill()
		return errDead
	case failAfter:
		return errFault
	}
	return nil
}

func (h *handle) alive() error {
	if h.isDead() {
		return errDead
	}
	return nil
}

func (h *handle) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Record, error) {
	if err := h.alive(); err != nil {
		return checkpoint.Record{}, err
	}
	return h.Store.Load(ctx, id)
}

func (h *handle) Find(ctx context.Context, start checkpoint.Hash) (checkpoint.Record, error) {
	if err := h.alive(); err != nil {
		return checkpoint.Record{}, err
	}
	return h.Store.Find(ctx, start)
}

func (h *handle) Rows(ctx context.Context, id checkpoint.ID, from string, limit int) ([]checkpoint.Row, error) {
	if err := h.alive(); err != nil {
		return nil, err
	}
	return h.Store.Rows(ctx, id, from, limit)
}
