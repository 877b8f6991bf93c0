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

// initialize reads a payload member by member.
func initialize(typeName string, payload []byte, read func(m member) error) error {
	// The walk relies on the text being well formed and without duplicate names.
	if _, err := canonicalForm(payload); err != nil {
		return refuseCanon(typeName, "", err)
	}
	return node{typeName, "", trimmed(payload)}.each(read)
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
	q := ToolPermissionInterrupt{Key: p.Key, Lifetime: p.Lifetime, Options: DefaultPermissionOptions()}
	err := initialize(TypeToolPermission, payload, func(m member) (err error) {
		switch m.name {
		case "toolName":
			q.ToolName, err = m.text()
		case "title":
			q.Title, err = m.text()
		case "options":
			q.Options, err = m.permissionOptions()
		default:
			err = m.unknown()
		}
		return err
	})
	if err == nil {
		err = q.Validate()
	}
	if err == nil {
		*p = q
	}
	return err
}

func (n node) permissionOptions() ([]PermissionOption, error) {
	list, err := n.elements()
	if err != nil {
		return nil, err
	}
	options := make([]PermissionOption, len(list))
	for i, element := range list {
		err := element.each(func(m member) (err error) {
			switch m.name {
			case "optionId":
				options[i].OptionID, err = m.text()
			case "name":
				options[i].Name, err = m.text()
			case "kind":
				options[i].Kind, err = m.text()
			default:
				err = m.unknown()
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return options, nil
}

// InitFromPayload makes the selection from an object with options, each an object with title,
// description and isRecommended.
func (s *UserSelectionInterrupt) InitFromPayload(payload []byte) error {
	q := UserSelectionInterrupt{Key: s.Key, Lifetime: s.Lifetime}
	err := initialize(TypeUserSelection, payload, func(m member) (err error) {
		if m.name != "options" {
			return m.unknown()
		}
		q.Options, err = m.userChoices()
		return err
	})
	if err == nil {
		err = q.Validate()
	}
	if err == nil {
		*s = q
	}
	return err
}

func (n node) userChoices() ([]UserChoice, error) {
	list, err := n.elements()
	if err != nil {
		return nil, err
	}
	choices := make([]UserChoice, len(list))
	for i, element := range list {
		err := element.each(func(m member) (err error) {
			switch m.name {
			case "title":
				choices[i].Title, err = m.text()
			case "description":
				choices[i].Description, err = m.text()
			case "isRecommended":
				choices[i].IsRecommended, err = m.boolean()
			default:
				err = m.unknown()
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return choices, nil
}

// InitFromPayload makes the form from an object with message and schema.
func (f *FormInterrupt) InitFromPayload(payload []byte) error {
	q := FormInterrupt{Key: f.Key, Lifetime: f.Lifetime}
	err := initialize(TypeForm, payload, func(m member) (err error) {
		switch m.name {
		case "message":
			q.Message, err = m.text()
		case "schema":
			q.Schema = bytes.Clone(m.raw)
		default:
			err = m.unknown()
		}
		return err
	})
	if err == nil {
		err = q.Validate()
	}
	if err == nil {
		*f = q
	}
	return err
}

// InitFromPayload makes the URL from an object with message and url.
func (u *URLInterrupt) InitFromPayload(payload []byte) error {
	q := URLInterrupt{Key: u.Key, Lifetime: u.Lifetime}
	err := initialize(TypeURL, payload, func(m member) (err error) {
		switch m.name {
		case "message":
			q.Message, err = m.text()
		case "url":
			q.URL, err = m.text()
		default:
			err = m.unknown()
		}
		return err
	})
	if err == nil {
		err = q.Validate()
	}
	if err == nil {
		*u = q
	}
	return err
}
