package interrupt

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/internal/schema"
)

// content holds an answer to the form (R15) and returns its content in canonical form; nil where it
// accepts nothing.
func (f *FormInterrupt) content(a answer) (json.RawMessage, error) {
	profile, err := readProfile(f.Schema)
	if err != nil {
		return nil, err
	}
	if err := a.only(TypeForm, "content"); err != nil || a.Action != ActionAccept {
		return nil, err
	}
	content, ok := a.field("content")
	if !ok {
		return nil, &PayloadError{TypeForm, contentPath, "is required where the action is accept"}
	}
	canonical, err := canonicalForm(content)
	if err != nil {
		return nil, misread(err)
	}
	if err := profile.check(canonical); err != nil {
		return nil, err
	}
	return canonical, nil
}

const contentPath = "/content"

func misread(err error) error {
	if e, ok := errors.AsType[*canon.Error](err); ok {
		return &PayloadError{TypeForm, contentPath + e.Path, e.Reason}
	}
	return &PayloadError{TypeForm, contentPath, "not readable"}
}

// check holds content in canonical form to the profile.
func (p *formProfile) check(content jsontext.Value) error {
	if content.Kind() != jsontext.KindBeginObject {
		return &PayloadError{TypeForm, contentPath, "must be an object"}
	}
	members, err := membersOf(content)
	if err != nil {
		return &PayloadError{TypeForm, contentPath, "must be an object"}
	}
	given := make([]bool, len(p.fields))
	for _, m := range members {
		path := memberPath(contentPath, m.name)
		at, ok := p.index[m.name]
		if !ok {
			return &PayloadError{TypeForm, path, "is not a field of the form"}
		}
		if item, reason := p.fields[at].misfit(m.raw); reason != "" {
			return &PayloadError{TypeForm, path + item, reason}
		}
		given[at] = true
	}
	for i, field := range p.fields {
		if field.Required && !given[i] {
			return &PayloadError{TypeForm, memberPath(contentPath, field.Name), "is required"}
		}
	}
	return nil
}

// misfit says why a value in canonical form is none for this field, and for an array which item it
// is, as the end of a JSON Pointer. The reason is empty where the value fits. Nothing is converted:
// "5" is not 5, and 1 is not true.
func (f *formField) misfit(value jsontext.Value) (item, reason string) {
	switch f.Kind {
	case FieldBoolean:
		if k := value.Kind(); k != jsontext.KindTrue && k != jsontext.KindFalse {
			return "", "must be true or false"
		}
		return "", ""
	case FieldNumber, FieldInteger:
		return "", f.misfitNumber(value)
	case FieldMulti:
		return f.misfitMulti(value)
	}
	text, ok := textOf(value)
	switch {
	case !ok:
		return "", "must be a string"
	case f.Kind == FieldEnum && !f.offers(text):
		return "", "must be one of the choices"
	case f.Kind == FieldString:
		return "", f.misfitText(text)
	}
	return "", ""
}

func (f *formField) misfitText(text string) string {
	length := utf8.RuneCountInString(text)
	switch {
	case f.MinLength != nil && length < *f.MinLength:
		return fmt.Sprintf("must have at least %d characters", *f.MinLength)
	case f.MaxLength != nil && length > *f.MaxLength:
		return fmt.Sprintf("must have at most %d characters", *f.MaxLength)
	case f.Format != "" && !schema.IsFormat(f.Format, text):
		return "must have the format " + f.Format
	case f.Format == "date-time" && !isTime(text):
		return "must be a date-time with capital letters T and Z, and without a leap second"
	}
	return ""
}

// isTime reports whether Go reads a date-time as a time. RFC 3339 has some that it does not, and an
// answer that the handler cannot read could not be corrected any more (R16).
func isTime(text string) bool { return new(time.Time).UnmarshalText([]byte(text)) == nil }

func (f *formField) misfitNumber(value jsontext.Value) string {
	if value.Kind() != jsontext.KindNumber {
		return "must be a number"
	}
	number, err := canon.ParseDecimal(string(value), nil)
	switch {
	case err != nil:
		return "must be a number within bounds"
	case f.Kind == FieldInteger && !number.IsInteger():
		return "must be an integer"
	case f.minimum != nil && number.Compare(*f.minimum) < 0:
		return "must be at least " + canon.Clip(f.Minimum.String(), 40)
	case f.maximum != nil && number.Compare(*f.maximum) > 0:
		return "must be at most " + canon.Clip(f.Maximum.String(), 40)
	}
	return ""
}

func (f *formField) misfitMulti(value jsontext.Value) (item, reason string) {
	if value.Kind() != jsontext.KindBeginArray {
		return "", "must be an array"
	}
	chosen, err := elementsOf(value)
	if err != nil {
		return "", "must be an array"
	}
	switch {
	case f.MinItems != nil && len(chosen) < *f.MinItems:
		return "", fmt.Sprintf("must have at least %d choices", *f.MinItems)
	case f.MaxItems != nil && len(chosen) > *f.MaxItems:
		return "", fmt.Sprintf("must have at most %d choices", *f.MaxItems)
	}
	seen := map[string]bool{}
	for i, element := range chosen {
		text, ok := textOf(element)
		switch {
		case !ok:
			return fmt.Sprintf("/%d", i), "must be a string"
		case !f.offers(text):
			return fmt.Sprintf("/%d", i), "must be one of the choices"
		case seen[text]:
			return fmt.Sprintf("/%d", i), "must differ from the other items"
		}
		seen[text] = true
	}
	return "", ""
}

func (f *formField) offers(value string) bool {
	for _, option := range f.Options {
		if option.Value == value {
			return true
		}
	}
	return false
}
