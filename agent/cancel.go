package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// errCancelled is what a model returns in a run that is being cancelled: it is not asked.
var errCancelled = errors.New("the run is being cancelled")

// closed is [gate.Call.Over] of calls in a run that is being cancelled.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Cancel ends a run for good. Its open questions are recorded as cancelled, and their tools are
// told so, with a context that is cancelled; no model is asked. The run has failed then, with
// [gate.ErrCancelled].
//
// Cancel also ends a run that cannot go on, because its agent has changed or a tool is gone. A run
// that has ended stays as it is. A run that goes on elsewhere is [gate.ErrBusy]: first cancel the
// context with which it goes on.
//
// Three kinds of question stay until they expire, and nothing follows from an answer to them: of a
// tool that is gone, of one that keeps its questions open, and one that was answered by another
// road and not carried out.
func (a *Agent) Cancel(ctx context.Context, scope string, run checkpoint.ID) *Events {
	return eventsOf(ctx, func(ctx context.Context, tell func(Event)) (*Run, error) { return a.cancelRun(ctx, scope, run, tell) })
}

func (a *Agent) cancelRun(ctx context.Context, scope string, id checkpoint.ID, tell func(Event)) (*Run, error) {
	run, ended, err := a.retake(ctx, scope, id)
	if err != nil {
		return ended, fmt.Errorf("cancel run %s: %w", id, err)
	}
	if ended != nil {
		return ended, nil
	}
	// A question has to be open to be cancelled, and out of band every one can be. Nobody is asked.
	g := a.going(ctx, run, scope, []interrupt.Facility{interrupt.FacilityOutOfBand}, tell)
	g.cancelled = true
	return a.goOn(ctx, g)
}

// breakOff ends a call of a run that is being cancelled. Where the call waits for a person its
// question is cancelled; any other call is not carried out.
func (g *going) breakOff(ctx context.Context, e envelope, c gate.Call) (reply, error) {
	g.done(e)
	broken := &gate.Error{Code: gate.ErrCancelled}
	s, err := g.face.Inspect(ctx, g.scope, e.Start)
	if err == nil && s.Status == checkpoint.Open {
		c.Over = closed
		outcome, err := g.face.Invoke(ctx, c) // shows the question again, with its token
		if err == nil && outcome.Prompt != nil {
			c.Token, c.Answers = outcome.Prompt.Token, cancelled(outcome.Prompt)
			_, err = g.face.Invoke(ctx, c)
		}
		if failed, ok := errors.AsType[*gate.Error](err); ok {
			broken = failed
		}
	}
	words, _ := told(&gate.Error{Code: gate.ErrCancelled})
	if text, ok := told(broken); ok {
		words = text
	}
	return reply{words: words, code: endOf(broken)}, nil
}

// cancelled is the answer that cancels a prompt.
func cancelled(p *gate.Prompt) gate.Answers {
	answers := gate.Answers{}
	for _, q := range p.Questions {
		answers[q.ID] = interrupt.Cancel(q.ID)
	}
	return answers
}

// finishCancelled records that the run was cancelled, whatever eino came to. It also cancels the
// questions to whose tools eino did not come.
func (g *going) finishCancelled(ctx context.Context) (*Run, error) {
	id := g.run.ID()
	run := &Run{ID: id, Status: Failed, Conversation: g.noted.Conversation, Message: "the run was cancelled"}
	for _, e := range g.noted.Calls {
		interaction, err := checkpoint.ParseID(e.Interaction)
		if err != nil {
			continue // the call does not wait for a person
		}
		s, err := g.face.InspectID(ctx, g.scope, interaction)
		if err != nil || s.Status != checkpoint.Open {
			continue
		}
		request := gate.AnswerRequest{Interaction: interaction, Round: s.Prompt.Round, Scope: g.scope, Answers: cancelled(s.Prompt)}
		// What is refused for good, such as the question of a tool that is gone or keeps it open,
		// is no reason to keep the run: nothing follows from an answer to it any more.
		var refused *gate.Error
		if err := g.face.Answer(ctx, request); err != nil && (!errors.As(err, &refused) || refused.Code.Retryable()) {
			return nil, fmt.Errorf("cancel run %s: %w", id, err)
		}
	}
	notes, err := json.Marshal(notes{V: notesVersion, Conversation: g.noted.Conversation})
	if err == nil {
		err = g.run.Finish(ctx, gate.RunEnd{Code: gate.ErrCancelled, Message: run.Message, Notes: notes})
	}
	if err != nil {
		return nil, fmt.Errorf("cancel run %s: %w", id, err)
	}
	return run, nil
}
