package gate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/interrupt"
)

// decisionWrites are what one commit does to decisions, beside what it does to its interaction.
type decisionWrites struct {
	from    origin
	now     time.Time
	puts    []checkpoint.Put
	deletes []checkpoint.Delete
	stand   []checkpoint.ID // must still be there
	audit   [][]byte
	events  []Event
}

// addTo adds to a write. nil adds nothing.
func (w *decisionWrites) addTo(c *change) {
	if w == nil {
		return
	}
	b := c.batch
	b.Puts, b.Deletes, b.Audit = append(b.Puts, w.puts...), append(b.Deletes, w.deletes...), append(b.Audit, w.audit...)
	for _, id := range w.stand {
		// A row that is removed, where there is none, changes nothing, and is a conflict where its
		// record is gone.
		b.Rows = append(b.Rows, checkpoint.RowPut{Row: checkpoint.Row{ID: id, Name: "used"}})
	}
	c.decisions = w.events
}

// note tells of a decision. old is what stood there; nil: nothing that can be read.
func (w *decisionWrites) note(old *checkpoint.Decision, e checkpoint.Entry) error {
	e.Time, e.Face = w.now, w.from.face
	audit, err := checkpoint.EncodeEntry(&e)
	if err != nil {
		return err
	}
	event := Event{Entry: e, Scope: w.from.scope}
	if old != nil {
		event.Before, event.Since = checkpoint.Remembered, old.Time
	}
	w.audit, w.events = append(w.audit, audit), append(w.events, event)
	return nil
}

// remember finds rows D1 to D4 for the decisions of one answer.
func (g *Gate) remember(ctx context.Context, from origin, decisions []*checkpoint.Decision) (*decisionWrites, error) {
	w := &decisionWrites{from: from, now: g.now()}
	for i, d := range decisions {
		if beaten(d, decisions[:i], decisions[i+1:]) {
			continue
		}
		if err := g.rememberOne(ctx, w, d); err != nil {
			return nil, unavailable(err).on(d.Interaction)
		}
	}
	return w, nil
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

func (g *Gate) rememberOne(ctx context.Context, w *decisionWrites, d *checkpoint.Decision) error {
	record, err := g.store.Find(ctx, d.Start)
	if err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
		return err
	}
	var renewed *checkpoint.Decision
	if err == nil {
		var stands bool
		if renewed, stands, err = g.meet(w, d, record); stands || err != nil {
			return err
		}
	}
	if renewed != nil { // D2
		d.ID, d.Revision = renewed.ID, renewed.Revision
	} else if d.ID, err = checkpoint.NewID(w.now, g.opts.Random); err != nil { // D1, D3
		return err
	}
	d.Revision++
	if record, err = g.encodeDecision(d); err != nil {
		return err
	}
	w.puts = append(w.puts, checkpoint.Put{Record: record})
	return w.note(renewed, checkpoint.Entry{
		Interaction: d.ID, Action: checkpoint.ActionRemembered, Status: checkpoint.Remembered, Tool: d.Tool,
		Scope: d.Scope, By: d.By,
	})
}

// meet decides what becomes of what is recorded where d would be: it stands, and d is not
// remembered; it is renewed; or it goes.
func (g *Gate) meet(w *decisionWrites, d *checkpoint.Decision, record checkpoint.Record,
) (renewed *checkpoint.Decision, stands bool, err error) {
	old, err := g.decodeDecision(record)
	switch expired := past(record.Due, w.now); {
	case expired: // D1
	case err != nil && d.Kind == interrupt.PermissionAllowAlways: // it may be a rejection
		return nil, false, err
	case err != nil: // D3
	case old.Kind == d.Kind: // D2
		return old, false, nil
	case d.Kind == interrupt.PermissionAllowAlways: // D4
		return nil, true, nil
	}
	w.deletes = append(w.deletes, checkpoint.Delete{ID: record.ID, Revision: record.Revision}) // D1, D3
	return nil, false, w.note(old, checkpoint.Entry{
		Interaction: record.ID, Action: checkpoint.ActionRemoved, Status: record.Status, Tool: d.Tool, Scope: record.Scope,
	})
}

// decisionsSize is what is reserved for decisions that are to be kept.
func decisionsSize(decisions []*checkpoint.Decision) (size int64) {
	for _, d := range decisions {
		size += checkpoint.Charge + int64(len(d.Arguments)+len(d.Title)+len(d.Key)+len(d.ToolName))
	}
	return size
}
