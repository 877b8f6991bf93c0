package gate

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/parley-go/parley/checkpoint"
)

// An origin is what brought a transition about: a face, and the scope of its request where that is
// the interaction's.
type origin struct {
	face, scope string
	owner       string // under which the request began; empty: the present one
}

// sweeping is the origin of what a sweep finds.
var sweeping = origin{}

// entry is what the audit trail keeps of a transition (R38): it is told from the record before it
// and the record after.
func entry(from origin, prev, next *checkpoint.Interaction) checkpoint.Entry {
	e := checkpoint.Entry{
		Time: next.Updated, Interaction: next.ID, Action: action(prev, next), Status: next.Status, Round: len(next.Rounds),
		Attempt: next.Claim.Attempt, Tool: next.Tool, Scope: next.Scope, Face: from.face,
	}
	switch e.Action {
	case checkpoint.ActionAnswered:
		e.By, e.Remembered = next.Last().Answer.By, len(next.Last().Answer.Remembered) > 0
	case checkpoint.ActionEnded:
		e.Code = next.Ending.Code
	case checkpoint.ActionRemoved:
		e.Round = len(prev.Rounds)
	}
	return e
}

func action(prev, next *checkpoint.Interaction) checkpoint.Action {
	switch next.Status {
	case checkpoint.Started:
		if prev.Revision == 0 { // F2
			return checkpoint.ActionStarted
		}
		return checkpoint.ActionRecovered // A1, A2
	case checkpoint.Open:
		if prev.Status == checkpoint.Open { // P1m
			return checkpoint.ActionRejoined
		}
		return checkpoint.ActionAsked // H1
	case checkpoint.Answered: // N3
		return checkpoint.ActionAnswered
	case checkpoint.Running:
		switch {
		case answeredRounds(prev) < answeredRounds(next): // N1, H9
			return checkpoint.ActionAnswered
		case prev.Status == checkpoint.Answered: // N2
			return checkpoint.ActionClaimed
		}
		return checkpoint.ActionRecovered // A1, A2
	case checkpoint.Expired: // X1
		return checkpoint.ActionExpired
	case checkpoint.Abandoned: // X3
		return checkpoint.ActionAbandoned
	case checkpoint.Tombstone: // X4, X6
		return checkpoint.ActionRemoved
	}
	return checkpoint.ActionEnded // H2 to H7
}

// An AuditQuery selects a part of the audit trail.
type AuditQuery struct {
	After uint64 // the Next of the page before; 0: from the oldest entry there is
	Limit int    // at most so many; 0 means 100, and more than 1000 means 1000
}

// An AuditPage is one part of the audit trail, in the order of the commits. Next is where to go on:
// whoever does misses no entry, but those that were removed after [Options.AuditRetention]; a page
// without entries means that there are no more yet.
type AuditPage struct {
	Entries []AuditEntry
	Next    uint64
}

// An AuditEntry is one transition of one interaction.
type AuditEntry struct {
	Seq uint64 // of the store; grows with every entry
	checkpoint.Entry
	// Problem is set where the entry cannot be read; all fields but Seq are zero then.
	Problem error
}

// Audit returns a page of the audit trail of all scopes (R38). It is for an operator, and the host
// decides who is one. Entries hold no arguments, no answers and no token.
func (f *Face) Audit(ctx context.Context, q AuditQuery) (AuditPage, error) {
	ctx, done, err := f.enter(ctx)
	if err != nil {
		return AuditPage{}, err
	}
	defer done()
	switch {
	case q.Limit < 0:
		return AuditPage{}, fail(ErrInvalidArguments, "audit: limit %d is negative", q.Limit)
	case q.Limit == 0:
		q.Limit = 100
	}
	entries, err := f.gate.store.Audit(ctx, q.After, min(q.Limit, 1000))
	if err != nil {
		return AuditPage{}, unavailable(err)
	}
	page := AuditPage{Next: q.After}
	for _, stored := range entries {
		e := AuditEntry{Seq: stored.Seq}
		if decoded, err := checkpoint.DecodeEntry(stored.Data); err != nil {
			e.Problem = err
		} else {
			e.Entry = *decoded
		}
		page.Entries = append(page.Entries, e)
		page.Next = stored.Seq
	}
	return page, nil
}

// A trimmer knows when the oldest audit entry is to be removed, so that not every sweep looks.
type trimmer struct{ due atomic.Int64 } // in Unix milliseconds

// trimPage is how many audit entries one sweep removes at most.
const trimPage = 100

// trim removes the oldest audit entries after their retention. It rides on a sweep.
func (g *Gate) trim(ctx context.Context) {
	now := g.now()
	if g.opts.AuditRetention == NoExpiry || now.UnixMilli() < g.trimmer.due.Load() {
		return
	}
	entries, err := g.store.Audit(ctx, 0, trimPage)
	if err != nil {
		g.log.WarnContext(ctx, "trim the audit trail", "error", err)
		return
	}
	due, last, unread := now.Add(g.opts.AuditRetention), uint64(0), 0
	for _, stored := range entries {
		e, err := checkpoint.DecodeEntry(stored.Data)
		if err != nil {
			unread++ // a newer release's: it goes with what comes after it
			continue
		}
		if e.Time.After(now.Add(-g.opts.AuditRetention)) {
			due = e.Time.Add(g.opts.AuditRetention)
			break
		}
		last, due = stored.Seq, now // there may be more
	}
	if unread == trimPage { // else they would keep the whole trail
		last, due = entries[trimPage-1].Seq, now
	}
	if last > 0 {
		batch := &checkpoint.Batch{Time: now, Owner: g.member.Owner(), TrimAudit: last, Lazy: true}
		if err := g.store.Commit(context.WithoutCancel(ctx), batch); err != nil && !errors.Is(err, checkpoint.ErrLapsed) {
			g.log.WarnContext(ctx, "trim the audit trail", "error", err)
			return
		}
	}
	g.trimmer.due.Store(due.UnixMilli())
}
