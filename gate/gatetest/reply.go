package gatetest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/parley-go/parley/gate"
)

// A reply is what a request brought.
type reply struct {
	prompt *gate.Prompt
	result json.RawMessage
	err    error
}

func (r reply) code() gate.Code {
	var e *gate.Error
	if errors.As(r.err, &e) {
		return e.Code
	}
	return ""
}

// stillOpen reports whether the question waits on for another answer.
func (r reply) stillOpen() bool {
	var e *gate.Error
	return errors.As(r.err, &e) && e.StillOpen
}

// String is the reply in a report, with what only the host may see.
func (r reply) String() string {
	switch {
	case r.prompt != nil:
		return fmt.Sprintf("the prompt of round %d", r.prompt.Round)
	case r.err == nil:
		return "result " + clip(r.result)
	}
	text := r.err.Error()
	if cause := errors.Unwrap(r.err); cause != nil {
		text += fmt.Sprintf(" (cause: %v)", cause)
	}
	var panicked *gate.PanicError
	if errors.As(r.err, &panicked) {
		text += "\n" + string(panicked.Stack)
	}
	return text
}
