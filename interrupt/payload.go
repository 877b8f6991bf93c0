package interrupt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"

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

// An answer is a payload taken apart: the members that every type has, and the others.
type answer struct {
	InterruptID string
	Action      Action
	fields      []field
}

// A field is a member of the type's own.
type field struct {
	name  string
	value json.RawMessage
}

func (a answer) field(name string) (value json.RawMessage, ok bool) {
	for _, f := range a.fields {
		if f.name == name {
			return f.value, true
		}
	}
	return nil, false
}

// only refuses other fields than the named ones. A decline or a cancel carries none of these
// either.
func (a answer) only(typeName string, names ...string) error {
	for _, f := range a.fields {
		if !slices.Contains(names, f.name) {
			return &PayloadError{typeName, pointer(f.name), "unknown member"}
		}
		if a.Action != ActionAccept {
			return &PayloadError{typeName, pointer(f.name), fmt.Sprintf("must be absent where the action is %s", a.Action)}
		}
	}
	return nil
}

// A settler is a type of this package. What [readPayload] read is not read again for it.
type settler interface {
	// fits checks an answer and changes nothing.
	fits(a answer) error
	// settle sets the decision, or changes nothing where the answer does not fit.
	settle(a answer) error
}

// settles returns the question where it is of a type of this package, and not of one that embeds
// such a type.
func settles(q Interrupt) (settler, bool) {
	if !own(q) {
		return nil, false
	}
	s, ok := q.(settler)
	return s, ok
}

func validatePayload(q settler, typeName string, payload []byte) error {
	a, err := readPayload(typeName, payload)
	if err != nil {
		return err
	}
	return q.fits(a)
}

func returnPayload(q settler, typeName string, payload []byte) error {
	a, err := readPayload(typeName, payload)
	if err != nil {
		return err
	}
	return q.settle(a)
}

// ActionOf reads the action and the question id from a payload of any type, strictly: one JSON
// object without duplicate names. A payload without an action means accept. The error is a
// [*PayloadError].
func ActionOf(typeName string, payload []byte) (action Action, interruptID string, err error) {
	a, err := readAnswer(typeName, payload)
	return a.Action, a.InterruptID, err
}

// readAnswer is readPayload for any type: a decline or a cancel carries no content.
func readAnswer(typeName string, payload []byte) (answer, error) {
	a, err := readPayload(typeName, payload)
	if err != nil {
		return answer{}, err
	}
	if a.Action != ActionAccept && len(a.fields) > 0 {
		return answer{}, &PayloadError{typeName, "", fmt.Sprintf("must carry no content where the action is %s", a.Action)}
	}
	return a, nil
}

// A payloadReader is a tokenizer that outlives one payload in a pool: it keeps its buffers.
type payloadReader struct {
	in     bytes.Buffer
	tokens jsontext.Decoder
}

var payloadReaders = sync.Pool{New: func() any { return new(payloadReader) }}

func (r *payloadReader) release() {
	r.in = bytes.Buffer{} // do not keep the caller's bytes
	r.tokens.Reset(&r.in)
	payloadReaders.Put(r)
}

func readPayload(typeName string, payload []byte) (answer, error) {
	r := payloadReaders.Get().(*payloadReader)
	defer r.release()
	r.in = *bytes.NewBuffer(payload)
	r.tokens.Reset(&r.in)
	d := &r.tokens
	a := answer{Action: ActionAccept}
	if open, err := d.ReadToken(); err != nil {
		return answer{}, malformed(typeName, err)
	} else if open.Kind() != '{' {
		return answer{}, &PayloadError{typeName, "", "must be a JSON object"}
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return answer{}, malformed(typeName, err)
		}
		member := memberName(name)
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

// memberName reads a name. Those that every payload has cost nothing.
func memberName(quoted jsontext.Value) string {
	switch string(quoted) {
	case `"interruptId"`:
		return "interruptId"
	case `"action"`:
		return "action"
	}
	name, _ := textOf(quoted) // the tokenizer found it well formed
	return name
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
		a.fields = append(a.fields, field{member, json.RawMessage(value.Clone())})
		return nil
	}
}

func readString(typeName, member string, value jsontext.Value, into *string) error {
	text, ok := textOf(value)
	if !ok {
		return &PayloadError{typeName, pointer(member), "must be a string"}
	}
	*into = text
	return nil
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
