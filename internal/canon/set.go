package canon

import (
	"bytes"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

var errNoObject = errors.New("set a member: it is no object in canonical form")

// SetText returns the canonical form of an object with the named member set to a string. The object
// must be in canonical form; it is not changed, and is itself what is returned where the member
// says that already. A string that is not valid UTF-8 is an error.
func SetText(object []byte, name, text string) ([]byte, error) {
	if len(object) < 2 || object[0] != '{' {
		return nil, errNoObject
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return nil, err
	}
	from, to, found, err := place(object, name)
	if err != nil {
		return nil, err
	}
	if found {
		if bytes.Equal(object[from:to], quoted) {
			return object, nil
		}
		return slices.Concat(object[:from], quoted, object[to:]), nil
	}
	member, err := jsontext.AppendQuote(make([]byte, 0, len(name)+len(quoted)+4), name)
	if err != nil {
		return nil, err
	}
	member = append(append(member, ':'), quoted...)
	switch {
	case object[from] != '}': // before another one
		member = append(member, ',')
	case from > 1: // behind the last one
		member = append([]byte{','}, member...)
	}
	return slices.Concat(object[:from], member, object[from:]), nil
}

// place finds the value of the named member or, where there is none, where the member belongs.
func place(object []byte, name string) (from, to int, found bool, err error) {
	at := 1
	for at < len(object) && object[at] == '"' {
		colon := stringEnd(object, at)
		end := valueEnd(object, colon+1)
		if end >= len(object) || object[colon] != ':' {
			return 0, 0, false, errNoObject
		}
		this := object[at+1 : colon-1]
		if bytes.IndexByte(this, '\\') >= 0 {
			if this, err = jsontext.AppendUnquote(nil, object[at:colon]); err != nil {
				return 0, 0, false, err
			}
		}
		switch order := compareUTF16(this, []byte(name)); {
		case order == 0:
			return colon + 1, end, true, nil
		case order > 0:
			return at, at, false, nil
		}
		if at = end; object[at] == ',' {
			at++
		}
	}
	if at != len(object)-1 || object[at] != '}' {
		return 0, 0, false, errNoObject
	}
	return at, at, false, nil
}

// stringEnd returns where the string ends that begins at i. All ends of what has none are behind
// the text.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// valueEnd returns where the value ends that begins at i: at the comma or bracket behind it.
func valueEnd(text []byte, i int) int {
	for depth := 0; i < len(text); {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return len(text)
}
