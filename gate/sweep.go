package gate

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// sweepPage is how many records one sweep looks at, and sweepPause how long none looks again after
// one that found nothing: the requests of a busy gate need not all look.
const (
	sweepPage  = 16
	sweepPause = 100 * time.Millisecond
)

// A sweeps is where the sweeps of this gate stand.
type sweeps struct {
	running atomic.Bool
	after   string       // of the sweep that is running
	next    atomic.Int64 // when one looks again, in Unix milliseconds
}

// pausing reports whether it is too early to look. A clock that was set back is not waited for.
func (s *sweeps) pausing(now time.Time) bool {
	left := s.next.Load() - now.UnixMilli()
	return left > 0 && left <= sweepPause.Milliseconds()
}

// expect ends a pause early enough for what this gate writes. What others write is theirs to sweep,
// and is seen after the pause.
func (s *sweeps) expect(b *checkpoint.Batch) {
	for i := range b.Puts {
		if due := b.Puts[i].Record.Due; !due.IsZero() {
			s.lower(due)
		}
	}
}

func (s *sweeps) lower(to time.Time) {
	for next := s.next.Load(); to.UnixMilli() < next && !s.next.CompareAndSwap(next, to.UnixMilli()); next = s.next.Load() {
	}
}

// sweep goes on through what is due, a page at a time: it marks what expired (X1) and what was
// abandoned (X3), and removes what ended long ago (X4 to X6) and decisions that expired (D6). It
// rides on requests (R7), at most one at a time; what it does not reach waits for the next one.
func (g *Gate) sweep(ctx context.Context) {
	if g.opts.ReadOnly || !g.sweeps.running.CompareAndSwap(false, true) {
		return
	}
	defer g.sweeps.running.Store(false)
	g.pay(ctx)
	g.trim(ctx)
	now := g.now()
	if g.sweeps.pausing(now) {
		return
	}
	g.sweeps.next.Store(math.MaxInt64) // before the look: what is written from here on lowers it
	page, err := g.store.List(ctx, checkpoint.Query{DueBefore: now.Add(sweepPause), After: g.sweeps.after, Limit: sweepPage})
	if err != nil {
		g.sweeps.next.Store(0)
		g.log.WarnContext(ctx, "sweep", "error", err)
		return
	}
	g.sweeps.after = page.Next
	for i, record := range page.Records {
		if record.Due.After(now) {
			g.sweeps.after = ""
			g.sweeps.lower(record.Due)
			page.Records = page.Records[:i]
			break
		}
		g.sweepOne(ctx, record)
	}
	if len(page.Records) > 0 || g.sweeps.after != "" { // there can be more
		g.sweeps.next.Store(0)
		return
	}
	g.sweeps.lower(now.Add(sweepPause))
}

func (g *Gate) sweepOne(ctx context.Context, record checkpoint.Record) {
	now := g.now()
	if isDecision(record) { // D6
		g.remove(ctx, record, g.decision(record).Tool)
		return
	}
	if record.Status.Run() { // W9
		g.sweepRun(ctx, record)
		return
	}
	if record.Status == checkpoint.Tombstone { // X5
		g.remove(ctx, record, "")
		return
	}
	in, err := g.decode(record)
	if err != nil {
		g.log.WarnContext(ctx, "sweep", "error", err)
		g.sweepUnread(ctx, record, now)
		return
	}
	switch {
	case waiting(in.Status): // X1
		g.note(ctx, sweeping, in, expire(in, now, g.opts.Retention))
	case !in.Status.Ended(): // X2, X3
		g.whereDead(ctx, in.ID, in.Claim, func() { g.note(ctx, sweeping, in, abandon(in, now, g.opts.Retention)) })
	case in.Start.IsZero(): // X4
		g.remove(ctx, record, in.Tool)
	default: // X4
		g.bury(ctx, in, bury(in, g.argumentsHash(in.Tool, in.Arguments), now, g.tombstoneDue(now)))
	}
}

// sweepUnread is X6: an interaction that cannot be read goes by its plain fields, when it would
// have gone at the latest.
func (g *Gate) sweepUnread(ctx context.Context, record checkpoint.Record, now time.Time) {
	if !record.Status.Ended() && (g.opts.Retention == NoExpiry || now.Before(record.Due.Add(g.opts.Retention))) {
		return
	}
	g.whereDead(ctx, record.ID, record.Claim, func() {
		if record.Start.IsZero() {
			g.remove(ctx, record, "")
			return
		}
		prev := &checkpoint.Interaction{ID: record.ID, Revision: record.Revision, Status: record.Status, Claim: record.Claim}
		g.bury(ctx, prev, buryUnread(record, now, g.tombstoneDue(now)))
	})
}

