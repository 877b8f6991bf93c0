package interrupt

import (
	"encoding/json"
	"errors"
	"reflect"

	"github.com/parley-go/parley/internal/canon"
)

// A FormOf is a form whose fields are those of a struct T, and whose answer is a T. Make it with
// [FormFor]; its zero value is invalid.
//
// It is a [FormInterrupt] with another way to read the answer: the same type of question to a
// record and to a face, and found as one with errors.As.
type FormOf[T any] struct {
	FormInterrupt
	err error // what FormFor found
}

// FormFor returns a form with that message and a field for every exported field of the struct T, in
// their order. The field's name is that of its json tag; it is required unless it is a pointer or
// marked omitempty or omitzero. What T holds decides the kind:
//
//	string                      text, or one choice where an enum tag lists them
//	int…, uint…                 integer, with the bounds of the type
//	float…                      number, with the bounds of the type
//	json.Number                 number, of which it keeps all digits
//	bool                        boolean
//	time.Time                   text of format date-time
//	slice of strings            several different choices, which an enum tag lists
//
// The rest stands in tags that have the names of the schema's keywords:
//
//	title, description          words for the person
//	default                     is offered, never inserted; of several choices as enum lists them
//	enum                        the choices, with commas between them
//	enumNames                   their titles, with commas between them and in the same order
//	minLength, maxLength        of a text, in characters
//	format                      email, uri, date or date-time
//	minimum, maximum            of a number; within what the type holds
//	minItems, maxItems          of several choices; at most all of them by default
//
// A choice that itself holds a comma is for [Form], which takes any schema of the profile. A field,
// or a tag with the name of another keyword of JSON Schema, that no form can express (R11) is never
// dropped: the error, by Validate and when the question is raised, has the path of the field.
func FormFor[T any](message string) *FormOf[T] {
	f := &FormOf[T]{FormInterrupt: FormInterrupt{Message: message}}
	f.Schema, f.err = deriveForm(reflect.TypeFor[T]())
	return f
}

// errNotAccepted is returned for the value of a form that nobody has accepted.
var errNotAccepted = errors.New("the form is not accepted")

// Value returns the accepted answer. Fields that the person left out are zero, whatever their
// default. It fails with [ErrDeclined] or [ErrCancelled] where the person said no, and where there
// is no answer yet. As everywhere in Go, a float is the nearest one to the number that was given.
//
// What was answered is held to what T says today, whatever was asked: a question with a Key can
// have been recorded by a release in which T was another struct, and Schema can have been changed.
// What does not fit is a [*PayloadError] with the path of the field; nothing wraps around, and no
// field is left out. Content has the answer then, too.
func (f *FormOf[T]) Value() (T, error) {
	var value, none T
	switch f.Action {
	case ActionAccept:
	case ActionDecline:
		return none, ErrDeclined
	case ActionCancel:
		return none, ErrCancelled
	default:
		return none, errNotAccepted
	}
	if err := holds(reflect.TypeFor[T](), f.Content); err != nil {
		return none, err
	}
	if err := json.Unmarshal(f.Content, &value); err != nil {
		return none, &privateError{&PayloadError{TypeForm, contentPath, "cannot be read"}, err}
	}
	return value, nil
}

// holds checks content against what the struct says of itself.
func holds(t reflect.Type, content json.RawMessage) error {
	schema, err := deriveForm(t)
	if err != nil {
		return err
	}
	profile, err := readProfile(schema)
	if err != nil {
		return err
	}
	canonical, err := canonicalForm(content)
	if err != nil {
		return misread(err)
	}
	return profile.check(canonical)
}

// Unwrap returns the form as a [*FormInterrupt], for errors.As.
func (f *FormOf[T]) Unwrap() error { return &f.FormInterrupt }

// Validate reports what is wrong with T, and then what [FormInterrupt.Validate] does.
func (f *FormOf[T]) Validate() error {
	if f.err != nil {
		return f.err
	}
	return f.FormInterrupt.Validate()
}

// Fields is [FormInterrupt.Fields], or what is wrong with T.
func (f *FormOf[T]) Fields() ([]Field, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.FormInterrupt.Fields()
}

// ValidatePayload is [FormInterrupt.ValidatePayload], or what is wrong with T.
func (f *FormOf[T]) ValidatePayload(payload []byte) error {
	return validatePayload(f, TypeForm, payload)
}

// Return is [FormInterrupt.Return], or what is wrong with T.
func (f *FormOf[T]) Return(payload []byte) error { return returnPayload(f, TypeForm, payload) }

func (f *FormOf[T]) fits(a answer) error {
	if f.err != nil {
		return f.err
	}
	return f.FormInterrupt.fits(a)
}

func (f *FormOf[T]) settle(a answer) error {
	if f.err != nil {
		return f.err
	}
	return f.FormInterrupt.settle(a)
}

func (f *FormOf[T]) clone() Interrupt { return f.adopt(f.FormInterrupt.clone()) }

// adopt returns a form that was read from a record as what it was asked as.
func (f *FormOf[T]) adopt(form Interrupt) Interrupt {
	if form, ok := form.(*FormInterrupt); ok {
		return &FormOf[T]{*form, f.err}
	}
	return form
}

// isOwn reports whether the question is this form, and not a type of somebody else's that embeds
// it.
func (f *FormOf[T]) isOwn(q Interrupt) bool { return q == Interrupt(f) }

// clipped is a name or a tag in an error.
func clipped(s string) string { return canon.Clip(s, 64) }
