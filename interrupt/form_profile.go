package interrupt

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-go/parley/internal/canon"
)

// A formProfile is a form's schema, read and found fit (R11).
type formProfile struct {
	fields []formField // in the order of the text
	index  map[string]int
}

// The dialects in which the keywords of a form mean the same.
var formDialects = []string{
	"https://json-schema.org/draft/2020-12/schema",
	"http://json-schema.org/draft-07/schema#",
	"http://json-schema.org/draft-07/schema",
}

// canonicalForm returns the canonical form of a schema, a default or an answer. How long an answer
// may be is for the gate to decide, whose limit can be above canon's own; what is longer than this
// cannot be stored. A form is flat, and so are its answers: what is nested deeper than canon takes
// has no place in either.
func canonicalForm(raw []byte) ([]byte, error) { return canon.JSON(raw, &canon.Limits{Bytes: maxBody}) }

// readProfile reads a schema. The error is a *QuestionError.
func readProfile(schema json.RawMessage) (*formProfile, error) {
	const path = "/schema"
	// The walk below keeps the order of the text, and so cannot go over the canonical form; it can
	// rely on the text having one.
	if _, err := canonicalForm(schema); err != nil {
		return nil, refuseCanon(TypeForm, path, err)
	}
	root := node{TypeForm, path, trimmed(schema)}
	keywords, err := root.members()
	if err != nil {
		return nil, err
	}
	p := &formProfile{index: map[string]int{}}
	for _, kw := range keywords {
		if err := p.set(kw); err != nil {
			return nil, err
		}
	}
	if _, ok := find(keywords, "type"); !ok {
		return nil, root.refuse(`keyword "type" is required`)
	}
	if required, ok := find(keywords, "required"); ok {
		return p, p.require(required.node)
	}
	return p, nil
}

func (p *formProfile) set(kw member) error {
	switch kw.name {
	case "$schema":
		if dialect, err := kw.text(); err != nil {
			return err
		} else if !slices.Contains(formDialects, dialect) {
			return kw.refuse("must be the URI of draft 2020-12 or draft-07")
		}
	case "type":
		if name, err := kw.text(); err != nil {
			return err
		} else if name != "object" {
			return kw.refuse("must be object")
		}
	case "additionalProperties":
		if string(kw.raw) != "false" {
			return kw.refuse("must be false where it is given")
		}
	case "properties":
		return p.declare(kw.node)
	case "required":
		// Read when all properties are known.
	default:
		return kw.refuse(fmt.Sprintf("keyword %q is not part of a form", canon.Clip(kw.name, 64)))
	}
	return nil
}

func (p *formProfile) declare(properties node) error {
	members, err := properties.members()
	if err != nil {
		return err
	}
	for _, property := range members {
		if property.name == "" {
			return property.refuse("name must not be empty")
		}
		field, err := readField(property.name, property.node)
		if err != nil {
			return err
		}
		p.index[property.name] = len(p.fields)
		p.fields = append(p.fields, field)
	}
	return nil
}

func (p *formProfile) require(required node) error {
	names, err := required.texts()
	if err != nil {
		return err
	}
	for i, name := range names {
		at, ok := p.index[name]
		switch {
		case !ok:
			return &QuestionError{TypeForm, fmt.Sprintf("%s/%d", required.path, i),
				"names a field that is not declared"}
		case p.fields[at].Required:
			return &QuestionError{TypeForm, fmt.Sprintf("%s/%d", required.path, i), "names a field for the second time"}
		}
		p.fields[at].Required = true
	}
	return nil
}

// refuseCanon turns an error about a part of a question into one about the question.
func refuseCanon(typeName, path string, err error) error {
	if e, ok := errors.AsType[*canon.Error](err); ok {
		return &QuestionError{typeName, path + e.Path, e.Reason}
	}
	return &QuestionError{typeName, path, "not readable"}
}
