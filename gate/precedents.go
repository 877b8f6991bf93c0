package gate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/interrupt"
)

// A precedents is what one commit does to decisions, beside what it does to its interaction.
type precedents struct {
	puts    []checkpoint.Put
	deletes []checkpoint.Delete
	stand   []checkpoint.ID // must still be there
	audit   [][]byte
	events  []Event
}

// addTo adds to a write. nil adds nothing.
func (p *precedents) addTo(c *change) {
	if p == nil {
		return
	}
	b := c.batch
	b.Puts, b.Deletes, b.Audit = append(b.Puts, p.puts...), append(b.Deletes, p.deletes...), append(b.Audit, p.audit...)
	for _, id := range p.stand {
		// A row that is removed, where there is none, changes nothing, and is a conflict where its
		// record is gone.
		b.Rows = append(b.Rows, checkpoint.RowPut{Row: checkpoint.Row{ID: id, Name: "used"}})
	}
	c.decisions = p.events
}

// note tells of a decision. old is what stood there; nil: nothing that can be read.
func (p *precedents) note(from origin, old *checkpoint.Decision, e checkpoint.Entry) error {
	e.Face = from.face
	audit, err := checkpoint.EncodeEntry(&e)
	if err != nil {
		return err
	}
	event := Event{Entry: e, Scope: from.scope}
	if old != nil {
		event.Before, event.Since = checkpoint.Remembered, old.Time
	}
	p.audit, p.events = append(p.audit, audit), append(p.events, event)
	return nil
}

// keep finds rows D1 to D4 for the decisions of one answer.
func (g *Gate) keep(ctx context.Context, from origin, decisions []*checkpoint.Decision, now time.Time) (*precedents, error) {
	p := &precedents{}
	for i, d := range decisions {
		if beaten(d, decisions[:i], decisions[i+1:]) {
			continue
		}
		if err := g.keepOne(ctx, from, p, d, now); err != nil {
			return nil, unavailable(err).on(d.Interaction)
		}
	}
	return p, nil
}

// beaten reports whether another question of the same prompt speaks for this one: a rejection, or
// the first of the same kind.
func beaten(d *checkpoint.Decision, before, after []*checkpoint.Decision) bool {
	return slices.ContainsFunc(before, func(o *checkpoint.Decision) bool {
		return o.Start == d.Start && (o.Kind == d.Kind || o.Kind == interrupt.PermissionRejectAlways)
	}) || slices.ContainsFunc(after, func(o *checkpoint.Decision) bool {
		return o.Start == d.Start && o.Kind != d.Kind && o.Kind == interrupt.PermissionRejectAlways
	})
}

func (g *Gate) keepOne(ctx context.Context, from origin, p *precedents, d *checkpoint.Decision, now time.Time) error {
	record, err := g.store.Find(ctx, d.Start)
	if err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
		return err
	}
	var renewed *checkpoint.Decision
	if err == nil {
		var stands bool
		if renewed, stands, err = g.meet(from, p, d, record, now); stands || err != nil {
			return err
		}
	}
	if renewed != nil { // D2
		d.ID, d.Revision = renewed.ID, renewed.Revision
	} else if d.ID, err = checkpoint.NewID(now, g.opts.Random); err != nil { // D1, D3
		return err
	}
	d.Revision++
	if record, err = g.encodeDecision(d); err != nil {
		return err
	}
	p.puts = append(p.puts, checkpoint.Put{Record: record})
	return p.note(from, renewed, checkpoint.Entry{
		Time: now, Interaction: d.ID, Action: checkpoint.ActionRemembered, Status: checkpoint.Remembered, Tool: d.Tool,
		Scope: d.Scope, By: d.By,
	})
}

// meet decides what becomes of what is recorded where d would be: it stands, and d is not
// remembered; it is renewed; or it goes.
func (g *Gate) meet(from origin, p *precedents, d *checkpoint.Decision, record checkpoint.Record, now time.Time,
) (renewed *checkpoint.Decision, stands bool, err error) {
	old, err := g.decodeDecision(record)
	switch expired := past(record.Due, now); {
	case expired: // D1
	case err != nil && d.Kind == interrupt.PermissionAllowAlways: // it may be a rejection
		return nil, false, err
	case err != nil: // D3
	case old.Kind == d.Kind: // D2
		return old, false, nil
	case d.Kind == interrupt.PermissionAllowAlways: // D4
		return nil, true, nil
	}
	p.deletes = append(p.deletes, checkpoint.Delete{ID: record.ID, Revision: record.Revision}) // D1, D3
	return nil, false, p.note(from, old, checkpoint.Entry{
		Time: now, Interaction: record.ID, Action: checkpoint.ActionRemoved, Status: record.Status, Tool: d.Tool, Scope: record.Scope,
	})
}

// decisionsSize is what is reserved for decisions that are to be kept.
func decisionsSize(decisions []*checkpoint.Decision) (size int64) {
	for _, d := range decisions {
		size += checkpoint.Charge + int64(len(d.Arguments)+len(d.Title)+len(d.Key)+len(d.ToolName))
	}
	return size
}
