package interrupt

import (
	"fmt"

	"github.com/parley-go/parley/internal/canon"
)

// nameOptions gives the choices of an enum the titles of enumNames, and checks that one list of
// choices was given.
func (f *formField) nameOptions(keywords []member) error {
	names, hasNames := find(keywords, "enumNames")
	if oneOf, ok := find(keywords, "oneOf"); ok {
		if _, ok := find(keywords, "enum"); ok {
			return oneOf.refuse(`keyword "oneOf" does not go with "enum"`)
		}
		if hasNames {
			return names.refuse(`keyword "enumNames" does not go with "oneOf"`)
		}
	}
	if !hasNames {
		return nil
	}
	if len(f.enumNames) != len(f.Options) {
		return names.refuse("must have as many names as enum has values")
	}
	for i, name := range f.enumNames {
		f.Options[i].Title = name
	}
	return distinct(names.node, f.Options, "")
}

// values reads a list of strings as choices.
func (n node) values() ([]FieldOption, error) {
	texts, err := n.texts()
	if err != nil {
		return nil, err
	}
	options := make([]FieldOption, 0, len(texts))
	for _, text := range texts {
		options = append(options, FieldOption{Value: text, Title: text})
	}
	return options, distinct(n, options, "")
}

// constants reads a list of {const, title} as choices.
func (n node) constants() ([]FieldOption, error) {
	list, err := n.elements()
	if err != nil {
		return nil, err
	}
	options := make([]FieldOption, 0, len(list))
	for _, element := range list {
		option, err := element.constant()
		if err != nil {
			return nil, err
		}
		options = append(options, option)
	}
	return options, distinct(n, options, "/const")
}

func (n node) constant() (option FieldOption, err error) {
	keywords, err := n.members()
	if err != nil {
		return option, err
	}
	for _, kw := range keywords {
		switch kw.name {
		case "const":
			option.Value, err = kw.text()
		case "title":
			option.Title, err = kw.text()
		default:
			err = kw.refuse(fmt.Sprintf("keyword %q is not part of a choice", canon.Clip(kw.name, 64)))
		}
		if err != nil {
			return option, err
		}
	}
	for _, name := range []string{"const", "title"} {
		if _, ok := find(keywords, name); !ok {
			return option, n.refuse(fmt.Sprintf("keyword %q is required in a choice", name))
		}
	}
	return option, nil
}

// items reads the items of an array: {type: string, enum: […]} or {anyOf: [{const, title}, …]}, and
// nothing between the two.
func (n node) items() (options []FieldOption, err error) {
	keywords, err := n.members()
	if err != nil {
		return nil, err
	}
	for _, kw := range keywords {
		if kw.name != "type" && kw.name != "enum" && kw.name != "anyOf" {
			return nil, kw.refuse(fmt.Sprintf("keyword %q is not part of the items of a form", canon.Clip(kw.name, 64)))
		}
	}
	kind, hasType := find(keywords, "type")
	enum, hasEnum := find(keywords, "enum")
	anyOf, hasAnyOf := find(keywords, "anyOf")
	switch {
	case hasAnyOf && hasEnum:
		return nil, enum.refuse(`keyword "enum" does not go with "anyOf"`)
	case hasAnyOf && hasType:
		return nil, kind.refuse(`keyword "type" does not go with "anyOf"`)
	case hasAnyOf:
		return anyOf.constants()
	case !hasEnum:
		return nil, n.refuse(`keyword "enum" or "anyOf" is required in items`)
	case !hasType:
		return nil, n.refuse(`keyword "type" is required in items`)
	}
	if name, err := kind.text(); err != nil {
		return nil, err
	} else if name != "string" {
		return nil, kind.refuse("must be string")
	}
	return enum.values()
}

// distinct checks that there are choices and that a person and a program can tell them apart.
func distinct(n node, options []FieldOption, valueKeyword string) error {
	if len(options) == 0 {
		return n.refuse("must have at least one choice")
	}
	values, titles := map[string]bool{}, map[string]bool{}
	for i, option := range options {
		path := fmt.Sprintf("%s/%d", n.path, i)
		titlePath := path
		if valueKeyword != "" {
			titlePath += "/title"
		}
		switch {
		case option.Value == "":
			return &QuestionError{TypeForm, path + valueKeyword, "must not be empty"}
		case values[option.Value]:
			return &QuestionError{TypeForm, path + valueKeyword, "must differ from the other choices"}
		case option.Title == "":
			return &QuestionError{TypeForm, titlePath, "must not be empty"}
		case titles[option.Title]:
			return &QuestionError{TypeForm, titlePath, "must differ from the titles of the other choices"}
		}
		values[option.Value], titles[option.Title] = true, true
	}
	return nil
}