// whereDead calls do where the claim is dead (X3), and keeps everybody else in the process away
// meanwhile.
func (g *Gate) whereDead(ctx context.Context, id checkpoint.ID, claim checkpoint.Claim, do func()) {
	if held, err := g.claimHeld(ctx, id, claim); held || err != nil { // X2
		return
	}
	if release, ok := g.claims.hold(id); ok {
		defer release()
		do()
	}
}

// bury leaves a tombstone, next, in the place of a record, and none of its rows, in one commit:
// whoever decided on what was there meets a conflict, and a step that was recorded is never one
// that was not while its handler can still run again (R4). Rows that cannot be read stay until X5.
func (g *Gate) bury(ctx context.Context, prev, next *checkpoint.Interaction) {
	c, err := g.change(sweeping, prev, next)
	if err == nil {
		c.batch.Rows, err = g.withoutRows(ctx, next)
		c.batch.Lazy = true
	}
	if err == nil {
		_, err = g.write(ctx, c, conflict)
	}
	var changed *checkpoint.ConflictError
	if err != nil && !errors.As(err, &changed) {
		g.log.WarnContext(ctx, "sweep", "interaction", next.ID, "error", err)
	}
}

// withoutRows are the writes that remove all rows of a record that is written as in.
func (g *Gate) withoutRows(ctx context.Context, in *checkpoint.Interaction) (gone []checkpoint.RowPut, err error) {
	const page = 100
	for from := ""; ; {
		rows, err := g.store.Rows(ctx, in.ID, from, page)
		switch {
		case errors.Is(err, checkpoint.ErrUnavailable) || ctx.Err() != nil:
			return nil, err
		case err != nil:
			g.log.WarnContext(ctx, "sweep: rows stay with their tombstone", "interaction", in.ID, "error", err)
			return gone, nil
		case len(rows) == 0:
			return gone, nil
		}
		for _, row := range rows {
			from = row.Name + "\x00" // the next name there can be
			gone = append(gone, checkpoint.RowPut{Row: checkpoint.Row{ID: row.ID, Name: row.Name}, Epoch: in.Claim.Epoch})
		}
	}
}

// remove deletes a record, and whoever comes next does it again where it fails. tool is empty where
// it cannot be read.
func (g *Gate) remove(ctx context.Context, record checkpoint.Record, tool string) {
	c, err := g.removal(sweeping, checkpoint.ActionRemoved, &record, tool)
	if err != nil {
		g.log.WarnContext(ctx, "sweep", "error", err)
		return
	}
	c.batch.Lazy = true
	if g.tidy(ctx, c.batch) {
		g.tell(ctx, c.event)
	}
}

// tidy commits what the next sweep does again where it fails.
func (g *Gate) tidy(ctx context.Context, batch *checkpoint.Batch) (done bool) {
	err := g.store.Commit(context.WithoutCancel(ctx), batch)
	var changed *checkpoint.ConflictError
	if err != nil && !errors.As(err, &changed) {
		g.log.WarnContext(ctx, "sweep", "error", err)
	}
	return err == nil
}

// removal is the write that deletes a record as it was read.
func (g *Gate) removal(from origin, action checkpoint.Action, record *checkpoint.Record, tool string) (*change, error) {
	now := g.now()
	e := checkpoint.Entry{
		Time: now, Interaction: record.ID, Action: action, Status: record.Status, Tool: tool, Scope: record.Scope, Face: from.face,
	}
	audit, err := checkpoint.EncodeEntry(&e)
	if err != nil {
		return nil, err
	}
	batch := &checkpoint.Batch{Time: now, Owner: g.member.Owner(), Audit: [][]byte{audit}}
	batch.Deletes = []checkpoint.Delete{{ID: record.ID, Revision: record.Revision}}
	return &change{batch: batch, event: Event{Entry: e, Before: record.Status, Scope: from.scope}}, nil
}

// tombstoneDue is when a tombstone made now is removed; zero: never.
func (g *Gate) tombstoneDue(now time.Time) time.Time {
	if g.opts.StartRetention == NoExpiry {
		return time.Time{}
	}
	return now.Add(g.opts.StartRetention)
}

// argumentsHash is what a tombstone keeps of the arguments.
func (g *Gate) argumentsHash(tool string, arguments []byte) checkpoint.Hash {
	return g.hash("arguments", tool, string(arguments))
}
