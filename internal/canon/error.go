package canon

import (
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// An Error says what is wrong with a JSON text, and where: why it has no canonical form or, in
// package schema, why it does not fit. It quotes no value, and is never long.
type Error struct {
	Path   string // JSON Pointer to the place, cut where it is very long; empty for the whole
	Reason string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + ": " + e.Reason
}

// refuse returns the error for a place. The pointer is made of the input's own names, and so is cut
// to a length.
func refuse(at jsontext.Pointer, reason string) error {
	return &Error{Path: Clip(string(at), 256), Reason: reason}
}

// translate turns the tokenizer's error into one of this package. The tokenizer's own reasons are
// not used: they quote what stands there, which can be part of an answer.
func translate(err error) error {
	if errors.Is(err, io.EOF) {
		return &Error{Reason: "no value"}
	}
	syntactic, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return &Error{Reason: "not readable"}
	}
	switch syntactic.Err {
	case io.ErrUnexpectedEOF:
		return refuse(syntactic.JSONPointer, "unexpected end")
	case jsontext.ErrDuplicateName:
		return refuse(syntactic.JSONPointer, "duplicate name")
	case jsontext.ErrNonStringName:
		return refuse(syntactic.JSONPointer, "name is not a string")
	}
	return refuse(syntactic.JSONPointer, "not well formed")
}
