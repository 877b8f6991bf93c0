package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// A Member of a JSON object, where its place counts.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members reads one JSON object, its members in their order. It reports whether a name is there
// twice. It fails where raw is no object.
func Members(raw []byte) (list []Member, twice bool, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if delim, err := d.Token(); err != nil || delim != json.Delim('{') {
		return nil, false, errors.Join(errors.New("not an object"), err)
	}
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false, err
		}
		m := Member{Name: name.(string)} // the tokenizer has no other names
		if err := d.Decode(&m.Value); err != nil {
			return nil, false, err
		}
		twice = twice || seen[m.Name]
		seen[m.Name] = true
		list = append(list, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, false, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false, errors.New("more than one value")
	}
	return list, twice, nil
}

// InAnotherCase reports whether a member has one of the names in another case, for which some
// readers take it.
func InAnotherCase(list []Member, names ...string) bool {
	return slices.ContainsFunc(list, func(m Member) bool {
		return slices.ContainsFunc(names, func(name string) bool { return m.Name != name && strings.EqualFold(m.Name, name) })
	})
}

// Object writes an object with its members in their order. Their values are not looked at.
func Object(list []Member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(value(m.Name))
		b.WriteByte(':')
		b.Write(m.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// NewMember is a member with that value, which always has a JSON form: it panics for what has none.
func NewMember(name string, v any) Member { return Member{name, value(v)} }

func value(v any) json.RawMessage {
	raw, err := Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
