package interrupt

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/parley-go/parley/internal/canon"
)

// TypeForm is the type name of a [FormInterrupt].
const TypeForm = "form"

// A FormInterrupt asks a person to fill in a form: a message and a flat JSON Schema (R11). The
// schema's root is an object whose properties are strings (with lengths and a format), numbers,
// integers, booleans, one choice of a list, or several choices of one. Any other keyword makes the
// question invalid; none is ever dropped. A date-time is one that both RFC 3339 and time.Time know:
// its T and Z are capital letters, and it is no leap second.
//
// Its zero value is invalid. Build it with [Form], or fill in Message and Schema.
type FormInterrupt struct {
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"schema"`

	// Key matches the question with its answer where its text or schema can change between runs;
	// see [Keyed].
	Key string `json:"-"`
	// Lifetime shortens the time in which the prompt can be answered; see [Limited].
	Lifetime time.Duration `json:"-"`

	// Action is what the person did, set by Return.
	Action Action `json:"-"`
	// Content is the accepted answer in canonical form, an object with declared fields only; nil
	// for decline and cancel. Return sets it. Defaults of the schema are not in it: a field that
	// the person left out is absent.
	Content json.RawMessage `json:"-"`
}

// FormPayload is the answer to a [FormInterrupt]. An accept has an object as its content, {}
// included; a decline or a cancel has none.
type FormPayload struct {
	InterruptId string          `json:"interruptId,omitempty"` //nolint:revive // the published name
	Action      Action          `json:"action,omitempty"`
	Content     json.RawMessage `json:"content,omitempty"`
}

// Form returns a question with that message and schema. It copies the schema. What is wrong with
// either is reported by Validate, and when the question is raised.
func Form(message string, schema json.RawMessage) *FormInterrupt {
	return &FormInterrupt{Message: message, Schema: bytes.Clone(schema)}
}

// TypeName returns TypeForm.
func (f *FormInterrupt) TypeName() string { return TypeForm }

// Serialize returns the message and the schema, without an answer.
func (f *FormInterrupt) Serialize() ([]byte, error) { return serialize(f) }

// Error makes a form an error. The text is the message, cut where it is long.
func (f *FormInterrupt) Error() string { return "form: " + canon.Clip(f.Message, 200) }

// QuestionKey returns Key.
func (f *FormInterrupt) QuestionKey() string { return f.Key }

// QuestionLifetime returns Lifetime.
func (f *FormInterrupt) QuestionLifetime() time.Duration { return f.Lifetime }

// Validate reports whether the form can be put to a person. The error is a [*QuestionError] whose
// path leads to the first offending place, such as /schema/properties/age/pattern.
func (f *FormInterrupt) Validate() error {
	switch {
	case f.Message == "":
		return &QuestionError{TypeForm, "/message", "must not be empty"}
	case !utf8.ValidString(f.Message):
		return &QuestionError{TypeForm, "/message", "must be valid UTF-8"}
	}
	_, err := readProfile(f.Schema)
	return err
}

// Fields returns what the form asks for, in the order in which the text of the schema declares it.
// The error is that of Validate for the schema.
func (f *FormInterrupt) Fields() ([]Field, error) {
	profile, err := readProfile(f.Schema)
	if err != nil {
		return nil, err
	}
	fields := make([]Field, 0, len(profile.fields))
	for _, field := range profile.fields {
		fields = append(fields, field.Field)
	}
	return fields, nil
}

// ValidatePayload checks an answer, a [FormPayload] in JSON, and changes nothing. The error is a
// [*PayloadError] that names the field, or the [*QuestionError] of a form that is itself invalid.
func (f *FormInterrupt) ValidatePayload(payload []byte) error {
	return validatePayload(f, TypeForm, payload)
}

// Return checks an answer and sets Action and Content. On an error nothing is changed.
func (f *FormInterrupt) Return(payload []byte) error { return returnPayload(f, TypeForm, payload) }

func (f *FormInterrupt) fits(a answer) error {
	_, err := f.content(a)
	return err
}

func (f *FormInterrupt) settle(a answer) error {
	content, err := f.content(a)
	if err != nil {
		return err
	}
	f.Action, f.Content = a.Action, content
	return nil
}

func (f *FormInterrupt) clone() Interrupt {
	c := *f
	c.Schema, c.Content = bytes.Clone(f.Schema), bytes.Clone(f.Content)
	return &c
}
