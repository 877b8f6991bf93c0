package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// Cancel ends a run without going on with it: one that is not wanted any more, or that cannot go on,
// because its agent has changed or a tool is gone. Nothing of it runs, and its tools and its model
// are told nothing; the run has Failed, and its conversation is free. Its open questions are
// cancelled by the scope's own road; one that cannot be, such as that of a tool that is gone, waits
// until it expires, and nothing follows from an answer to it.
//
// A run that has ended stays as it is. One that goes on elsewhere is [gate.ErrBusy], an unknown one
// and one of another scope or agent [gate.ErrInvalidContinuation].
func (a *Agent) Cancel(ctx context.Context, scope string, id checkpoint.ID) error {
	run, err := a.face.ResumeRun(ctx, scope, id)
	switch {
	case errors.Is(err, gate.ErrAlreadyCompleted):
		return nil
	case err != nil:
		return fmt.Errorf("cancel run %s: %w", id, err)
	}
	defer run.Release(ctx) // where it could not be finished
	if known, err := readNotes(run.Notes()); err == nil {
		for _, e := range known.Calls {
			a.cancelCall(ctx, scope, e)
		}
	}
	end := gate.RunEnd{Code: gate.ErrCancelled, Message: "the run was cancelled"}
	if err := run.Finish(ctx, end); err != nil {
		return fmt.Errorf("cancel run %s: %w", id, err)
	}
	return nil
}

// cancelCall cancels the question of a call that waits. Where that fails, nothing follows from the
// question all the same: the run is what would go on with it.
func (a *Agent) cancelCall(ctx context.Context, scope string, e envelope) {
	id, err := checkpoint.ParseID(e.Interaction)
	if err != nil {
		return // it waits for no person
	}
	in, err := a.face.InspectID(ctx, scope, id)
	if err != nil || in.Status != checkpoint.Open || in.Prompt == nil {
		return
	}
	_ = a.face.Answer(ctx, gate.AnswerRequest{
		Interaction: id, Round: in.Prompt.Round, Answers: cancels(in.Prompt), Scope: scope, By: "who cancelled the run",
	})
}

// cancels are the answers that cancel a prompt.
func cancels(p *gate.Prompt) gate.Answers {
	answers := gate.Answers{}
	for _, q := range p.Questions {
		answers[q.ID] = interrupt.Cancel(q.ID)
	}
	return answers
}
