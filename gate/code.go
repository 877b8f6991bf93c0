package gate

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/interrupt"
)

// A Code says how a request ended that brought neither a result nor a prompt. The set is closed.
// Codes are errors themselves, so that callers branch with errors.Is(err, gate.ErrBusy), also on an
// [*Error] that was rebuilt from a stored or transmitted code.
type Code string

// The codes (R36).
const (
	ErrConfirmationRequired Code = "confirmation_required" // a person is needed and this host cannot ask one
	ErrBusy                 Code = "busy"                  // another request is at it, or there is no room; try again
	ErrInteractionLimit     Code = "interaction_limit"     // the tool asked more often than it may
	ErrExpired              Code = "expired"               // the deadline passed
	ErrInvalidArguments     Code = "invalid_arguments"     // the arguments do not fit the tool
	ErrInvalidQuestion      Code = "invalid_question"      // the tool raised something that cannot be shown
	ErrInvalidAnswer        Code = "invalid_answer"        // the answer does not fit; the question stays open
	ErrAnswerConflict       Code = "answer_conflict"       // the round was answered otherwise
	ErrAlreadyAnswered      Code = "already_answered"      // the round was answered otherwise, by another road
	ErrAlreadyCompleted     Code = "already_completed"     // the work is done; its result is not kept
	ErrInvalidContinuation  Code = "invalid_continuation"  // the token is not good for this request
	ErrRevisionChanged      Code = "revision_changed"      // the tool, or the type of its question, changed since it asked
	ErrUnsupportedForm      Code = "unsupported_form"      // a bridge's: its protocol cannot carry a form of that kind
	ErrTooLarge             Code = "too_large"             // an input is over its bound
	ErrUnknownTool          Code = "unknown_tool"          // there is no such tool
	ErrUnauthorized         Code = "unauthorized"          // the principal may not
	ErrStartUnknown         Code = "start_unknown"         // the start ID was never used
	ErrStartConflict        Code = "start_conflict"        // the start ID was used for something else; a run with that key has not ended
	ErrRejected             Code = "rejected"              // the person chose to reject
	ErrDeclined             Code = "declined"              // the person declined to answer
	ErrCancelled            Code = "cancelled"             // the person broke off
	ErrFailed               Code = "failed"                // the tool failed
	ErrRecoveryOnly         Code = "recovery_only"         // the tool asked while it was to recover
	ErrOutcomeUnknown       Code = "outcome_unknown"       // an attempt was made and may have had its effects
	ErrUnavailable          Code = "unavailable"           // the store or the gate serves nothing now; try again
)

// Error returns the code.
func (c Code) Error() string { return string(c) }

// Retryable reports whether the same request can help later, without anybody doing anything else.
func (c Code) Retryable() bool { return c == ErrBusy || c == ErrUnavailable }

// Decision reports whether a person decided against it: rejected, declined or cancelled.
func (c Code) Decision() bool { return c == ErrRejected || c == ErrDeclined || c == ErrCancelled }

// An Error is a [Code] with public words. Nothing in its text is private: no cause, no argument, no
// answer, no token.
type Error struct {
	Code    Code
	Message string
	Link    string // of the tool's own failure or guidance; may be empty
	// StillOpen is set where it was seen that the question waits on and that this answer changed
	// nothing: the same token is good for another one. A request that is refused before its
	// interaction is looked at does not set it.
	StillOpen bool
	// Question and Path are the question whose answer does not fit and the place in its payload, a
	// JSON Pointer, where that is known.
	Question string
	Path     string
	// Missing is the facility that the call does not have, where Code is ErrConfirmationRequired
	// for want of one: a face says in its protocol's own words what its client would have to be
	// able to.
	Missing interrupt.Facility
	// Interaction is the recorded interaction, zero where there is none, or the request was refused
	// before it was looked at.
	Interaction checkpoint.ID
	// Ended is the recorded code of the last attempt, where Code is ErrOutcomeUnknown or
	// ErrAlreadyCompleted and it is known.
	Ended Code

	cause error
}

func (e *Error) Error() string {
	if e.Message == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Message
}

// Is reports whether target is the error's code, or the published sentinel, person's decision or
// outcome of a step that stands for it.
func (e *Error) Is(target error) bool {
	switch target {
	case interrupt.ErrInvalidPayload:
		return e.Code == ErrInvalidAnswer
	case interrupt.ErrInterruptNotFound:
		return e.Code == ErrInvalidContinuation
	case interrupt.ErrInvalidQuestion:
		return e.Code == ErrInvalidQuestion
	case interrupt.ErrRejected:
		return e.Code == ErrRejected
	case interrupt.ErrDeclined:
		return e.Code == ErrDeclined
	case interrupt.ErrCancelled:
		return e.Code == ErrCancelled
	case interrupt.ErrOutcomeUnknown:
		return e.Code == ErrOutcomeUnknown
	}
	return target == error(e.Code)
}

// Unwrap returns the private cause, for the host in this process only; it may be nil.
func (e *Error) Unwrap() error { return e.cause }

func fail(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// because adds the private cause.
func (e *Error) because(cause error) *Error {
	e.cause = cause
	return e
}

// copy is for an error that the handler has as well.
func (e *Error) copy() *Error {
	copied := *e
	return &copied
}

// unavailable is a store that does not serve, or does not take what is written. What is wrong with
// it is the private cause.
func unavailable(cause error) *Error {
	switch {
	case errors.Is(cause, checkpoint.ErrInvalidBatch): // trying again does not help
		return fail(ErrTooLarge, "the store takes no record as large as this one").because(cause)
	case errors.Is(cause, checkpoint.ErrReadOnly):
		return readOnly().because(cause)
	case errors.Is(cause, context.Canceled), errors.Is(cause, context.DeadlineExceeded):
		return fail(ErrUnavailable, "the request was broken off before the store had served it").because(cause)
	}
	return fail(ErrUnavailable, "the store does not serve").because(cause)
}

// on names the interaction.
func (e *Error) on(id checkpoint.ID) *Error {
	e.Interaction = id
	return e
}
