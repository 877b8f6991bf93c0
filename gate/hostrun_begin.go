package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A RunStart is what a run begins with.
type RunStart struct {
	Scope string // must not be empty
	// Key is one of the host's, such as the name of a conversation: of all runs of the scope and
	// face with this key, only one has not ended. Empty: the run has none.
	Key   string
	Notes json.RawMessage // as those of [RunCommit]
	// Keep is kept by name until the first commit, as with [Run.Keep]. It is written with the run:
	// whenever there is the run, there is all of it.
	Keep map[string][]byte
}

// BeginRun begins a run of the scope, and gives it to the caller (W1). The run is recorded at once,
// and becomes durable with the next write that is: where the process dies before the run did
// anything, there may be no run. While another run has the key, BeginRun is ErrStartConflict, with
// the id of that run as the error's Interaction (W1k).
func (f *Face) BeginRun(ctx context.Context, s RunStart) (run *Run, err error) {
	err = restarting(func() error {
		run, err = f.beginRun(ctx, s)
		return err
	})
	return run, err
}

func (f *Face) beginRun(ctx context.Context, s RunStart) (_ *Run, err error) {
	g := f.gate
	r, err := f.enterRun(ctx, s.Scope)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.end()
		}
	}()
	if g.opts.ReadOnly {
		return nil, readOnly()
	}
	if err := g.boundStart(s); err != nil {
		return nil, err
	}
	g.sweep(ctx)
	now := g.now()
	id, err := checkpoint.NewID(now, g.opts.Random)
	if err != nil {
		return nil, unavailable(err)
	}
	owner, ok := r.claim(id)
	if !ok {
		return nil, errRestart
	}
	next := &checkpoint.Run{
		ID: id, Revision: 1, Status: checkpoint.RunLive, Scope: r.scope, Created: now, Updated: now, Due: g.runDue(now, time.Time{}, false),
		Claim: checkpoint.Claim{Owner: owner, Epoch: 1, Attempt: 1}, Face: f.name, Notes: bytes.Clone(s.Notes),
	}
	if s.Key != "" {
		next.Start = g.hash("run", s.Scope, f.name, s.Key)
	}
	c, err := r.change(&checkpoint.Run{}, next, checkpoint.ActionStarted)
	if err == nil {
		c.batch.Rows, err = r.keepFirst(next, s.Keep)
	}
	if err != nil {
		return nil, unavailable(err)
	}
	room, e := g.reserve(ctx, r.scope, checkpoint.Usage{Bytes: retained(c.batch)})
	if e != nil {
		return nil, e
	}
	defer room.release()
	err = r.turn(ctx, c, next)
	if err == errRestart && s.Key != "" {
		err = g.keyTaken(ctx, next.Start)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// boundStart is R34.
func (g *Gate) boundStart(s RunStart) error {
	if err := g.boundName("key", s.Key); err != nil {
		return err
	}
	if e := g.boundNotes(s.Notes); e != nil {
		return e
	}
	for _, data := range s.Keep {
		if e := g.boundBlob(data); e != nil {
			return e
		}
	}
	return nil
}

// keyTaken says why the create of a run with a key was a conflict: W1k, or errRestart where the
// other run has ended meanwhile.
func (g *Gate) keyTaken(ctx context.Context, start checkpoint.Hash) error {
	record, err := g.store.Find(ctx, start)
	switch {
	case errors.Is(err, checkpoint.ErrNotFound):
		return errRestart
	case err != nil:
		return unavailable(err)
	}
	return fail(ErrStartConflict, "a run with that key has not ended").on(record.ID)
}

// ResumeRun gives the caller a run that has stopped, or whose process is gone, to go on with (W2).
// A run that goes on elsewhere is ErrBusy (W3), and one that has ended ErrAlreadyCompleted (W4). A
// run of another scope or face is ErrInvalidContinuation, as one that does not exist.
func (f *Face) ResumeRun(ctx context.Context, scope string, id checkpoint.ID) (run *Run, err error) {
	err = restarting(func() error {
		run, err = f.resumeRun(ctx, scope, id)
		return err
	})
	return run, err
}

func (f *Face) resumeRun(ctx context.Context, scope string, id checkpoint.ID) (_ *Run, err error) {
	g := f.gate
	r, err := f.enterRun(ctx, scope)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.end()
		}
	}()
	g.sweep(ctx)
	g.payFor(ctx, id)
	prev, err := f.loadRun(ctx, r.scope, id)
	if err != nil {
		return nil, err
	}
	if prev.Status == checkpoint.RunEnded {
		return nil, fail(ErrAlreadyCompleted, "the run has ended")
	}
	if g.opts.ReadOnly {
		return nil, readOnly()
	}
	held, err := g.claimHeld(ctx, id, prev.Claim)
	if err != nil {
		return nil, unavailable(err)
	}
	owner, ok := r.claim(id)
	if held || !ok {
		return nil, fail(ErrBusy, "the run goes on already")
	}
	next := *prev
	next.Revision, next.Updated = prev.Revision+1, g.now()
	next.Due = g.runDue(next.Updated, prev.Deadline, prev.Endless)
	next.Claim = checkpoint.Claim{Owner: owner, Epoch: prev.Claim.Epoch + 1, Attempt: prev.Claim.Attempt + 1}
	c, err := r.change(prev, &next, checkpoint.ActionClaimed)
	if err != nil {
		return nil, unavailable(err)
	}
	if err := r.turn(ctx, c, &next); err != nil {
		return nil, err
	}
	if err := r.readRows(ctx); err != nil {
		r.Release(ctx)
		return nil, err
	}
	return r, nil
}
