package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// maxCancelled is how often the questions of one run are cancelled: its tools and its model can ask
// again each time.
const maxCancelled = 16

// begin begins a run that is alone in its conversation. While another run of the conversation has
// not ended, it refuses, or brings the other run to its end first. The refusal wraps the gate's,
// whose Interaction is the other run.
func (a *Agent) begin(ctx context.Context, s Start, begun gate.RunStart, tell func(Event)) (*gate.Run, error) {
	for range maxCancelled {
		run, err := a.face.BeginRun(ctx, begun)
		var taken *gate.Error
		if !errors.As(err, &taken) || taken.Code != gate.ErrStartConflict {
			return run, err
		}
		other := taken.Interaction
		if !s.CancelOpen {
			return nil, fmt.Errorf("%w: run %s: %w", ErrConversationOpen, other, taken)
		}
		if err := a.cancelOpen(ctx, s, other, tell); err != nil {
			return nil, fmt.Errorf("cancel run %s: %w", other, err)
		}
	}
	return nil, fmt.Errorf("%w: others begin again and again", ErrConversationOpen)
}

// cancelOpen cancels every question of a run until it ends. What its models and tools do then is
// told. That it goes on and stops is not: it is not the run that the caller started.
func (a *Agent) cancelOpen(ctx context.Context, s Start, id checkpoint.ID, tell func(Event)) error {
	tellRest := func(e Event) {
		if _, is := e.(RunStarted); !is {
			tell(e)
		}
	}
	for range maxCancelled {
		run, err := a.Inspect(ctx, s.Scope, id)
		if err != nil {
			return err
		}
		if run.Status == Finished || run.Status == Failed {
			return nil
		}
		r := Resume{Scope: s.Scope, Run: id, Facilities: s.Facilities}
		for _, q := range run.Questions {
			r.Answers = append(r.Answers, Answer{Interaction: q.Interaction, By: "a new message", Answers: cancelled(q.Prompt)})
		}
		stopped, err := a.resume(ctx, r, tellRest)
		if err != nil {
			return err
		}
		for _, p := range stopped.Problems {
			switch { // what would be the same again every time
			case errors.Is(p.Err, gate.ErrUnauthorized):
				return p.Err
			case errors.Is(p.Err, gate.ErrCancelled): // by a tool that keeps its question open (R17)
				_, err := a.cancelRun(ctx, s.Scope, id, tellRest)
				return err
			}
		}
	}
	return fmt.Errorf("%w: it asks again and again", ErrConversationOpen)
}
