package interrupt

import "errors"

// What can be wrong with an answer, a question or an update. Callers find them with errors.Is; the
// error that wraps them says what and where.
var (
	// ErrInterruptNotFound: no question with that id is open.
	ErrInterruptNotFound = errors.New("interrupt not found")
	// ErrInvalidPayload: an answer does not fit its question. The question stays open.
	ErrInvalidPayload = errors.New("invalid payload")
	// ErrInvalidQuestion: a question cannot be put to anybody as it stands.
	ErrInvalidQuestion = errors.New("invalid question")
	// ErrInvalidUpdate: an update of a handler's progress is not one that a host can be given.
	ErrInvalidUpdate = errors.New("invalid update")
)

// What a person decided against, as [Ask] returns it. They hold no question: a handler that returns
// one of them unchanged ends with that outcome, and one that wants to go on looks with errors.Is.
var (
	// ErrRejected: the person chose an option that rejects.
	ErrRejected = errors.New("rejected by the person")
	// ErrDeclined: the person declined to answer.
	ErrDeclined = errors.New("declined by the person")
	// ErrCancelled: the person, or the client for them, broke off.
	ErrCancelled = errors.New("cancelled by the person")
)

// ErrRunEnded is returned by [Ask], [Once] and their kin on the context of a handler that has
// already returned.
var ErrRunEnded = errors.New("the handler has already returned")

// ErrNoRun is returned by [Progress] on a context that is not that of a handler: one that no gate
// made, or that a gate gave to a callback of the host.
var ErrNoRun = errors.New("the context is not that of a handler that a gate runs")

// A QuestionError says which part of a question is not fit to be shown. It matches
// [ErrInvalidQuestion].
type QuestionError struct {
	Type   string // the question's type name
	Path   string // JSON Pointer into the question, or the name of a field; empty for the whole
	Reason string
}

func (e *QuestionError) Error() string { return describe(e.Type+" question", e.Path, e.Reason) }

// Unwrap returns ErrInvalidQuestion.
func (e *QuestionError) Unwrap() error { return ErrInvalidQuestion }

// A PayloadError says which part of an answer does not fit its question. It matches
// [ErrInvalidPayload].
type PayloadError struct {
	Type   string // the question's type name
	Path   string // JSON Pointer into the payload; empty for the whole
	Reason string
}

func (e *PayloadError) Error() string { return describe("answer to "+e.Type, e.Path, e.Reason) }

// Unwrap returns ErrInvalidPayload.
func (e *PayloadError) Unwrap() error { return ErrInvalidPayload }

// An UpdateError says which part of an [Update] is not valid. It matches [ErrInvalidUpdate].
type UpdateError struct {
	Field  string // completed, total or message
	Reason string
}

func (e *UpdateError) Error() string { return describe("progress update", e.Field, e.Reason) }

// Unwrap returns ErrInvalidUpdate.
func (e *UpdateError) Unwrap() error { return ErrInvalidUpdate }

// A privateError is an error of this package with a cause that is not told.
type privateError struct{ public, cause error }

func (e *privateError) Error() string   { return e.public.Error() }
func (e *privateError) Unwrap() []error { return []error{e.public, e.cause} }

func describe(what, path, reason string) string {
	if path == "" {
		return what + ": " + reason
	}
	return what + ": " + path + ": " + reason
}
