package gate

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A Decision is a remembered answer (R19). It is the receiver's own copy.
type Decision struct {
	ID           checkpoint.ID
	Tool         string
	ToolRevision string
	// Key, ToolName and Title are those of the question that was answered.
	Key      string
	ToolName string
	Title    string
	Kind     string // allow_always or reject_always
	OptionID string
	Option   string // its name, as it was shown
	// Remember says which later calls it is for; Arguments are those that are compared, as a prompt
	// shows them: in canonical form, the masked ones replaced. nil: none are compared.
	Remember  checkpoint.Remember
	Arguments json.RawMessage
	// By is who answered, in the host's words, at Time and through Face, in that round of that
	// interaction, which may be gone by now.
	By          string
	Face        string
	Time        time.Time
	Interaction checkpoint.ID
	Round       int
	Expires     time.Time
	// Problem is set where the record cannot be read: then it answers nothing, and all fields but
	// ID and Expires are zero. It can be revoked.
	Problem error
}

// A DecisionQuery selects the remembered decisions of a scope.
type DecisionQuery struct {
	Scope string // must not be empty
	After string // the Next of the page before
	Limit int    // default 100
}

// A DecisionPage is one page of a listing. Next is empty on the last one.
type DecisionPage struct {
	Decisions []Decision
	Next      string
}

// Decisions returns the remembered decisions of a scope that stand, page by page, oldest first
// (V4). One that was renewed keeps its id. An operator who wants to end all decisions on a tool
// changes the tool's revision.
func (f *Face) Decisions(ctx context.Context, q DecisionQuery) (DecisionPage, error) {
	ctx, done, err := f.enter(ctx)
	if err != nil {
		return DecisionPage{}, err
	}
	defer done()
	g := f.gate
	scope, err := g.scopeOf(q.Scope)
	if err != nil {
		return DecisionPage{}, err
	}
	g.sweep(ctx)
	page, err := g.store.List(ctx, checkpoint.Query{
		Scope: scope, Statuses: []checkpoint.Status{checkpoint.Remembered}, After: q.After, Limit: q.Limit,
	})
	if err != nil {
		return DecisionPage{}, notListed(err)
	}
	list := DecisionPage{Next: page.Next}
	now := g.now()
	for _, record := range page.Records {
		if !past(record.Due, now) {
			list.Decisions = append(list.Decisions, g.decision(record))
		}
	}
	return list, nil
}

func (g *Gate) decision(record checkpoint.Record) Decision {
	d, err := g.decodeDecision(record)
	if err != nil {
		return Decision{ID: record.ID, Expires: record.Due, Problem: err}
	}
	out := Decision{
		ID: d.ID, Tool: d.Tool, ToolRevision: d.ToolRevision, Key: d.Key, ToolName: d.ToolName, Title: d.Title,
		Kind: d.Kind, OptionID: d.OptionID, Option: d.Option, Remember: copied(d.Remember),
		By: d.By, Face: d.Face, Time: d.Time, Interaction: d.Interaction, Round: d.Round, Expires: d.Due,
	}
	if d.Arguments != nil {
		out.Arguments = masking(d.Arguments, g.tools[d.Tool])
	}
	return out
}

// Revoke removes a remembered decision of the scope (D5). When it returns nil the decision is gone,
// durably, and answers nothing any more; a run that it answered before goes on. One of another
// scope is not told from one that does not exist, or was revoked already: ErrInvalidContinuation.
func (f *Face) Revoke(ctx context.Context, scope string, id checkpoint.ID) error {
	ctx, done, err := f.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	hash, err := f.gate.scopeOf(scope)
	if err != nil {
		return err
	}
	return restarting(func() error { return f.gate.revoke(ctx, origin{face: f.name, scope: scope}, hash, id) })
}

func (g *Gate) revoke(ctx context.Context, from origin, scope checkpoint.Hash, id checkpoint.ID) error {
	record, err := g.store.Load(ctx, id)
	switch {
	case errors.Is(err, checkpoint.ErrNotFound), err == nil && (record.Scope != scope || !isDecision(record)):
		return fail(ErrInvalidContinuation, "there is no such decision")
	case err != nil:
		return unavailable(err)
	case g.opts.ReadOnly:
		return readOnly()
	}
	c, err := g.removal(from, checkpoint.ActionRevoked, &record, g.decision(record).Tool)
	if err != nil {
		return unavailable(err)
	}
	ctx = context.WithoutCancel(ctx)
	err = bounded(ctx, func(ctx context.Context) error { return g.store.Commit(ctx, c.batch) })
	var changed *checkpoint.ConflictError
	switch {
	case err == nil:
		g.tell(ctx, c.event)
		return nil
	case errors.As(err, &changed): // it was renewed, or is gone
		return errRestart
	case errors.Is(err, checkpoint.ErrLapsed), errors.Is(err, checkpoint.ErrReadOnly):
		return unavailable(err)
	}
	// It may be gone or not (R25).
	back := bounded(ctx, func(ctx context.Context) error {
		_, err := g.store.Load(ctx, id)
		return err
	})
	if errors.Is(back, checkpoint.ErrNotFound) {
		g.tell(ctx, c.event)
		return nil
	}
	return unavailable(err)
}

// isInteraction tells an interaction from what else there is.
func isInteraction(record checkpoint.Record) bool {
	return !isDecision(record) && !record.Status.Run()
}

// isDecision tells a decision from an interaction: nothing that is about interactions finds it.
func isDecision(record checkpoint.Record) bool { return record.Status == checkpoint.Remembered }
