package interrupt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// An Action is what a person did with a question. It is part of every payload, under "action"; a
// payload without it means accept.
type Action string

// The actions. Decline and cancel exist for every type of question and are different from each
// other: a person who declines says no to the question, one who cancels breaks off.
const (
	ActionAccept  Action = "accept"
	ActionDecline Action = "decline"
	ActionCancel  Action = "cancel"
)

// Decline returns the payload that declines the question with that id, of whatever type. The id may
// be empty.
func Decline(interruptID string) []byte { return negative(interruptID, ActionDecline) }

// Cancel returns the payload that cancels the question with that id, of whatever type. The id may
// be empty.
func Cancel(interruptID string) []byte { return negative(interruptID, ActionCancel) }

func negative(interruptID string, action Action) []byte {
	payload, err := json.Marshal(struct {
		InterruptID string `json:"interruptId,omitempty"`
		Action      Action `json:"action"`
	}{interruptID, action})
	if err != nil {
		panic(err) // two strings always marshal
	}
	return payload
}

// An answer is a payload taken apart: the members that every type has, and the others by name.
type answer struct {
	InterruptID string
	Action      Action
	Fields      map[string]json.RawMessage
}

// decodePayload reads the payload of one of this package's types: one JSON object without duplicate
// names, holding only the common members and the named fields. A decline or a cancel carries none
// of the fields.
func decodePayload(typeName string, payload []byte, fields ...string) (answer, error) {
	a, err := readPayload(typeName, payload)
	if err != nil {
		return answer{}, err
	}
	for name := range a.Fields {
		if !slices.Contains(fields, name) {
			return answer{}, &PayloadError{typeName, pointer(name), "unknown member"}
		}
		if a.Action != ActionAccept {
			return answer{}, &PayloadError{typeName, pointer(name), fmt.Sprintf("must be absent where the action is %s", a.Action)}
		}
	}
	return a, nil
}

// ActionOf reads the action and the question id from a payload of any type, strictly: one JSON
// object without duplicate names. A payload without an action means accept. The error is a
// [*PayloadError].
func ActionOf(typeName string, payload []byte) (action Action, interruptID string, err error) {
	a, err := readPayload(typeName, payload)
	if err != nil {
		return "", "", err
	}
	if a.Action != ActionAccept && len(a.Fields) > 0 {
		return "", "", &PayloadError{typeName, "", fmt.Sprintf("must carry no content where the action is %s", a.Action)}
	}
	return a.Action, a.InterruptID, nil
}

func readPayload(typeName string, payload []byte) (answer, error) {
	a := answer{Action: ActionAccept, Fields: map[string]json.RawMessage{}}
	d := jsontext.NewDecoder(bytes.NewReader(payload))
	if open, err := d.ReadToken(); err != nil {
		return answer{}, malformed(typeName, err)
	} else if open.Kind() != '{' {
		return answer{}, &PayloadError{typeName, "", "must be a JSON object"}
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return answer{}, malformed(typeName, err)
		}
		member := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return answer{}, malformed(typeName, err)
		}
		if err := a.set(typeName, member, value); err != nil {
			return answer{}, err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return answer{}, malformed(typeName, err)
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return answer{}, &PayloadError{typeName, "", "must be one JSON value with nothing after it"}
	}
	return a, nil
}

func (a *answer) set(typeName, member string, value jsontext.Value) error {
	switch member {
	case "interruptId":
		return readString(typeName, member, value, &a.InterruptID)
	case "action":
		var action string
		if err := readString(typeName, member, value, &action); err != nil {
			return err
		}
		a.Action = Action(action)
		switch a.Action {
		case ActionAccept, ActionDecline, ActionCancel:
			return nil
		}
		return &PayloadError{typeName, "/action", "must be accept, decline or cancel"}
	default:
		a.Fields[member] = json.RawMessage(value.Clone())
		return nil
	}
}

func readString(typeName, member string, value jsontext.Value, into *string) error {
	if value.Kind() != '"' {
		return &PayloadError{typeName, pointer(member), "must be a string"}
	}
	return json.Unmarshal(value, into)
}

func malformed(typeName string, err error) error {
	reason := "must be one well-formed JSON object"
	var where jsontext.Pointer
	if syntactic, ok := err.(*jsontext.SyntacticError); ok {
		where = syntactic.JSONPointer
		if syntactic.Err == jsontext.ErrDuplicateName {
			reason = "duplicate member"
		}
	}
	return &PayloadError{typeName, string(where), reason}
}

// pointer returns the JSON Pointer of a member of the payload, cut where a hostile name is long.
func pointer(member string) string {
	const most = 64
	if len(member) > most {
		member = member[:most] + "…"
	}
	return string(jsontext.Pointer("").AppendToken(member))
}
