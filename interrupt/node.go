package interrupt

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-go/parley/internal/canon"
)

// A node is a JSON value in a question and the place where it stands. The whole text is known to be
// well formed when a node is made of a part of it.
type node struct {
	of   string // the question's type name
	path string // JSON Pointer into the question
	raw  jsontext.Value
}

// A member is a member of an object.
type member struct {
	name string
	node
}

func find(members []member, name string) (member, bool) {
	for _, m := range members {
		if m.name == name {
			return m, true
		}
	}
	return member{}, false
}

func trimmed(raw []byte) jsontext.Value { return bytes.Trim(raw, " \t\r\n") }

func (n node) refuse(reason string) error { return &QuestionError{n.of, n.path, reason} }

// members returns the members of an object in the order of the text.
func (n node) members() ([]member, error) {
	if n.raw.Kind() != jsontext.KindBeginObject {
		return nil, n.refuse("must be an object")
	}
	members, err := membersOf(n.raw)
	if err != nil {
		return nil, n.refuse("must be an object")
	}
	for i := range members {
		members[i].of, members[i].path = n.of, memberPath(n.path, members[i].name)
	}
	return members, nil
}

func membersOf(object jsontext.Value) ([]member, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(object))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	var members []member
	for d.PeekKind() == jsontext.KindString {
		token, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: token.String()}
		if m.raw, err = d.ReadValue(); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}

// memberPath extends a JSON Pointer by a name, which is cut where a hostile one is long.
func memberPath(path, name string) string {
	return string(jsontext.Pointer(path).AppendToken(canon.Clip(name, 256)))
}

func (n node) elements() ([]node, error) {
	if n.raw.Kind() != jsontext.KindBeginArray {
		return nil, n.refuse("must be an array")
	}
	values, err := elementsOf(n.raw)
	if err != nil {
		return nil, n.refuse("must be an array")
	}
	nodes := make([]node, 0, len(values))
	for i, value := range values {
		nodes = append(nodes, node{n.of, fmt.Sprintf("%s/%d", n.path, i), value})
	}
	return nodes, nil
}

func elementsOf(array jsontext.Value) ([]jsontext.Value, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(array))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	var values []jsontext.Value
	for d.PeekKind() != jsontext.KindEndArray {
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

func (n node) text() (string, error) {
	text, ok := textOf(n.raw)
	if !ok {
		return "", n.refuse("must be a string")
	}
	return text, nil
}

func textOf(value jsontext.Value) (string, bool) {
	if value.Kind() != jsontext.KindString {
		return "", false
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1]), true
	}
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err == nil
}

func (n node) texts() ([]string, error) {
	list, err := n.elements()
	if err != nil {
		return nil, err
	}
	texts := make([]string, 0, len(list))
	for _, element := range list {
		text, err := element.text()
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func (n node) number() (*canon.Decimal, json.Number, error) {
	if n.raw.Kind() != jsontext.KindNumber {
		return nil, "", n.refuse("must be a number")
	}
	d, err := canon.ParseDecimal(string(n.raw), nil)
	if err != nil {
		return nil, "", refuseCanon(n.of, n.path, err)
	}
	return &d, json.Number(d.String()), nil
}

// count reads a number of things: exactly an integer, and not negative.
func (n node) count() (*int, error) {
	number, _, err := n.number()
	if err != nil {
		return nil, err
	}
	count, err := number.Int()
	if err != nil || count < 0 {
		return nil, n.refuse("must be an integer from 0 on")
	}
	return &count, nil
}
