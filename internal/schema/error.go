package schema

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-go/parley/internal/canon"
)

// An Error says what is wrong with a schema or a document, and where. It does not quote the value
// that stands there.
type Error = canon.Error

// at returns the error for a place, given as the names and indexes that lead to it; nil is the
// whole.
func at(place []string, reason string) *Error {
	var p jsontext.Pointer
	for _, token := range place {
		p = p.AppendToken(token)
	}
	return &Error{Path: canon.Clip(string(p), 256), Reason: reason}
}
