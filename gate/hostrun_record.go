package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// turn writes the record of a run that goes on from here (W1, W2), lazily: what the run does is
// durable after it.
func (r *Run) turn(ctx context.Context, c *change, next *checkpoint.Run) error {
	c.batch.Lazy = true
	v, err := r.face.gate.write(ctx, c, conflict)
	switch v {
	case applied:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.run, r.size = next, int64(len(c.batch.Puts[0].Record.Data))+checkpoint.Charge
		return nil
	case conflict:
		return errRestart
	default:
		return unavailable(err)
	}
}

// change makes the write that takes a run from prev to next.
func (r *Run) change(prev, next *checkpoint.Run, action checkpoint.Action) (*change, error) {
	record, err := r.face.gate.vault.encodeRun(next)
	if err != nil {
		return nil, err
	}
	e := checkpoint.Entry{
		Time: next.Updated, Interaction: next.ID, Action: action, Status: next.Status, Attempt: next.Claim.Attempt, Scope: next.Scope,
		Face: r.face.name,
	}
	if next.Ending != nil {
		e.Code = next.Ending.Code
	}
	audit, err := checkpoint.EncodeEntry(&e)
	if err != nil {
		return nil, err
	}
	batch := &checkpoint.Batch{
		// The owner under which the run was begun or resumed, which the gate's owner need not be
		// any more (R23).
		Time: next.Updated, Owner: cmp.Or(next.Claim.Owner, prev.Claim.Owner), Audit: [][]byte{audit},
		Puts: []checkpoint.Put{{Record: record, Epoch: prev.Claim.Epoch}},
	}
	return &change{batch: batch, event: Event{Entry: e, Before: prev.Status, Since: prev.Updated, Scope: r.words}}, nil
}

// loadRun reads a run of that scope and of this face. Any other one is ErrInvalidContinuation, as
// one that does not exist.
func (f *Face) loadRun(ctx context.Context, scope checkpoint.Hash, id checkpoint.ID) (*checkpoint.Run, error) {
	g := f.gate
	record, err := g.store.Load(ctx, id)
	none := fail(ErrInvalidContinuation, "there is no such run")
	switch {
	case errors.Is(err, checkpoint.ErrNotFound), err == nil && (!record.Status.Run() || record.Scope != scope):
		return nil, none
	case err != nil:
		return nil, unavailable(err)
	}
	run, err := g.vault.decodeRun(record)
	if err != nil {
		return nil, unavailable(err)
	}
	if run.Face != f.name {
		return nil, none
	}
	return run, nil
}

// boundNotes is R34 for the JSON that a host notes; there need not be any.
func (g *Gate) boundNotes(notes json.RawMessage) *Error {
	if notes != nil && !json.Valid(notes) {
		return fail(ErrInvalidArguments, "what is noted of a run is not JSON")
	}
	return g.boundBlob(notes)
}

// boundBlob is R34 for what a host keeps with a run.
func (g *Gate) boundBlob(data []byte) *Error {
	if most := g.opts.Limits.Blob; len(data) > most {
		return fail(ErrTooLarge, "what is kept of a run has %d bytes, the limit is %d", len(data), most)
	}
	return nil
}

// runDue is when a sweep removes a run that nobody resumes; zero is never. deadline is the latest
// of its prompts, and endless is set where one of them has none.
func (g *Gate) runDue(now, deadline time.Time, endless bool) time.Time {
	if endless || g.opts.StartRetention == NoExpiry {
		return time.Time{}
	}
	if deadline.After(now) {
		now = deadline
	}
	return now.Add(g.opts.StartRetention)
}
