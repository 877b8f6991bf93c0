package gate

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/parley-go/parley/checkpoint"
)

// Unlimited as a field of [Capacity] is no limit.
const Unlimited = -1

// Capacity limits what a ledger holds (R33): open interactions, and bytes retained of open and
// ended ones (prompts, state, answers, arguments, steps, and [checkpoint.Charge] for each record).
// A call for which there is no room is refused with ErrBusy before its handler runs; nothing is
// ever evicted to make room.
//
// What a running handler may still store is reserved in its process. Several processes on one store
// each add only their own reservations to what the store holds, as they saw it in the last second,
// so that together they can go a little over a limit.
type Capacity struct {
	Open          int   // default 100,000
	OpenPerScope  int   // default 10,000
	Bytes         int64 // default 4 GiB
	BytesPerScope int64 // default 1 GiB
}

func (c *Capacity) setDefaults() {
	c.Open = cmp.Or(c.Open, 100_000)
	c.OpenPerScope = cmp.Or(c.OpenPerScope, 10_000)
	c.Bytes = cmp.Or(c.Bytes, 4<<30)
	c.BytesPerScope = cmp.Or(c.BytesPerScope, 1<<30)
}

// validate refuses a capacity in which not even one call has room.
func (c *Capacity) validate(l *Limits) error {
	one := int64(l.Prompt+l.State) + checkpoint.Charge
	for name, bytes := range map[string]int64{"bytes": c.Bytes, "bytes per scope": c.BytesPerScope} {
		if bytes != Unlimited && bytes >= 0 && bytes < one {
			return fmt.Errorf("open gate: capacity of %d %s has no room for one prompt with its state, which can take %d", bytes, name, one)
		}
	}
	for _, n := range []int64{int64(c.Open), int64(c.OpenPerScope), c.Bytes, c.BytesPerScope} {
		if n < Unlimited {
			return fmt.Errorf("open gate: capacity %d is negative", n)
		}
	}
	return nil
}

// capacity holds the reservations of this process.
type capacity struct {
	mu     sync.Mutex
	all    checkpoint.Usage
	scopes map[checkpoint.Hash]checkpoint.Usage
	read   map[checkpoint.Hash]*usageRead
}

// add reserves, or gives back what is negative, and returns the sums that contain it.
func (c *capacity) add(scope checkpoint.Hash, need checkpoint.Usage) (all, own checkpoint.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, own = plus(c.all, need), plus(c.scopes[scope], need)
	if need.Active > 0 || need.Bytes > 0 {
		c.read[scope].grow(need)
		c.read[checkpoint.Hash{}].grow(need)
	}
	if c.scopes == nil {
		c.scopes = map[checkpoint.Hash]checkpoint.Usage{}
	}
	c.all, c.scopes[scope] = all, own
	if own == (checkpoint.Usage{}) {
		delete(c.scopes, scope)
	}
	return all, own
}

func plus(a, b checkpoint.Usage) checkpoint.Usage {
	return checkpoint.Usage{Active: a.Active + b.Active, Bytes: a.Bytes + b.Bytes}
}

// A reservation is room for what one request may store.
type reservation struct {
	gate  *Gate
	scope checkpoint.Hash
	held  checkpoint.Usage
}

// reserve makes room, or returns ErrBusy. It adds the reservation before it reads what is stored:
// the other way round, what another request stores in between would be in neither.
func (g *Gate) reserve(ctx context.Context, scope checkpoint.Hash, need checkpoint.Usage) (*reservation, *Error) {
	r := &reservation{g, scope, need}
	if need == (checkpoint.Usage{}) {
		return r, nil
	}
	all, own := g.capacity.add(scope, need)
	e := g.room(ctx, all, own, scope)
	if e != nil {
		r.release()
		return nil, e
	}
	return r, nil
}

