package schema

import (
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-go/parley/internal/canon"
)

// An Error says what is wrong with a schema or a document, and where. It does not quote the value that stands there.
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

func fromCanon(err error) error {
	if e, ok := errors.AsType[*canon.Error](err); ok {
		return &Error{e.Path, e.Reason}
	}
	return &Error{"", "not readable"}
}

func at(place []string, reason string) *Error {
	var p jsontext.Pointer
	for _, token := range place {
		p = p.AppendToken(token)
	}
	return &Error{clip(string(p), 256), reason}
}

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
