package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// Inspect returns where a run stands, with its open questions but without their tokens. Nothing
// runs. An unknown run, and one of another scope or agent, is [gate.ErrInvalidContinuation].
func (a *Agent) Inspect(ctx context.Context, scope string, id checkpoint.ID) (*Run, error) {
	s, err := a.face.InspectRun(ctx, scope, id)
	if err != nil {
		return nil, fmt.Errorf("inspect run %s: %w", id, err)
	}
	return a.withQuestions(ctx, scope, s)
}

func (a *Agent) withQuestions(ctx context.Context, scope string, s gate.RunSummary) (*Run, error) {
	run, err := ofSummary(s)
	if err != nil {
		return run, fmt.Errorf("inspect run %s: %w", s.ID, err)
	}
	known, err := readNotes(s.Notes)
	if err != nil {
		return run, fmt.Errorf("inspect run %s: %w: %w", s.ID, ErrCheckpoint, err)
	}
	for _, e := range known.Calls {
		id, err := checkpoint.ParseID(e.Interaction)
		if err != nil {
			continue // the call does not wait for a person
		}
		in, err := a.face.InspectID(ctx, scope, id)
		if err != nil || in.Status != checkpoint.Open {
			continue // answered, expired or gone
		}
		run.Questions = append(run.Questions, Question{Origin: e.origin(), Interaction: id, Prompt: in.Prompt})
	}
	return run, nil
}

// A Page is one page of a listing. Next is empty on the last one.
type Page struct {
	Runs []*Run
	Next string
}

// Runs returns the runs of a scope page by page, oldest first, with their open questions but
// without their tokens. A run that cannot be read is listed with a [Problem].
func (a *Agent) Runs(ctx context.Context, q gate.RunQuery) (Page, error) {
	list, err := a.face.Runs(ctx, q)
	if err != nil {
		return Page{}, fmt.Errorf("list runs: %w", err)
	}
	page := Page{Next: list.Next}
	for _, s := range list.Runs {
		run, err := a.withQuestions(ctx, q.Scope, s)
		if problem := errors.Join(s.Problem, err); problem != nil { // one bad run does not hide the others
			run.Problems = append(run.Problems, Problem{Err: problem})
		}
		page.Runs = append(page.Runs, run)
	}
	return page, nil
}
