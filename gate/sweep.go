package gate

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/parley-go/parley/checkpoint"
)

// sweepPage is how many records one sweep looks at.
const sweepPage = 16

// A sweeps is where the sweeps of this gate stand.
type sweeps struct {
	running atomic.Bool
	after   string // of the sweep that is running
}

// sweep goes on through what is due, a page at a time: it marks what expired (X1) and what was
// abandoned (X3), and removes what ended long ago (X4). It rides on requests (R7), at most one at a
// time; what it does not reach waits for the next one.
func (g *Gate) sweep(ctx context.Context) {
	if g.opts.ReadOnly || !g.sweeps.running.CompareAndSwap(false, true) {
		return
	}
	defer g.sweeps.running.Store(false)
	g.pay(ctx)
	page, err := g.store.List(ctx, checkpoint.Query{DueBefore: g.now(), After: g.sweeps.after, Limit: sweepPage})
	if err != nil {
		g.log.WarnContext(ctx, "sweep", "error", err)
		return
	}
	g.sweeps.after = page.Next
	for _, record := range page.Records {
		g.sweepOne(ctx, record)
	}
}

func (g *Gate) sweepOne(ctx context.Context, record checkpoint.Record) {
	now := g.now()
	in, err := g.decode(record)
	if err != nil {
		g.log.WarnContext(ctx, "sweep", "error", err)
		return
	}
	switch {
	case waiting(in.Status): // X1
		g.note(ctx, in, expire(in, now, g.opts.Retention))
	case !in.Status.Ended(): // X2, X3
		if held, err := g.claimHeld(ctx, in); held || err != nil {
			return
		}
		if release, ok := g.claims.hold(in.ID); ok {
			defer release()
			g.note(ctx, in, abandon(in, now, g.opts.Retention))
		}
	case in.Start.IsZero(): // X4
		batch := &checkpoint.Batch{Time: now, Owner: g.member.Owner(), Lazy: true}
		batch.Deletes = []checkpoint.Delete{{ID: in.ID, Revision: in.Revision}}
		var changed *checkpoint.ConflictError
		if err := g.store.Commit(context.WithoutCancel(ctx), batch); err != nil && !errors.As(err, &changed) {
			g.log.WarnContext(ctx, "sweep", "error", err)
		}
	}
}
