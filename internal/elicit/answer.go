package elicit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// An Answer is what a client sent for one question.
type Answer struct {
	Action  string
	Content json.RawMessage // nil: there was none
}

// The fields that a permission and a selection are answered in.
const (
	FieldDecision = "decision"
	FieldChoice   = "choice"
)

// ReadObject reads one JSON object strictly; nothing at all is an empty one. No text of it is in
// the error but a path.
func ReadObject(text json.RawMessage, most int) (map[string]json.RawMessage, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	canonical, err := canon.JSON(text, &canon.Limits{Bytes: most})
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(canonical, &object); err != nil {
		return nil, errors.New("not an object")
	}
	return object, nil
}

// ReadAnswer reads the text of one answer: no name twice, and no name that another reader could
// take for one that counts. Other members are ignored, but for those that are reserved.
func ReadAnswer(text json.RawMessage, most int, reserved ...string) (Answer, error) {
	raw, err := ReadObject(text, most)
	if err != nil {
		return Answer{}, err
	}
	var one Answer
	for name, value := range raw {
		switch {
		case name == "action":
			if json.Unmarshal(value, &one.Action) != nil {
				return Answer{}, errors.New("the action is not a string")
			}
		case name == "content":
			if string(value) != "null" {
				one.Content = value
			}
		case strings.EqualFold(name, "action"), strings.EqualFold(name, "content"), slices.Contains(reserved, name):
			return Answer{}, fmt.Errorf("a response has a member %.64q, which can be taken for another", name)
		}
	}
	return one, nil
}

// ErrAction is the error of an answer that is none of those there are.
var ErrAction = errors.New("the action is none of accept, decline, cancel")

// Payload is the payload that the gate checks against the stored question of that type (R15). It
// says what the client said and nothing else: what does not fit is carried along, so that it is the
// gate that refuses it, for all faces in the same way.
func (one Answer) Payload(kind string) (json.RawMessage, error) {
	action := interrupt.Action(one.Action)
	if !slices.Contains([]interrupt.Action{interrupt.ActionAccept, interrupt.ActionDecline, interrupt.ActionCancel}, action) {
		return nil, ErrAction
	}
	payload := map[string]json.RawMessage{"action": fmt.Appendf(nil, "%q", one.Action)}
	empty := one.Content == nil || string(one.Content) == "{}"
	switch {
	case kind == interrupt.TypeForm && action == interrupt.ActionAccept:
		if one.Content != nil {
			payload["content"] = one.Content
		}
	case (kind == interrupt.TypeToolPermission || kind == interrupt.TypeUserSelection) && action == interrupt.ActionAccept:
		choose(payload, kind, one.Content)
	case !empty: // some clients send an empty object where there is nothing to say
		payload["content"] = one.Content
	}
	return canon.Marshal(payload)
}

// choose puts the one field of a permission or a selection into the payload.
func choose(payload map[string]json.RawMessage, kind string, content json.RawMessage) {
	var fields map[string]json.RawMessage
	if content != nil && json.Unmarshal(content, &fields) != nil {
		payload["content"] = content
		return
	}
	for name, value := range fields {
		switch {
		case kind == interrupt.TypeToolPermission && name == FieldDecision:
			payload["optionId"] = value
		case kind == interrupt.TypeUserSelection && name == FieldChoice:
			payload["selectionIdx"] = index(value)
		default: // it was not asked for, whatever its name
			payload["content/"+name] = value
		}
	}
}

// index turns "0", "1" and so on, which are what was offered, into numbers. Everything else becomes
// a string, which is no index.
func index(value json.RawMessage) json.RawMessage {
	var s string
	if json.Unmarshal(value, &s) != nil {
		s = string(value)
	} else if n, err := strconv.Atoi(s); err == nil && n >= 0 && strconv.Itoa(n) == s {
		return json.RawMessage(s)
	}
	quoted, _ := canon.Marshal(s) // a string always has a form
	return quoted
}

// AskAgain reports whether the error is of an answer alone, so that another one to the same
// question can be a good one. An answer that is too large is refused before its interaction is
// looked at, which is why the error names none: whether the question is open turns out with the
// next request.
func AskAgain(e *gate.Error) bool {
	switch e.Code {
	case gate.ErrInvalidAnswer, gate.ErrUnauthorized: // it may not be remembered
		return e.StillOpen
	case gate.ErrTooLarge:
		return e.StillOpen || e.Interaction.IsZero()
	}
	return false
}

// MaxReason bounds what a question that is asked again says of the former answer, in bytes.
const MaxReason = 512

// Reason says in the words of the client's form what does not fit.
func Reason(e *gate.Error) string {
	reason := "the answer does not fit"
	var p *interrupt.PayloadError
	if errors.As(e, &p) {
		reason = p.Reason
	} else if e.Path == "" && errors.Unwrap(e) == nil {
		reason = "the answer is missing"
	}
	switch field := strings.TrimPrefix(e.Path, "/content/"); {
	case e.Path == "/optionId":
		reason = FieldDecision + ": " + reason
	case e.Path == "/selectionIdx":
		reason = FieldChoice + ": " + reason
	case field != e.Path:
		reason = field + ": " + reason
	}
	return canon.Clip(reason, MaxReason)
}
