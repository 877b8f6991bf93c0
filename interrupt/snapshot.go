package interrupt

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/parley-go/parley/internal/canon"
)

// maxBody bounds what is looked at when a question is raised, in bytes; whoever stores it has a
// smaller bound.
const maxBody = 16 << 20

// A Question is the snapshot of an interrupt at the moment it was raised.
type Question struct {
	Type     string
	Version  int // of Body, where the type is a [Versioned] one
	Key      string
	Lifetime time.Duration
	Body     json.RawMessage // as serialized
	Digest   [32]byte        // of the type and the canonical form of Body
}

// Snapshot checks that a question is fit to be raised and returns what it shows. The error matches
// [ErrInvalidQuestion]: the question is nil, of a type that is not registered, not valid (every
// type's zero value is not), does not serialize to one JSON value, or presents itself as what
// cannot be shown (R8, R14).
func Snapshot(q Interrupt) (Question, error) {
	if v := reflect.ValueOf(q); q == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return Question{}, &QuestionError{"unknown", "", "must not be nil"}
	}
	typeName := q.TypeName()
	is, ok := registered(typeName)
	switch {
	case !ok:
		return Question{}, &QuestionError{typeName, "", "type is not registered"}
	case is.name != typeName:
		return Question{}, &QuestionError{typeName, "", fmt.Sprintf("is a former name of %.64q", is.name)}
	}
	if v, ok := q.(Validator); ok {
		if err := v.Validate(); err != nil {
			return Question{}, asQuestionError(typeName, err)
		}
	}
	body, err := q.Serialize()
	if err != nil {
		return Question{}, asQuestionError(typeName, err)
	}
	canonical, err := canon.JSON(body, &canon.Limits{Bytes: maxBody})
	if err != nil {
		return Question{}, &QuestionError{typeName, "", "does not serialize to JSON: " + err.Error()}
	}
	s := Question{
		Type: typeName, Version: is.version, Body: body, Digest: canon.Digest(append([]byte(typeName+"\x00"), canonical...)),
	}
	var shown Interrupt
	if !own(q) {
		back, err := Rehydrate(typeName, body)
		if err != nil { // nobody could answer it
			return Question{}, err
		}
		if shown, err = Presented(back); err != nil {
			return Question{}, err
		}
	}
	if k, ok := q.(Keyed); ok {
		s.Key = k.QuestionKey()
	}
	if s.Lifetime, err = shortestLifetime(q, shown); err != nil {
		return Question{}, err
	}
	return s, nil
}

// shortestLifetime is the least that the question and what is shown in its place, where there is
// something, allow.
func shortestLifetime(q, shown Interrupt) (time.Duration, error) {
	var shortest time.Duration
	for _, limited := range []Interrupt{q, shown} {
		l, ok := limited.(Limited)
		if !ok {
			continue
		}
		lifetime := l.QuestionLifetime()
		if lifetime < 0 {
			return 0, &QuestionError{q.TypeName(), "lifetime", "must not be negative"}
		}
		if lifetime > 0 && (shortest == 0 || lifetime < shortest) {
			shortest = lifetime
		}
	}
	return shortest, nil
}
