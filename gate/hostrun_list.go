package gate

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A RunSummary is what is recorded of a host's run.
type RunSummary struct {
	ID      checkpoint.ID
	Status  checkpoint.Status // [checkpoint.RunLive] or RunEnded
	Claimed bool              // a caller has it now, here or in another process
	Created time.Time
	Updated time.Time
	Notes   json.RawMessage
	// Code, Message and Result are those of an ended run.
	Code    Code
	Message string
	Result  json.RawMessage
	// Problem is set where the record cannot be read; of the rest only ID and Status are set then.
	Problem error
}

// InspectRun returns where a run of the scope and of this face stands (V5); else
// ErrInvalidContinuation. Nothing runs and nothing is written.
func (f *Face) InspectRun(ctx context.Context, scope string, id checkpoint.ID) (RunSummary, error) {
	ctx, done, err := f.enter(ctx)
	if err != nil {
		return RunSummary{}, err
	}
	defer done()
	hash, err := f.gate.scopeOf(scope)
	if err != nil {
		return RunSummary{}, err
	}
	run, err := f.loadRun(ctx, hash, id)
	if err != nil {
		return RunSummary{}, err
	}
	return f.gate.runSummary(ctx, run)
}

func (g *Gate) runSummary(ctx context.Context, run *checkpoint.Run) (RunSummary, error) {
	s := RunSummary{ID: run.ID, Status: run.Status, Created: run.Created, Updated: run.Updated, Notes: run.Notes}
	if run.Ending != nil {
		s.Code, s.Message, s.Result = Code(run.Ending.Code), run.Ending.Message, run.Ending.Result
	}
	var err error
	if s.Claimed, err = g.claimHeld(ctx, run.ID, run.Claim); err != nil {
		return s, unavailable(err)
	}
	return s, nil
}

// A RunQuery selects the runs of a scope.
type RunQuery struct {
	Scope string // must not be empty
	Ended bool   // those that have ended, too
	After string // the Next of the page before
	Limit int    // default 100
}

// A RunPage is one page of a listing. Next is empty on the last one.
type RunPage struct {
	Runs []RunSummary
	Next string
}

// Runs returns the runs of a scope and of this face page by page, oldest first (V5). One that
// cannot be read is in the list with its Problem.
func (f *Face) Runs(ctx context.Context, q RunQuery) (RunPage, error) {
	ctx, done, err := f.enter(ctx)
	if err != nil {
		return RunPage{}, err
	}
	defer done()
	g := f.gate
	scope, err := g.scopeOf(q.Scope)
	if err != nil {
		return RunPage{}, err
	}
	g.sweep(ctx)
	query := checkpoint.Query{Scope: scope, Statuses: []checkpoint.Status{checkpoint.RunLive}, After: q.After, Limit: q.Limit}
	if q.Ended {
		query.Statuses = append(query.Statuses, checkpoint.RunEnded)
	}
	page, err := g.store.List(ctx, query)
	if err != nil {
		return RunPage{}, notListed(err)
	}
	list := RunPage{Next: page.Next}
	for _, record := range page.Records {
		run, err := g.vault.decodeRun(record)
		switch {
		case err != nil:
			list.Runs = append(list.Runs, RunSummary{ID: record.ID, Status: record.Status, Problem: err})
		case run.Face == f.name:
			s, err := g.runSummary(ctx, run)
			if err != nil {
				return RunPage{}, err
			}
			list.Runs = append(list.Runs, s)
		}
	}
	return list, nil
}

// notInteractions are the states of what has a list of its own.
func notInteractions(statuses []checkpoint.Status) bool {
	return slices.ContainsFunc(statuses, func(s checkpoint.Status) bool { return s == checkpoint.Remembered || s.Run() })
}

// sweepRun is W9.
func (g *Gate) sweepRun(ctx context.Context, record checkpoint.Record) {
	if record.Status == checkpoint.RunEnded {
		g.remove(ctx, record, "")
		return
	}
	g.whereDead(ctx, record.ID, record.Claim, func() { g.remove(ctx, record, "") })
}
