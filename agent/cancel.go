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

// errCancelled is what models get, and agents in tools, in a run that is being cancelled.
var errCancelled = errors.New("the run is being cancelled")

// closed is the Over of calls in a run that is being cancelled.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Cancel ends a run for good, for somebody who wants no more of it: its open questions are recorded
// as cancelled, their tools are told, with a context that is cancelled, and no model is asked. It
// has failed with [gate.ErrCancelled] then. A run that has ended is as it is, and one that goes on
// elsewhere is [gate.ErrBusy]: cancel the context that it goes on with first.
//
// It ends what cannot go on, too: a run whose agent has changed, or of whose tools one is gone. The
// question of a tool that is gone or keeps it open stays open until it expires, and nothing follows
// from an answer to it; one that was answered by another road and not carried out stays so.
func (a *Agent) Cancel(ctx context.Context, scope string, run checkpoint.ID) Events {
	return eventsOf(ctx, func(ctx context.Context, tell func(Event)) (*Run, error) { return a.cancelRun(ctx, scope, run, tell) })
}

func (a *Agent) cancelRun(ctx context.Context, scope string, id checkpoint.ID, tell func(Event)) (*Run, error) {
	run, err := a.face.ResumeRun(ctx, scope, id)
	if errors.Is(err, gate.ErrAlreadyCompleted) {
		s, err := a.face.InspectRun(ctx, scope, id)
		if err != nil {
			return nil, fmt.Errorf("cancel run %s: %w", id, err)
		}
		return ended(s)
	}
	if err != nil {
		return nil, fmt.Errorf("cancel run %s: %w", id, err)
	}
	// Whoever is shown an open question here can answer it: nobody is asked.
	g := a.going(ctx, run, scope, []interrupt.Facility{interrupt.FacilityOutOfBand}, tell)
	g.cancelled = true
	return a.goOn(ctx, g)
}

// breakOff ends a call of a run that is being cancelled, where it waits for a person. One that does
// not is not carried out.
func (g *going) breakOff(ctx context.Context, e envelope, c gate.Call) (reply, error) {
	g.done(e)
	broken := &gate.Error{Code: gate.ErrCancelled}
	s, err := g.face.Inspect(ctx, g.scope, e.Start)
	if err == nil && s.Status == checkpoint.Open {
		c.Over = closed
		outcome, err := g.face.Invoke(ctx, c) // for its token
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
	return reply{words: words, code: broken.Code}, nil
}

// cancelled is the answer to a prompt of somebody who broke off.
func cancelled(p *gate.Prompt) gate.Answers {
	answers := gate.Answers{}
	for _, q := range p.Questions {
		answers[q.ID] = interrupt.Cancel(q.ID)
	}
	return answers
}

// finishCancelled records that the run was cancelled, whatever eino came to. Questions whose tools
// it did not come to are recorded as cancelled all the same.
func (g *going) finishCancelled(ctx context.Context) (*Run, error) {
	id := g.run.ID()
	run := &Run{ID: id, Status: Failed, Conversation: g.noted.Conversation, Message: "the run was cancelled"}
	for _, e := range g.noted.Calls {
		interaction, err := checkpoint.ParseID(e.Interaction)
		if err != nil {
			continue // the call waits for no person
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
