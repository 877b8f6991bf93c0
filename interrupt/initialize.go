package interrupt

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-go/parley/internal/canon"
)

// The four types are made from data as strictly as answers are read: one JSON object with the
// members that Serialize writes, each at most once and of its kind, no others, and no null. What
// they make is valid. On an error, a *QuestionError with its place, nothing is changed. Key and
// Lifetime are not part of the data, and stay.

// initialize reads a payload member by member into made, which becomes q where it is valid.
func initialize[T any, Q interface {
	*T
	Interrupt
	Validator
}](q, made Q, payload []byte, read func(m member) error) error {
	// The walk relies on the text being well formed and without duplicate names.
	if _, err := canonicalForm(payload); err != nil {
		return refuseCanon(made.TypeName(), "", err)
	}
	if err := (node{made.TypeName(), "", trimmed(payload)}).each(read); err != nil {
		return err
	}
	if err := made.Validate(); err != nil {
		return err
	}
	*q = *made
	return nil
}

// each reads the members of an object.
func (n node) each(read func(m member) error) error {
	members, err := n.members()
	if err != nil {
		return err
	}
	for _, m := range members {
		if err := read(m); err != nil {
			return err
		}
	}
	return nil
}

// objects reads a list of objects, each member by member.
func objects[T any](n node, read func(object *T, m member) error) ([]T, error) {
	elements, err := n.elements()
	if err != nil {
		return nil, err
	}
	list := make([]T, len(elements))
	for i, element := range elements {
		if err := element.each(func(m member) error { return read(&list[i], m) }); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (m member) unknown() error {
	return m.refuse(fmt.Sprintf("member %q is unknown", canon.Clip(m.name, 64)))
}

func (n node) boolean() (bool, error) {
	if n.raw.Kind() != jsontext.KindTrue && n.raw.Kind() != jsontext.KindFalse {
		return false, n.refuse("must be true or false")
	}
	return n.raw.Kind() == jsontext.KindTrue, nil
}

// InitFromPayload makes the permission from an object with toolName, title and options; without
// options it has [DefaultPermissionOptions].
func (p *ToolPermissionInterrupt) InitFromPayload(payload []byte) error {
	made := &ToolPermissionInterrupt{Key: p.Key, Lifetime: p.Lifetime, Options: DefaultPermissionOptions()}
	return initialize(p, made, payload, func(m member) (err error) {
		switch m.name {
		case "toolName":
			made.ToolName, err = m.text()
		case "title":
			made.Title, err = m.text()
		case "options":
			made.Options, err = m.permissionOptions()
		default:
			err = m.unknown()
		}
		return err
	})
}

func (n node) permissionOptions() ([]PermissionOption, error) {
	return objects(n, func(option *PermissionOption, m member) (err error) {
		switch m.name {
		case "optionId":
			option.OptionID, err = m.text()
		case "name":
			option.Name, err = m.text()
		case "kind":
			option.Kind, err = m.text()
		default:
			err = m.unknown()
		}
		return err
	})
}

// InitFromPayload makes the selection from an object with options, each an object with title,
// description and isRecommended.
func (s *UserSelectionInterrupt) InitFromPayload(payload []byte) error {
	made := &UserSelectionInterrupt{Key: s.Key, Lifetime: s.Lifetime}
	return initialize(s, made, payload, func(m member) (err error) {
		if m.name != "options" {
			return m.unknown()
		}
		made.Options, err = m.userChoices()
		return err
	})
}

func (n node) userChoices() ([]UserChoice, error) {
	return objects(n, func(choice *UserChoice, m member) (err error) {
		switch m.name {
		case "title":
			choice.Title, err = m.text()
		case "description":
			choice.Description, err = m.text()
		case "isRecommended":
			choice.IsRecommended, err = m.boolean()
		default:
			err = m.unknown()
		}
		return err
	})
}

// InitFromPayload makes the form from an object with message and schema.
func (f *FormInterrupt) InitFromPayload(payload []byte) error {
	made := &FormInterrupt{Key: f.Key, Lifetime: f.Lifetime}
	return initialize(f, made, payload, func(m member) (err error) {
		switch m.name {
		case "message":
			made.Message, err = m.text()
		case "schema":
			made.Schema = bytes.Clone(m.raw)
		default:
			err = m.unknown()
		}
		return err
	})
}

// InitFromPayload makes the URL from an object with message and url.
func (u *URLInterrupt) InitFromPayload(payload []byte) error {
	made := &URLInterrupt{Key: u.Key, Lifetime: u.Lifetime}
	return initialize(u, made, payload, func(m member) (err error) {
		switch m.name {
		case "message":
			made.Message, err = m.text()
		case "url":
			made.URL, err = m.text()
		default:
			err = m.unknown()
		}
		return err
	})
}
