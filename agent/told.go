package agent

import (
	"fmt"

	"github.com/parley-go/parley/gate"
)

// told returns what the model is told of a call that ended without a result; ok is false where the
// error is no end of the call. The words do not invite the model to try the same again.
func told(e *gate.Error) (text string, ok bool) {
	switch endOf(e) {
	case gate.ErrRejected:
		return "A person was asked and rejected this call. It was not carried out. Do not make this call again.", true
	case gate.ErrDeclined:
		return "A person was asked about this call and declined to answer. It was not carried out. Do not make this call again.", true
	case gate.ErrCancelled:
		return "The person who was asked about this call broke off. It was not carried out. Do not make this call again.", true
	case gate.ErrExpired:
		return "Nobody answered the question about this call in time. It was not carried out. Do not make this call again.", true
	case gate.ErrUnauthorized:
		return "This call is not allowed here. It was not carried out. Do not make it again.", true
	case gate.ErrConfirmationRequired:
		return fmt.Sprintf("This call needs a person, and nobody can be asked here. It was not carried out. %s", e.Message), true
	case gate.ErrAlreadyCompleted:
		return "This call was carried out before, and its result was not kept. Do not make it again.", true
	case gate.ErrOutcomeUnknown:
		return fmt.Sprintf("It is not known whether this call had its effect: %s. Find that out before it is repeated.", e.Message), true
	case gate.ErrInvalidArguments:
		return fmt.Sprintf("The call was not carried out, its arguments do not fit: %s", e.Message), true
	case gate.ErrFailed, gate.ErrInvalidQuestion, gate.ErrInteractionLimit, gate.ErrTooLarge, gate.ErrRecoveryOnly:
		return fmt.Sprintf("The call failed: %s", e.Message), true
	}
	return "", false
}

// endOf is how the call ended: one that ended before with a person's no ends with that again.
func endOf(e *gate.Error) gate.Code {
	if e.Code == gate.ErrAlreadyCompleted && e.Ended.Decision() {
		return e.Ended
	}
	return e.Code
}
