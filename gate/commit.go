package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// What a write turned out to be.
type verdict int

const (
	applied  verdict = iota
	conflict         // somebody else's write came first; nothing was written
	lapsed           // this gate has left the store; nothing was written
	rejected         // the store takes no such write; nothing was written
	unknown          // it may be written, or may still be
)

// commitTimeout bounds a commit that never returns, and the reading back after it.
const commitTimeout = 30 * time.Second

// commit writes next where prev is what the store holds, with what it does to decisions, durably.
func (g *Gate) commit(ctx context.Context, from origin, prev, next *checkpoint.Interaction, w *decisionWrites) (verdict, error) {
	c, err := g.change(from, prev, next)
	if err != nil {
		return rejected, err
	}
	w.addTo(c)
	return g.write(ctx, c, conflict)
}

// commitTwice is commit, once more where the outcome is unknown: the same batch is the same batch.
// A conflict of the second one can be with the first.
func (g *Gate) commitTwice(ctx context.Context, from origin, prev, next *checkpoint.Interaction, w *decisionWrites) (verdict, error) {
	c, err := g.change(from, prev, next)
	if err != nil {
		return rejected, err
	}
	w.addTo(c)
	return g.writeTwice(ctx, c)
}

func (g *Gate) writeTwice(ctx context.Context, c *change) (verdict, error) {
	v, err := g.write(ctx, c, conflict)
	if v == unknown {
		first := err // which says why; the second can only be a conflict with it
		if v, err = g.write(ctx, c, unknown); v != applied && err != nil {
			err = fmt.Errorf("%w; once more: %w", first, err)
		}
	}
	return v, err
}

// write commits a batch whose first put is an interaction's or a run's. What its outcome is, where
// the store does not tell, is settled by reading back (R25); unread is what a conflict is taken for
// where nothing can be read back. A call of a run whose claim was lost (H8) is left out of c. The
// caller's context does not break a commit off: half of one is no state to be in.
func (g *Gate) write(ctx context.Context, c *change, unread verdict) (verdict, error) {
	v, err := g.tryWrite(context.WithoutCancel(ctx), c.whole(), unread)
	for v == conflict && c.leaveOut(err) {
		v, err = g.tryWrite(context.WithoutCancel(ctx), c.whole(), unread)
	}
	if v != applied {
		return v, err
	}
	if c.next != nil {
		g.recent.put(c.batch.Puts[0].Record, c.next)
	}
	for _, call := range c.calls {
		g.recent.put(call.batch.Puts[0].Record, call.next)
	}
	// A conflict that reads back as our own record is another gate's write of the very same, which
	// that gate tells of; but after an unknown outcome it is our own.
	var changed *checkpoint.ConflictError
	if g.opts.Observer == nil || unread == conflict && errors.As(err, &changed) {
		return v, err
	}
	g.tell(ctx, c.told())
	for _, e := range c.decisions {
		g.tell(ctx, e)
	}
	for _, call := range c.calls {
		g.tell(ctx, call.told())
	}
	return v, err
}

// tryWrite is write without telling anybody. The batch has a put, or one row.
func (g *Gate) tryWrite(ctx context.Context, batch *checkpoint.Batch, unread verdict) (verdict, error) {
	g.sweeps.expect(batch)
	err := bounded(ctx, func(ctx context.Context) error { return g.store.Commit(ctx, batch) })
	var changed *checkpoint.ConflictError
	switch {
	case err == nil:
		return applied, nil
	case errors.Is(err, checkpoint.ErrLapsed):
		return lapsed, err
	case errors.Is(err, checkpoint.ErrReadOnly), errors.Is(err, checkpoint.ErrInvalidBatch):
		return rejected, err
	case len(batch.Puts) == 0 && errors.As(err, &changed): // a row has no revision: it was the claim
		return conflict, err
	case len(batch.Puts) == 0:
		return g.readRowBack(ctx, batch.Rows[0].Row), err
	case errors.As(err, &changed):
		return g.readBack(ctx, batch.Puts[0].Record, unread), err
	default:
		return g.readBack(ctx, batch.Puts[0].Record, unknown), err
	}
}

