package canon

import (
	"bytes"
	"encoding/json"
)

// A Member of a JSON object, where its place counts.
type Member struct {
	Name  string
	Value json.RawMessage
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
