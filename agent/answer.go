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
	// Token is the prompt's where the run's caller answers. It is not in the answer's JSON. Where
	// it is empty, By answers: somebody else, by another road, who is authorized as an answerer
	// (R24). One of the two has to be there.
	Token   gate.Token `json:"-"` // not by accident into a log
	By      string
	Answers gate.Answers
}

// give records the answers that have no token, and keeps the others for their calls. What is
// refused here is a problem, and the run goes on without it.
func (g *going) give(ctx context.Context) error {
	g.answers = map[string]Answer{}
	for _, answer := range g.given {
		if err := g.giveOne(ctx, answer); err != nil {
			return fmt.Errorf("answer %s: %w", answer.Interaction, err)
		}
	}
	return nil
}

func (g *going) giveOne(ctx context.Context, answer Answer) error {
	id := answer.Interaction.String()
	i := slices.IndexFunc(g.noted.Calls, func(e envelope) bool { return e.Interaction == id })
	if i < 0 && slices.Contains(g.noted.Past, id) { // a caller that lost the reply to it repeats its Resume
		why := &gate.Error{Code: gate.ErrAlreadyAnswered, Message: "the call has gone on with an answer"}
		g.refused = append(g.refused, Problem{Interaction: answer.Interaction, Err: why})
		return nil
	}
	if i < 0 {
		return fmt.Errorf("%w: the run has no such question", gate.ErrInvalidContinuation)
	}
	e := g.noted.Calls[i]
	if _, twice := g.answers[e.Start]; twice {
		return fmt.Errorf("%w: it is answered twice", gate.ErrInvalidAnswer)
	}
	var err error
	switch {
	case len(answer.Answers) == 0: // with a token the gate takes that for a look at where the call stands
		err = &gate.Error{Code: gate.ErrInvalidAnswer, Message: "the answer is missing", Interaction: answer.Interaction, StillOpen: true}
	case answer.Token != "":
		g.answers[e.Start] = answer
		return nil
	case answer.By == "": // a token that got lost on the way is no other road
		err = &gate.Error{
			Code: gate.ErrUnauthorized, Message: "the answer has no token, and does not say who answers instead",
			Interaction: answer.Interaction, StillOpen: true,
		}
	default:
		err = g.record(ctx, answer)
	}
	var no *gate.Error
	if errors.As(err, &no) && no.Code != gate.ErrUnavailable {
		g.refused = append(g.refused, Problem{Origin: e.origin(), Interaction: answer.Interaction, Err: err})
		return nil
	}
	return err
}

// record records an answer that has no token (R24).
func (g *going) record(ctx context.Context, answer Answer) error {
	s, err := g.face.InspectID(ctx, g.scope, answer.Interaction)
	if err != nil {
		return err
	}
	request := gate.AnswerRequest{Interaction: answer.Interaction, Answers: answer.Answers, Scope: g.scope, By: answer.By}
	if s.Prompt != nil {
		request.Round = s.Prompt.Round
	}
	return g.face.Answer(ctx, request)
}
