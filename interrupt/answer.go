package interrupt

import (
	"bytes"
	"errors"
)

// Check checks an answer against its question without changing the question. It returns what the
// answer does, and the question id that stands in it, which may be empty. The error matches
// [ErrInvalidPayload]. Decline and cancel are the same for every type; only accepted payloads reach
// a type's own code.
func Check(q Interrupt, payload []byte) (action Action, interruptID string, err error) {
	a, err := readAnswer(q.TypeName(), payload)
	if err != nil || a.Action != ActionAccept {
		return a.Action, a.InterruptID, err
	}
	if s, ok := settles(q); ok {
		return a.Action, a.InterruptID, s.fits(a)
	}
	if v, ok := q.(PayloadValidator); ok {
		return a.Action, a.InterruptID, asPayloadError(q.TypeName(), v.ValidatePayload(payload))
	}
	dup := Clone(q)
	if dup == nil {
		return "", "", &QuestionError{q.TypeName(), "", "cannot be copied"}
	}
	return a.Action, a.InterruptID, asPayloadError(q.TypeName(), dup.Return(bytes.Clone(payload)))
}

// Apply checks an answer and gives it to its question. A type of the user's own is not told of a
// decline or a cancel by Return, which knows accepted payloads only, but by the action that this
// function and [Ask] return.
func Apply(q Interrupt, payload []byte) (Action, error) {
	if s, ok := settles(q); ok {
		a, err := readAnswer(q.TypeName(), payload)
		if err == nil {
			err = s.settle(a)
		}
		if err != nil {
			return "", err
		}
		return a.Action, nil
	}
	action, _, err := Check(q, payload)
	if err != nil {
		return "", err
	}
	if action != ActionAccept {
		return action, nil
	}
	return action, asPayloadError(q.TypeName(), q.Return(bytes.Clone(payload)))
}

// own reports whether the question is of a type of this package.
func own(q Interrupt) bool {
	switch q.(type) {
	case *ToolPermissionInterrupt, *UserSelectionInterrupt, *FormInterrupt, *URLInterrupt:
		return true
	}
	form, ok := q.(interface{ isOwn(Interrupt) bool })
	return ok && form.isOwn(q)
}

// asPayloadError makes the error of a type's own code one of this package. Only what the type says
// is about the answer is told; anything else is private.
func asPayloadError(typeName string, err error) error {
	switch err.(type) {
	case nil, *PayloadError, *QuestionError:
		return err
	}
	if errors.Is(err, ErrInvalidPayload) {
		return &PayloadError{typeName, "", err.Error()}
	}
	return &privateError{&PayloadError{typeName, "", "is not accepted"}, err}
}
