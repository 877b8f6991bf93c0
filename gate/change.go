package gate

import (
	"cmp"
	"errors"
	"slices"

	"github.com/parley-go/parley/checkpoint"
)

// A change is one write to the store, and what observers are told when it is applied.
type change struct {
	batch     *checkpoint.Batch
	next      *checkpoint.Interaction // what the first put writes; nil: it writes a run
	event     Event
	decisions []Event   // what the change does to remembered decisions
	calls     []*change // of a run: the changes of its calls, which are written in the same batch
}

// change makes the write that takes an interaction from prev, which is in the store, to next.
func (g *Gate) change(from origin, prev, next *checkpoint.Interaction) (*change, error) {
	record, err := g.encode(next)
	if err != nil {
		return nil, err
	}
	c := &change{next: next, event: Event{Entry: entry(from, prev, next), Before: prev.Status, Since: prev.Updated, Scope: from.scope}}
	audit, err := checkpoint.EncodeEntry(&c.event.Entry)
	if err != nil {
		return nil, err
	}
	c.batch = &checkpoint.Batch{
		Time: next.Updated, Owner: cmp.Or(from.owner, g.member.Owner()),
		Puts:  []checkpoint.Put{{Record: record, Epoch: prev.Claim.Epoch}},
		Audit: [][]byte{audit},
	}
	return c, nil
}

// whole is the batch of the change together with those of its calls.
func (c *change) whole() *checkpoint.Batch {
	if len(c.calls) == 0 {
		return c.batch
	}
	whole := *c.batch
	whole.Puts, whole.Audit = slices.Clone(whole.Puts), slices.Clone(whole.Audit)
	for _, call := range c.calls {
		whole.Puts, whole.Audit = append(whole.Puts, call.batch.Puts...), append(whole.Audit, call.batch.Audit...)
	}
	return &whole
}

// leaveOut takes out the call with which err is a conflict. It reports false where there is none.
func (c *change) leaveOut(err error) bool {
	var changed *checkpoint.ConflictError
	if !errors.As(err, &changed) {
		return false
	}
	before := len(c.calls)
	c.calls = slices.DeleteFunc(slices.Clone(c.calls), func(call *change) bool { return call.next.ID == changed.ID })
	return len(c.calls) < before
}

// size is how much memory the change takes while it is owed.
func (c *change) size() int64 {
	whole := c.whole()
	size := retained(whole)
	for _, entry := range whole.Audit {
		size += int64(len(entry))
	}
	return size
}

// told is the event of the change, complete: the questions are added only where it is observed.
func (c *change) told() Event {
	e := c.event
	if c.next == nil {
		return e
	}
	if last := c.next.Last(); last != nil {
		e.Asked, e.Deadline = last.Asked, last.Deadline
		for _, q := range last.Questions {
			e.Questions = append(e.Questions, q.Type)
		}
	}
	return e
}