// readBack looks for a record that may have been written. unless is what it is where that cannot be
// told.
func (g *Gate) readBack(ctx context.Context, wrote checkpoint.Record, unless verdict) verdict {
	var stored checkpoint.Record
	err := bounded(ctx, func(ctx context.Context) (err error) {
		stored, err = g.store.Load(ctx, wrote.ID)
		return err
	})
	switch {
	case err != nil:
		return unless
	case stored.Revision == wrote.Revision && bytes.Equal(stored.Data, wrote.Data):
		return applied
	case stored.Revision < wrote.Revision: // not seen; it may still land
		return unless
	default:
		return conflict
	}
}

// readRowBack looks for a row that may have been written.
func (g *Gate) readRowBack(ctx context.Context, wrote checkpoint.Row) verdict {
	var stored checkpoint.Row
	err := bounded(ctx, func(ctx context.Context) (err error) {
		stored, err = g.row(ctx, wrote.ID, wrote.Name)
		return err
	})
	if err == nil && bytes.Equal(stored.Data, wrote.Data) {
		return applied
	}
	return unknown
}

func bounded(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	return f(ctx)
}

// mark records an ending. It is visible at once and durable with a later commit; nobody waits for
// it (R25). Only where the claim was lost does it matter to the caller.
func (g *Gate) mark(ctx context.Context, from origin, prev, next *checkpoint.Interaction) verdict {
	c, err := g.change(from, prev, next)
	if err != nil {
		g.log.ErrorContext(ctx, "ending not recorded", "interaction", next.ID, "error", err)
		return rejected
	}
	c.batch.Lazy = true
	return g.writeMark(ctx, c)
}

func (g *Gate) writeMark(ctx context.Context, c *change) verdict {
	v, err := g.write(ctx, c, conflict)
	switch v {
	case rejected:
		g.log.ErrorContext(ctx, "ending not recorded", "interaction", c.event.Entry.Interaction, "error", err)
	case unknown:
		g.log.WarnContext(ctx, "ending not recorded yet", "interaction", c.event.Entry.Interaction, "error", err)
		g.owed.add(c)
	}
	return v
}

// note writes down what every access can see for itself (X1, X3): whoever comes next does it again
// where it fails.
func (g *Gate) note(ctx context.Context, from origin, prev, next *checkpoint.Interaction) {
	c, err := g.change(from, prev, next)
	if err == nil {
		c.batch.Lazy = true
		_, err = g.write(ctx, c, conflict)
	}
	var changed *checkpoint.ConflictError
	if err != nil && !errors.As(err, &changed) {
		g.log.WarnContext(ctx, "state not recorded", "interaction", next.ID, "status", next.Status, "error", err)
	}
}

// owed keeps the marks that the store refused for a passing reason.
type owed struct {
	mu    sync.Mutex
	marks []*change
	size  int64 // of the data in marks
}

// What is kept while a store is down, in marks and in bytes; a mark that is dropped costs a
// recovery.
const (
	maxOwed     = 1024
	maxOwedData = 64 << 20
)

func (o *owed) add(mark *change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size := mark.size()
	if len(o.marks) < maxOwed && o.size+size <= maxOwedData {
		o.marks = append(o.marks, mark)
		o.size += size
	}
}

// next takes the oldest out, or nil.
func (o *owed) next() *change {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.marks) == 0 {
		return nil
	}
	mark := o.marks[0]
	o.marks = o.marks[1:]
	o.size -= mark.size()
	return mark
}

// payFor writes what is owed of one record, before somebody goes on with it.
func (g *Gate) payFor(ctx context.Context, id checkpoint.ID) {
	if mark := g.owed.take(id); mark != nil {
		g.writeMark(ctx, mark)
	}
}

// take takes the mark of a record out, or nil.
func (o *owed) take(id checkpoint.ID) *change {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.marks, func(c *change) bool { return c.event.Entry.Interaction == id })
	if i < 0 {
		return nil
	}
	mark := o.marks[i]
	o.marks = slices.Delete(slices.Clone(o.marks), i, i+1)
	o.size -= mark.size()
	return mark
}

// pay writes some of the marks that are owed, until one is refused again.
func (g *Gate) pay(ctx context.Context) {
	for range sweepPage {
		mark := g.owed.next()
		if mark == nil || g.writeMark(ctx, mark) == unknown {
			return
		}
	}
}
