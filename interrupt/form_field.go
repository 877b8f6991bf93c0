package interrupt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/parley-go/parley/internal/canon"
)

// A FieldKind is what a field of a form holds.
type FieldKind string

// The kinds of fields. An enum is one choice of a list, a multi several different ones.
const (
	FieldString  FieldKind = "string"
	FieldNumber  FieldKind = "number"
	FieldInteger FieldKind = "integer"
	FieldBoolean FieldKind = "boolean"
	FieldEnum    FieldKind = "enum"
	FieldMulti   FieldKind = "multi"
)

// A Field is one thing a form asks for, as a face shows it. Bounds that the schema does not give
// are nil or empty.
type Field struct {
	Name        string
	Title       string // empty where the schema gives none
	Description string
	Kind        FieldKind
	Required    bool
	Default     json.RawMessage // to be offered, never to be sent unseen; nil where there is none

	Format               string // email, uri, date, date-time, or empty
	MinLength, MaxLength *int   // in characters (code points)
	Minimum, Maximum     json.Number
	MinItems, MaxItems   *int
	Options              []FieldOption
}

// A FieldOption is one choice. Title is what a person sees: the value itself, where the schema
// gives no title.
type FieldOption struct {
	Value string
	Title string
}

// A formField is a Field with its bounds ready to compare with.
type formField struct {
	Field
	path             string // of its schema in the question
	minimum, maximum *canon.Decimal
	enumNames        []string
}

// The keywords that go with each kind, besides those that go with all.
var (
	commonKeywords = []string{"type", "title", "description", "default"}
	kindKeywords   = map[FieldKind][]string{
		FieldString:  {"minLength", "maxLength", "format"},
		FieldNumber:  {"minimum", "maximum"},
		FieldInteger: {"minimum", "maximum"},
		FieldBoolean: nil,
		FieldEnum:    {"enum", "enumNames", "oneOf"},
		FieldMulti:   {"minItems", "maxItems", "items"},
	}
)

func readField(name string, n node) (formField, error) {
	f := formField{Field: Field{Name: name}, path: n.path}
	keywords, err := n.members()
	if err != nil {
		return f, err
	}
	for _, kw := range keywords {
		if !knownKeyword(kw.name) {
			return f, kw.refuse(fmt.Sprintf("keyword %q is not part of a form", canon.Clip(kw.name, 64)))
		}
	}
	if f.Kind, err = kindOf(n, keywords); err != nil {
		return f, err
	}
	for _, kw := range keywords {
		if !slices.Contains(commonKeywords, kw.name) && !slices.Contains(kindKeywords[f.Kind], kw.name) {
			return f, kw.refuse(fmt.Sprintf("keyword %q does not go with a field of kind %s", kw.name, f.Kind))
		}
		if err := f.set(kw); err != nil {
			return f, err
		}
	}
	return f, f.settle(n, keywords)
}

func knownKeyword(name string) bool {
	if slices.Contains(commonKeywords, name) {
		return true
	}
	for _, keywords := range kindKeywords {
		if slices.Contains(keywords, name) {
			return true
		}
	}
	return false
}

func kindOf(n node, keywords []member) (FieldKind, error) {
	kw, ok := find(keywords, "type")
	if !ok {
		return "", n.refuse(`keyword "type" is required`)
	}
	name, err := kw.text()
	if err != nil {
		return "", err
	}
	switch name {
	case "string":
		_, enum := find(keywords, "enum")
		if _, oneOf := find(keywords, "oneOf"); enum || oneOf {
			return FieldEnum, nil
		}
		return FieldString, nil
	case "number", "integer", "boolean":
		return FieldKind(name), nil
	case "array":
		return FieldMulti, nil
	}
	return "", kw.refuse("must be string, number, integer, boolean or array")
}

func (f *formField) set(kw member) (err error) {
	switch kw.name {
	case "title":
		f.Title, err = kw.text()
	case "description":
		f.Description, err = kw.text()
	case "default":
		f.Default = bytes.Clone(kw.raw)
	case "format":
		f.Format, err = kw.text()
		if err == nil && !slices.Contains([]string{"email", "uri", "date", "date-time"}, f.Format) {
			err = kw.refuse("must be email, uri, date or date-time; for what is secret use a URL")
		}
	case "minLength":
		f.MinLength, err = kw.count()
	case "maxLength":
		f.MaxLength, err = kw.count()
	case "minItems":
		f.MinItems, err = kw.count()
	case "maxItems":
		f.MaxItems, err = kw.count()
	case "minimum":
		f.minimum, f.Minimum, err = kw.number()
	case "maximum":
		f.maximum, f.Maximum, err = kw.number()
	case "enum":
		f.Options, err = kw.values()
	case "enumNames":
		f.enumNames, err = kw.texts()
	case "oneOf":
		f.Options, err = kw.constants()
	case "items":
		f.Options, err = kw.items()
	}
	return err
}

// settle checks what can only be seen when every keyword was read: the text of a schema has them in
// any order.
func (f *formField) settle(n node, keywords []member) error {
	if f.Kind == FieldEnum {
		if err := f.nameOptions(keywords); err != nil {
			return err
		}
	}
	if f.Kind == FieldMulti {
		for _, name := range []string{"items", "maxItems"} {
			if _, ok := find(keywords, name); !ok {
				return n.refuse(fmt.Sprintf("keyword %q is required in an array", name))
			}
		}
		if f.MinItems != nil && *f.MinItems > len(f.Options) {
			return &QuestionError{TypeForm, n.path + "/minItems", "must not be more than there are choices"}
		}
	}
	if crossed(f.MinLength, f.MaxLength) {
		return &QuestionError{TypeForm, n.path + "/minLength", "must not be more than maxLength"}
	}
	if crossed(f.MinItems, f.MaxItems) {
		return &QuestionError{TypeForm, n.path + "/minItems", "must not be more than maxItems"}
	}
	if f.minimum != nil && f.maximum != nil && f.minimum.Compare(*f.maximum) > 0 {
		return &QuestionError{TypeForm, n.path + "/minimum", "must not be more than maximum"}
	}
	if f.Kind == FieldInteger && f.minimum != nil && f.maximum != nil && !integerBetween(*f.minimum, *f.maximum) {
		return &QuestionError{TypeForm, n.path + "/minimum", "must leave an integer up to maximum"}
	}
	if f.Default != nil {
		return f.checkDefault(n.path + "/default")
	}
	return nil
}

func crossed(low, high *int) bool { return low != nil && high != nil && *low > *high }

// integerBetween reports whether there is an integer from low to high, which do not cross.
func integerBetween(low, high canon.Decimal) bool {
	zero := canon.Decimal{}
	return low.IsInteger() || high.IsInteger() || low.Compare(zero) != high.Compare(zero) || low.Truncate() != high.Truncate()
}

// checkDefault holds a default to everything that an answer is held to.
func (f *formField) checkDefault(path string) error {
	canonical, err := canonicalForm(f.Default)
	if err != nil {
		return refuseCanon(TypeForm, path, err)
	}
	if item, reason := f.misfit(canonical); reason != "" {
		return &QuestionError{TypeForm, path + item, reason}
	}
	return nil
}
