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
	// Key, where it is not empty, is one of the host's, such as the name of a conversation: at most
	// one run of the scope and face with that key goes on or waits.
	Key   string
	Notes json.RawMessage
	// Keep is kept until the first commit, by name, as with [Run.Keep]; it is there whenever the
	// run is.
	Keep map[string][]byte
}

// BeginRun begins a run of the scope (W1). It is recorded at once, and durable with whatever is
// durable next: a run whose process dies before it did anything is gone. While another run has its
// key it is ErrStartConflict, whose Interaction is the id of that run (W1k).
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

// keyTaken is W1k, or what else a run meets whose create was a conflict.
func (g *Gate) keyTaken(ctx context.Context, start checkpoint.Hash) error {
	record, err := g.store.Find(ctx, start)
	switch {
	case errors.Is(err, checkpoint.ErrNotFound): // it ended meanwhile
		return errRestart
	case err != nil:
		return unavailable(err)
	}
	return fail(ErrStartConflict, "a run with that key has not ended").on(record.ID)
}

// ResumeRun takes a run that stopped, or whose process is gone, in order to go on with it (W2). One
// that goes on elsewhere is ErrBusy (W3), one that has ended ErrAlreadyCompleted (W4); one of
// another scope or face is not told from one that does not exist: ErrInvalidContinuation.
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
