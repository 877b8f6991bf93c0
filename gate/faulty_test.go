package gate_test

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/parley-go/parley/checkpoint"
)

var errInjected = errors.New("injected fault")

// A faulty store is a store whose commits can fail before or after they are applied, and whose
// members can die. It counts.
type faulty struct {
	checkpoint.Store

	mu      sync.Mutex
	member  checkpoint.Member
	durable int // commits that somebody waited for
	loads   int
	// fault is asked for every commit, where it is set: before it is applied, whether it fails;
	// after, whether its success is hidden.
	fault   func(b *checkpoint.Batch) (before, after error)
	blind   bool // sweeps see nothing, so that what they would have marked is seen by requests themselves
	hanging bool // commits do what they do and return when their context ends
	rows    int  // looks at rows
	// loadFault fails every load, of rows too, where it is set.
	loadFault error
	// usageFault fails every look at what is stored, where it is set.
	usageFault error
	// rowsFault fails every look at rows, where it is set.
	rowsFault error
}

func (f *faulty) Usage(ctx context.Context, scope checkpoint.Hash) (checkpoint.Usage, error) {
	if f.usageFault != nil {
		return checkpoint.Usage{}, f.usageFault
	}
	return f.Store.Usage(ctx, scope)
}

func (f *faulty) Join(ctx context.Context, proposed checkpoint.Ledger) (checkpoint.Ledger, checkpoint.Member, error) {
	ledger, member, err := f.Store.Join(ctx, proposed)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.member = member
	return ledger, member, err
}

// crash lets the gate that joined last die: its claims are dead and nothing it still writes is
// taken.
func (f *faulty) crash() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.member.Leave() // Leave of a member of memstore does not fail
}

func (f *faulty) Commit(ctx context.Context, b *checkpoint.Batch) error {
	f.mu.Lock()
	fault, hanging := f.fault, f.hanging
	if !b.Lazy {
		f.durable++
	}
	f.mu.Unlock()
	var before, after error
	if fault != nil {
		before, after = fault(b)
	}
	if before != nil {
		return before
	}
	if err := f.Store.Commit(ctx, b); err != nil {
		return err
	}
	if hanging {
		<-ctx.Done()
		return ctx.Err()
	}
	return after
}

func (f *faulty) List(ctx context.Context, q checkpoint.Query) (checkpoint.Page, error) {
	if f.blind && q.ByDue() {
		return checkpoint.Page{}, nil
	}
	return f.Store.List(ctx, q)
}

func (f *faulty) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Record, error) {
	f.mu.Lock()
	f.loads++
	fault := f.loadFault
	f.mu.Unlock()
	if fault != nil {
		return checkpoint.Record{}, fault
	}
	return f.Store.Load(ctx, id)
}

func (f *faulty) Rows(ctx context.Context, id checkpoint.ID, from string, limit int) ([]checkpoint.Row, error) {
	f.mu.Lock()
	f.rows++
	fault := cmp.Or(f.loadFault, f.rowsFault)
	f.mu.Unlock()
	if fault != nil {
		return nil, fault
	}
	return f.Store.Rows(ctx, id, from, limit)
}

func (f *faulty) set(fault func(b *checkpoint.Batch) (before, after error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// untold makes the commits that write a record in that state fail: before they are applied, or
// after, so that nobody is told. Where unreadable is set, nothing can be read back either.
func (f *faulty) untold(status checkpoint.Status, before, after error, unreadable bool) {
	f.set(func(b *checkpoint.Batch) (error, error) {
		if !writes(b, status) {
			return nil, nil
		}
		if unreadable {
			f.failLoads(errInjected)
		}
		return before, after
	})
}

// heal ends all faults of commits and loads.
func (f *faulty) heal() {
	f.set(nil)
	f.failLoads(nil)
}

func (f *faulty) hang(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hanging = on
}

func (f *faulty) failLoads(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loadFault = err
}

func (f *faulty) counts() (durable, loads int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.durable, f.loads
}

// writes reports whether the batch makes a record of that status.
func writes(b *checkpoint.Batch, status checkpoint.Status) bool {
	return len(b.Puts) > 0 && b.Puts[0].Record.Status == status
}
