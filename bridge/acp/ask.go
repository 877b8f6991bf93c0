package acpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/internal/elicit"
	"github.com/parley-go/parley/interrupt"
)

// What ends a question that the client did not answer.
var (
	errElsewhere = errors.New("the question was answered by another road, or is over")
	errOverdue   = errors.New("the time to answer is over")
)

// maxInvalid is how many answers in a row that are none end a question. Some are an editor's fault,
// and come again; some a person's, who chooses another option then.
const maxInvalid = 3

// An asking puts one prompt to the client, question by question.
type asking struct {
	subject
	turn     *Turn
	scope    string
	answers  gate.Answers
	reasons  map[string]string // why a former answer was not accepted, by question id
	refused  map[string]bool   // what the client did not take as an elicitation, by question id
	invalid  int               // answers that were none, in a row
	fallback bool              // one of the answers was given to a fallback
	pages    []gate.Question   // URLs that the person opened
}

// all asks what has no answer yet. The error is why there is none: errElsewhere, errOverdue, the
// cause of the turn's end, that of ctx's, or an *Error of the gate's.
func (a *asking) all(ctx context.Context) error {
	for _, q := range a.prompt.Questions {
		if a.answers[q.ID] != nil {
			continue
		}
		payload, err := a.one(ctx, q)
		if err != nil {
			return err
		}
		a.answers[q.ID] = payload
		action, _, err := interrupt.ActionOf(q.Type, payload)
		switch {
		case err != nil: // the gate says what is wrong with it
		case action == interrupt.ActionCancel:
			a.turn.cancel(errBrokenOff) // of the turn: whoever breaks off wants no more of it
			return context.Cause(a.turn.ctx)
		case action == interrupt.ActionAccept && q.Type == interrupt.TypeURL:
			a.pages = append(a.pages, q)
		}
	}
	return nil
}

// cancelled is the answer to all of a prompt of somebody who broke off.
func cancelled(p *gate.Prompt) gate.Answers {
	answers := gate.Answers{}
	for _, q := range p.Questions {
		answers[q.ID] = interrupt.Cancel(q.ID)
	}
	return answers
}

// goesOn reports whether the answers let the call go on, as far as can be told here.
func (a *asking) goesOn() bool {
	for _, q := range a.prompt.Questions {
		asked, err := q.Interrupt()
		if err != nil {
			return false
		}
		action, err := interrupt.Apply(asked, a.answers[q.ID])
		if no, ok := asked.(interrupt.Rejecter); err != nil || action != interrupt.ActionAccept || ok && no.Rejected() {
			return false
		}
	}
	return true
}

// one asks one question until there is an answer of a form that can be one.
func (a *asking) one(ctx context.Context, q gate.Question) (json.RawMessage, error) {
	for {
		w, result, err := a.put(ctx, q)
		if refused, ok := errors.AsType[*acp.RequestError](err); ok {
			switch {
			case refused.Code == codeCancelled: // some clients say so instead of the outcome
				return interrupt.Cancel(q.ID), nil
			case a.otherwise(ctx, w, q, refused):
				continue
			}
			return nil, a.unanswered("the client did not bring an answer from anybody")
		}
		if err != nil {
			return nil, err
		}
		payload, err := w.read(result)
		if err == nil {
			a.fallback = a.fallback || w.fallback
			return payload, nil
		}
		if !a.again(q.ID, err.Error()) {
			e := &gate.Error{Code: gate.ErrInvalidAnswer, Message: "the client's answers are none", StillOpen: true}
			e.Question, e.Interaction = q.ID, a.prompt.Interaction
			return nil, e
		}
	}
}

// otherwise reports whether the client refused an elicitation, so that the question is asked in
// another form, or not at all: that question where its params were refused, and all from now on
// where the client does not know the method. A mode that it lacks is one of the former:
// https://agentclientprotocol.com/protocol/v1/elicitation. What it says of that can hold what the
// person typed, and stays with the host.
func (a *asking) otherwise(ctx context.Context, w wireQuestion, q gate.Question, refused *acp.RequestError) bool {
	log := a.turn.bridge.opts.Logger.With("tool", a.prompt.Tool, "type", q.Type, "number", refused.Code)
	if w.method != acp.ClientMethodElicitationCreate || refused.Code != codeNoMethod && refused.Code != codeInvalidParams {
		log.WarnContext(ctx, "a client did not answer a question", "err", canon.Clip(refused.Message, 200))
		return false
	}
	log.WarnContext(ctx, "a client refused an elicitation of a mode that it declared")
	a.refused[q.ID] = true
	return true
}

