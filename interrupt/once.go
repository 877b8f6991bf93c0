package interrupt

import (
	"context"
	"encoding/json"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/internal/resume"
)

// OnceOptions are the options of a step. Nil and the zero value are the documented default.
type OnceOptions[T any] struct {
	// Idempotent says that the step may run again, with the same step ID, where its result was not
	// recorded. It has no start mark, which saves a commit. Default: it is begun at most once.
	Idempotent bool
	// Check finds out how a step ended that was begun in an earlier run, or in this one, and has no
	// recorded result: done with its result, or not done, and then the step runs again with the
	// same step ID. An error of its is returned by Once, and leaves the step as it is. Default: the
	// step is [ErrOutcomeUnknown]. An idempotent step has nothing to check.
	Check func(ctx context.Context, stepID string) (result T, done bool, err error)
}

// Once runs fn as a step of the handler and records its result, as JSON, durably before it returns
// it. When the handler runs again for the same interaction, Once returns the recorded result and
// does not run fn:
//
//	order := func(ctx context.Context, stepID string) (Order, error) {
//		return shop.Order(ctx, in.Item, stepID) // stepID as the shop's idempotency key
//	}
//	ordered, err := interrupt.Once(ctx, "order", order, nil)
//
// The key names the step within the interaction. The step ID is made of both; it is the same in
// every run, and no secret.
//
// Before fn runs, a start mark is committed. A step that has its mark and no result was begun, and
// may have had its effect: its process died, or fn failed. Once then returns [ErrOutcomeUnknown],
// or what [OnceOptions.Check] finds out, and does not run fn. An error of fn is returned as it is,
// and nothing is recorded of it: whether fn did something before it failed only the application
// knows. [OnceOptions.Idempotent] is for a step that may run again.
//
// What Once returns is always what JSON keeps of the result. A result that JSON cannot carry, or
// that is larger than the gate's limit, is [ErrInvalidStep]; the step stays begun.
//
// Inside fn and Check nothing is asked, and no other step is run; where fn returns a question all
// the same, it is ErrInvalidStep. Several goroutines may run steps of different keys; a key that is
// being run is refused. On a context that no gate made Once is ErrInvalidStep and does not run fn.
// After the handler returned Once fails with [ErrRunEnded]; it does not record the result of a step
// that goes on after its handler.
//
// A call without a start ID is found again by the token of its first prompt. Where its process dies
// before that, its steps are lost with it, and the same call is a new one.
func Once[T any](
	ctx context.Context, key string, fn func(ctx context.Context, stepID string) (T, error), opts *OnceOptions[T],
) (T, error) {
	var none T
	var o OnceOptions[T]
	if opts != nil {
		o = *opts
	}
	steps, err := stepsOf(ctx, key)
	switch {
	case err != nil:
		return none, err
	case fn == nil:
		return none, invalidStep(key, "its function must not be nil")
	case o.Idempotent && o.Check != nil:
		return none, invalidStep(key, "it is idempotent and has a check")
	}
	step, err := steps.Open(ctx, key)
	if err != nil {
		return none, err
	}
	defer steps.Close(step)
	within := resume.Inside(ctx, step)
	switch {
	case step.State == resume.Done:
		return readStep[T](step, step.Result)
	case o.Idempotent || step.State == resume.Nothing:
	case o.Check == nil:
		return none, &StepError{Key: key, Reason: "it was begun before, and has no result", Err: ErrOutcomeUnknown}
	default:
		result, done, err := o.Check(within, step.ID)
		if err != nil {
			return none, stepFailure(key, err)
		}
		if done {
			return finishStep(ctx, steps, step, result)
		}
	}
	if !o.Idempotent {
		if err := steps.Begin(ctx, step); err != nil {
			return none, err
		}
	}
	result, err := fn(within, step.ID)
	if err != nil {
		return none, stepFailure(key, err)
	}
	return finishStep(ctx, steps, step, result)
}

func stepsOf(ctx context.Context, key string) (resume.Steps, error) {
	if outer := resume.StepOf(ctx); outer != "" {
		return nil, invalidStep(key, "it is inside of another one")
	}
	run := resume.From(ctx)
	if run == nil || run.Steps == nil {
		return nil, invalidStep(key, "the context is not a handler's under a gate")
	}
	return run.Steps, nil
}

func invalidStep(key, reason string) error {
	return &StepError{Key: key, Reason: reason, Err: ErrInvalidStep}
}

// stepFailure is the error of a step's function or check. A question in it must not become a
// prompt: what was answered would not come back to it.
func stepFailure(key string, err error) error {
	if kind := Classify(err).Kind; kind == KindPrompt || kind == KindMixed {
		return invalidStep(key, "a step asks nobody, and it returned a question")
	}
	return err
}

// finishStep returns what was recorded rather than what fn returned, so that every run goes on with
// the same.
func finishStep[T any](ctx context.Context, steps resume.Steps, step resume.Step, result T) (T, error) {
	var none T
	data, err := canon.Marshal(result)
	if err != nil {
		return none, &StepError{Key: step.Key, Reason: "its result cannot be written as JSON", Err: ErrInvalidStep, Cause: err}
	}
	recorded, err := readStep[T](step, data)
	if err != nil {
		return none, err
	}
	if err := steps.Finish(ctx, step, data); err != nil {
		return none, err
	}
	return recorded, nil
}

func readStep[T any](step resume.Step, data []byte) (T, error) {
	var result, none T
	if err := json.Unmarshal(data, &result); err != nil {
		return none, &StepError{Key: step.Key, Reason: "its result does not fit its type", Err: ErrInvalidStep, Cause: err}
	}
	return result, nil
}
