package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// How a conversation ends that was not brought to its end. In the first two nothing is lost: the
// next run goes on.
var (
	errInterrupted = errors.New("interrupted; everything answered so far is kept: run it again to go on")
	errInputEnded  = errors.New("the input ended; the question is kept: run it again to go on")
	errTold        = errors.New("the person was told of the failure")
)

// A person answers prompts: at a terminal, or at the other end of a pipe.
type person interface {
	// answer returns one payload for every question. Its error is errInterrupted, errInputEnded, or
	// a reason why nobody could be asked.
	answer(ctx context.Context, p *gate.Prompt) (gate.Answers, error)
	// refused says why the answer does not fit. The same prompt comes again.
	refused(e *gate.Error) error
	// ended shows the result, or why there is none.
	ended(result json.RawMessage, e *gate.Error) error
}

// callFor is the call that begins a release, and as well the one that goes on with it after a
// restart.
func callFor(r release) (gate.Call, error) {
	arguments, err := json.Marshal(r)
	if err != nil {
		return gate.Call{}, fmt.Errorf("write arguments: %w", err)
	}
	return gate.Call{
		Tool: "release", Arguments: arguments, Scope: scope, Session: "terminal", StartID: startID(r),
		Facilities: []interrupt.Facility{
			interrupt.FacilityPermission, interrupt.FacilitySelection, interrupt.FacilityForm, interrupt.FacilityURL,
		},
	}, nil
}

// converse makes the call, and the same call again with the token and the answers of every prompt,
// until there is an end.
func converse(ctx context.Context, g *gate.Gate, call gate.Call, who person) error {
	outcome, err := g.Invoke(ctx, call)
	for err == nil && outcome.Prompt != nil {
		call.Token = outcome.Prompt.Token
		if call.Answers, err = who.answer(ctx, outcome.Prompt); err != nil {
			return err
		}
		next, failure := g.Invoke(ctx, call)
		if e, ok := errors.AsType[*gate.Error](failure); ok && e.StillOpen {
			if err := who.refused(e); err != nil {
				return err
			}
			continue
		}
		outcome, err = next, failure
	}
	e, ok := errors.AsType[*gate.Error](err)
	switch {
	case err == nil:
		return who.ended(outcome.Result, nil)
	case !ok:
		return err
	case e.Code.Retryable() && ctx.Err() != nil:
		return errInterrupted
	}
	if err := who.ended(nil, e); err != nil || e.Code.Decision() || e.Ended.Decision() {
		return err
	}
	if cause := e.Unwrap(); cause != nil { // private to the host, which is us
		return cause
	}
	return errTold
}
