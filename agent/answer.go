package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// An Answer answers one prompt of the run, whole: every question of it has its answer in Answers.
type Answer struct {
	Interaction checkpoint.ID // the prompt's
	// Token is the prompt's where the run's caller answers. Where it is empty, By answers: somebody
	// else, by another road, who is authorized as an answerer (R24).
	Token   gate.Token `json:"-"` // so that it does not get into a log by accident
	By      string
	Answers gate.Answers
}

// give records the answers that have no token, and returns the others by start ID: those are given
// with their calls. What is refused here is a problem, and the run goes on without it.
func (a *Agent) give(ctx context.Context, r Resume, known notes) (byStart map[string]Answer, refused []Problem, err error) {
	byStart = map[string]Answer{}
	for _, answer := range r.Answers {
		wrap := func(err error) error { return fmt.Errorf("answer %s: %w", answer.Interaction, err) }
		id := answer.Interaction.String()
		i := slices.IndexFunc(known.Calls, func(e envelope) bool { return e.Interaction == id })
		if i < 0 && slices.Contains(known.Past, id) { // a caller that lost the reply to it repeats its Resume
			why := &gate.Error{Code: gate.ErrAlreadyAnswered, Message: "the call has gone on with an answer"}
			refused = append(refused, Problem{Interaction: answer.Interaction, Err: why})
			continue
		}
		if i < 0 {
			return nil, nil, wrap(fmt.Errorf("%w: the run has no such question", gate.ErrInvalidContinuation))
		}
		e := known.Calls[i]
		if _, twice := byStart[e.Start]; twice {
			return nil, nil, wrap(fmt.Errorf("%w: it is answered twice", gate.ErrInvalidAnswer))
		}
		if answer.Token != "" {
			byStart[e.Start] = answer
			continue
		}
		var no *gate.Error
		err := a.answer(ctx, r.Scope, answer)
		switch {
		case errors.As(err, &no) && no.Code != gate.ErrUnavailable:
			refused = append(refused, Problem{Origin: e.origin(), Interaction: answer.Interaction, Err: err})
		case err != nil:
			return nil, nil, wrap(err)
		}
	}
	return byStart, refused, nil
}

// answer records an answer that has no token (R24).
func (a *Agent) answer(ctx context.Context, scope string, answer Answer) error {
	s, err := a.face.InspectID(ctx, scope, answer.Interaction)
	if err != nil {
		return err
	}
	request := gate.AnswerRequest{Interaction: answer.Interaction, Answers: answer.Answers, Scope: scope, By: answer.By}
	if s.Prompt != nil {
		request.Round = s.Prompt.Round
	}
	return a.face.Answer(ctx, request)
}