func (g *Gate) room(ctx context.Context, all, own checkpoint.Usage, scope checkpoint.Hash) *Error {
	c := &g.opts.Capacity
	for _, limit := range []struct {
		reserved checkpoint.Usage
		scope    checkpoint.Hash
		open     int
		bytes    int64
		where    string
	}{
		{own, scope, c.OpenPerScope, c.BytesPerScope, "of this scope"},
		{all, checkpoint.Hash{}, c.Open, c.Bytes, "in all"},
	} {
		if limit.open == Unlimited && limit.bytes == Unlimited || g.capacity.ample(limit.scope, limit.open, limit.bytes, g.now()) {
			continue
		}
		read := g.capacity.beginRead(limit.scope, g.now())
		stored, err := g.store.Usage(ctx, limit.scope)
		if err != nil {
			return unavailable(err)
		}
		g.capacity.endRead(read, stored)
		sum := plus(stored, limit.reserved)
		switch {
		case limit.open != Unlimited && sum.Active > limit.open:
			return fail(ErrBusy, "there are %d open interactions %s, which is all there may be", limit.open, limit.where)
		case limit.bytes != Unlimited && sum.Bytes > limit.bytes:
			return fail(ErrBusy, "the %d bytes that may be kept %s are used or reserved", limit.bytes, limit.where)
		}
	}
	return nil
}

// extend reserves more, in the same reservation.
func (r *reservation) extend(ctx context.Context, need checkpoint.Usage) *Error {
	more, e := r.gate.reserve(ctx, r.scope, need)
	if e == nil {
		r.held = plus(r.held, more.held)
	}
	return e
}

// counted gives back the interaction that was reserved: the store counts it from now on.
func (r *reservation) counted() {
	counted := checkpoint.Usage{Active: r.held.Active}
	r.held.Active = 0
	r.gate.capacity.add(r.scope, checkpoint.Usage{Active: -counted.Active})
}

// release gives back what is left. It is called when what was stored of it can be seen in the
// store.
func (r *reservation) release() {
	if r.held != (checkpoint.Usage{}) {
		r.gate.capacity.add(r.scope, checkpoint.Usage{Active: -r.held.Active, Bytes: -r.held.Bytes})
		r.held = checkpoint.Usage{}
	}
}

// maxPrompt is the most that one more prompt of the tool takes; nothing where it never asks.
func (r *request) maxPrompt() int64 {
	if r.tool.opts.NeverAsks {
		return 0
	}
	return int64(r.gate.opts.Limits.Prompt + r.gate.opts.Limits.State)
}

// newInteraction is what a fresh call reserves: nothing where nothing is going to be recorded.
func (r *request) newInteraction() checkpoint.Usage {
	if r.tool.opts.NeverAsks && r.start.IsZero() {
		return checkpoint.Usage{}
	}
	need := checkpoint.Usage{Active: 1, Bytes: r.maxPrompt() + checkpoint.Charge}
	if r.tool.opts.NeverAsks {
		need.Bytes += r.bareRecord()
	}
	return need
}

// bareRecord is what a record without rounds takes, beside its charge: a prompt has the arguments
// in it.
func (r *request) bareRecord() int64 { return int64(len(r.args) + r.gate.opts.Limits.Result) }

// newStep is what a step reserves that is not done: its row, and the record where it makes that and
// nobody reserved it.
func (r *request) newStep(in *checkpoint.Interaction) checkpoint.Usage {
	need := checkpoint.Usage{Bytes: int64(r.gate.opts.Limits.Result+r.gate.opts.Limits.Name) + checkpoint.Charge}
	if in.Revision == 0 && r.tool.opts.NeverAsks {
		need.Active, need.Bytes = 1, need.Bytes+r.bareRecord()+checkpoint.Charge
	}
	return need
}

// nextRound is what the run for the last round's answer reserves: the answer's own bytes, and the
// prompt that may follow.
func (r *request) nextRound(in *checkpoint.Interaction) checkpoint.Usage {
	need := checkpoint.Usage{Bytes: r.maxPrompt()}
	if last := in.Last(); last != nil {
		need.Bytes += answerSize(last.Answer)
	}
	return need
}

// retained is what the puts of a batch take in a store.
func retained(b *checkpoint.Batch) (bytes int64) {
	for i := range b.Puts {
		bytes += int64(len(b.Puts[i].Record.Data)) + checkpoint.Charge
	}
	for i := range b.Rows {
		if b.Rows[i].Row.Data != nil {
			bytes += int64(len(b.Rows[i].Row.Data)) + checkpoint.Charge
		}
	}
	return bytes
}

func answerSize(answer *checkpoint.Answer) (size int64) {
	for _, payload := range answer.Payloads {
		size += int64(len(payload))
	}
	return size
}
