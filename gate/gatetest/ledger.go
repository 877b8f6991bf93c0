package gatetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
)

// A ledger is a store in memory for one interaction, with what was committed to it in the order in
// which it was. Processes come and go on it, each with a connection of its own.
type ledger struct {
	store *memstore.Store

	mu     sync.Mutex
	joined checkpoint.Ledger
	log    []*checkpoint.Batch
	record *checkpoint.Interaction // as it was last written; nil: not yet
	claims []checkpoint.Claim      // every run that a gate began
	crash  *crash
}

// A crash is the place in the order of the commits at which a process dies.
type crash struct {
	commit int  // counted from zero
	after  bool // right after it was applied; else right before
}

func newLedger() *ledger { return &ledger{store: memstore.New()} }

// fork returns a ledger that holds what this one does. The owners of its claims are gone.
func (l *ledger) fork(ctx context.Context) (*ledger, error) {
	l.mu.Lock()
	f := &ledger{store: memstore.New(), joined: l.joined, log: slices.Clone(l.log), record: l.record}
	l.mu.Unlock()
	_, member, err := f.store.Join(ctx, f.joined)
	if err != nil {
		return nil, err
	}
	for _, batch := range f.log {
		if err := f.store.Commit(ctx, batch); err != nil {
			return nil, err
		}
	}
	return f, member.Leave()
}

// last returns the record as it was last written.
func (l *ledger) last() *checkpoint.Interaction {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record
}

// runs returns the claims of all runs that a gate began.
func (l *ledger) runs() []checkpoint.Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.claims)
}

// applied notes a batch that the store took.
func (l *ledger) applied(b *checkpoint.Batch) error {
	mine := *b
	mine.Owner = "" // a fork does not have that member
	record, err := interaction(b)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = append(l.log, &mine)
	if record != nil {
		l.record = record
	}
	return nil
}

// began notes the run of a claim that its gate knows to have.
func (l *ledger) began(b *checkpoint.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, put := range b.Puts {
		if claim := put.Record.Claim; claim.Owner != "" {
			l.claims = append(l.claims, claim)
		}
	}
}

// A connection is one process's way to the ledger. When the process dies it answers nothing any
// more, and the claims of the process are dead.
type connection struct {
	checkpoint.Store
	ledger *ledger

	mu     sync.Mutex
	member checkpoint.Member
	dead   bool
}

func (l *ledger) connect() *connection { return &connection{Store: l.store, ledger: l} }

// Join implements [checkpoint.Store].
func (c *connection) Join(ctx context.Context, proposed checkpoint.Ledger) (checkpoint.Ledger, checkpoint.Member, error) {
	joined, member, err := c.Store.Join(ctx, proposed)
	c.mu.Lock()
	c.member = member
	c.mu.Unlock()
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	if len(c.ledger.log) == 0 {
		c.ledger.joined = joined
	}
	return joined, member, err
}

// Load implements [checkpoint.Store].
func (c *connection) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Record, error) {
	if c.died() {
		return checkpoint.Record{}, checkpoint.ErrUnavailable
	}
	return c.Store.Load(ctx, id)
}

// Rows implements [checkpoint.Store].
func (c *connection) Rows(ctx context.Context, id checkpoint.ID, from string, limit int) ([]checkpoint.Row, error) {
	if c.died() {
		return nil, checkpoint.ErrUnavailable
	}
	return c.Store.Rows(ctx, id, from, limit)
}

// Commit implements [checkpoint.Store]. It is where processes die.
func (c *connection) Commit(ctx context.Context, b *checkpoint.Batch) error {
	if c.died() {
		return checkpoint.ErrUnavailable
	}
	crash := c.ledger.crashHere()
	if crash != nil && !crash.after {
		return c.die()
	}
	if err := c.Store.Commit(ctx, b); err != nil {
		return err
	}
	if err := c.ledger.applied(b); err != nil {
		return err
	}
	if crash != nil {
		return c.die()
	}
	c.ledger.began(b)
	return nil
}

// crashHere returns the crash that is to happen at the next commit, once.
func (l *ledger) crashHere() *crash {
	l.mu.Lock()
	defer l.mu.Unlock()
	crash := l.crash
	if crash == nil || crash.commit != len(l.log) {
		return nil
	}
	l.crash = nil
	return crash
}

func (c *connection) died() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// die returns what the commit says of it.
func (c *connection) die() error {
	c.mu.Lock()
	c.dead = true
	member := c.member
	c.mu.Unlock()
	return errors.Join(checkpoint.ErrUnavailable, member.Leave())
}

// interaction returns the interaction that a batch writes, or nil.
func interaction(b *checkpoint.Batch) (*checkpoint.Interaction, error) {
	for _, put := range b.Puts {
		if put.Record.Status != checkpoint.Remembered {
			return checkpoint.Decode(put.Record)
		}
	}
	return nil, nil
}

// place says what a batch records, in words for a report, and whether the handler has run before
// it. It is empty where nothing can be lost with the batch.
func place(b *checkpoint.Batch) (what string, handlerRan bool) {
	in, err := interaction(b)
	switch {
	case err != nil:
	case in == nil && len(b.Rows) > 0:
		return "a step was recorded", false
	case in == nil:
	case in.Status == checkpoint.Started:
		return "the call was recorded", false
	case in.Status == checkpoint.Running:
		// A remembered decision answers what the handler asked in the same request.
		return fmt.Sprintf("the answer of round %d was recorded", len(in.Rounds)), len(in.Last().Answer.Remembered) > 0
	case in.Status == checkpoint.Open:
		return fmt.Sprintf("the prompt of round %d was recorded", len(in.Rounds)), true
	case in.Status == checkpoint.Finished, in.Status == checkpoint.Failed:
		return "the end was recorded", true
	}
	return "", false
}
