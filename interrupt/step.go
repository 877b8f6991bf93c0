package interrupt

import (
	"errors"
	"fmt"
)

// What can be wrong with a step of [Once].
var (
	// ErrOutcomeUnknown: the step was begun before, or just now, and whether it had its effect is
	// not known. A handler that returns it unchanged ends with that outcome.
	ErrOutcomeUnknown = errors.New("outcome of the step is unknown")
	// ErrInvalidStep: the step cannot be run or recorded as it stands: a mistake of the handler's.
	ErrInvalidStep = errors.New("invalid step")
)

// A StepError says which step could not be run or recorded, and why. It matches Err:
// [ErrOutcomeUnknown], [ErrInvalidStep], [ErrRunEnded], the error of a context that ended before
// the step began, or, from a gate, its error for a store that does not serve and for a claim that
// was lost.
type StepError struct {
	Key    string
	Reason string
	Err    error
	// Cause is what is behind it, for the host; it may be nil.
	Cause error
}

func (e *StepError) Error() string {
	text := fmt.Sprintf("step %.64q: %v: %s", e.Key, e.Err, e.Reason)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns Err and the cause, where they are there.
func (e *StepError) Unwrap() (errs []error) {
	for _, err := range []error{e.Err, e.Cause} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