// again reports whether the question is asked once more; "" is all of the prompt's.
func (a *asking) again(question, reason string) bool {
	a.invalid++
	for _, q := range a.prompt.Questions {
		if question == "" || q.ID == question {
			delete(a.answers, q.ID)
			a.reasons[q.ID] = canon.Clip(reason, elicit.MaxReason)
		}
	}
	return a.invalid < maxInvalid
}

func (a *asking) unanswered(message string) error {
	return &gate.Error{Code: gate.ErrConfirmationRequired, Message: message, StillOpen: true, Interaction: a.prompt.Interaction}
}

// form is how the client is asked the question now.
func (a *asking) form(q gate.Question) (wireQuestion, error) {
	can := a.turn.bridge.capabilities()
	if a.refused[q.ID] {
		can = capabilities{}
	}
	w, err := a.turn.bridge.question(a.subject, q, can, a.reasons[q.ID])
	if err != nil {
		return w, a.unanswered("the client cannot be asked: " + err.Error())
	}
	return w, nil
}

// put waits in line, sends the request and waits for its result. The end of the turn counts before
// a result that came in the same moment. Before all else that ends the wait a result counts, and
// the gate says what it is good for: it knows the deadline and the other roads.
func (a *asking) put(ctx context.Context, q gate.Question) (w wireQuestion, result json.RawMessage, err error) {
	waiting, end := context.WithCancelCause(a.turn.ctx)
	defer end(nil)
	defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })()
	if !a.prompt.Expires.IsZero() {
		left := a.prompt.Expires.Sub(a.turn.bridge.opts.Now())
		defer time.AfterFunc(left, func() { end(errOverdue) }).Stop()
	}
	leave, err := a.turn.session.line.enter(waiting, a.call)
	if err != nil {
		return w, nil, a.ended(ctx, waiting)
	}
	defer leave()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		a.watch(waiting, end)
	}()
	defer func() { end(nil); <-watched }()
	if a.elsewhere(ctx) { // while it stood in line
		return w, nil, errElsewhere
	}
	if waiting.Err() != nil { // the SDK sends what is over, and then that it is
		return w, nil, a.ended(ctx, waiting)
	}
	if w, err = a.form(q); err != nil { // what the client can do may have changed while it stood in line
		return w, nil, err
	}
	result, err = a.turn.bridge.peer.CallExtension(waiting, extension+w.method, w.params)
	if twoWays(err) {
		result, err = nil, nil // which is no answer, as what it stands for
	}
	if e, ok := errors.AsType[*acp.RequestError](err); ok && e.Code == codeNoMethod && w.method == acp.ClientMethodElicitationCreate {
		a.turn.bridge.withoutElicitation() // before the next in line is asked
	}
	if err != nil {
		a.turn.bridge.givenUp()
	}
	if a.turn.ctx.Err() != nil || err != nil && waiting.Err() != nil {
		return w, nil, a.ended(ctx, waiting)
	}
	return w, result, err
}

// ended is why the wait is over.
func (a *asking) ended(ctx, waiting context.Context) error {
	switch {
	case a.turn.ctx.Err() != nil:
		return context.Cause(a.turn.ctx)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return context.Cause(waiting)
}

// watch ends the wait where the question was answered by another road: then it is withdrawn.
func (a *asking) watch(ctx context.Context, end context.CancelCauseFunc) {
	tick := time.NewTicker(a.turn.bridge.opts.PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if a.elsewhere(ctx) {
				end(errElsewhere)
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// elsewhere reports whether the round is no longer open. Where it cannot be told it is taken to be.
func (a *asking) elsewhere(ctx context.Context) bool {
	s, err := a.turn.bridge.face.InspectID(context.WithoutCancel(ctx), a.scope, a.prompt.Interaction)
	if err != nil {
		return errors.Is(err, gate.ErrInvalidContinuation)
	}
	return s.Status != checkpoint.Open || s.Prompt == nil || s.Prompt.Round != a.prompt.Round
}
