package canon

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// A member is one name and value of an object in the output, by offsets: the buffer moves when it
// grows.
type member struct {
	start, colon, end int
	escaped           bool   // so that the bytes of the name are not in the order of what they mean
	name              []byte // decoded, for the time of sorting
}

// sort puts the members at the end of the output into the order of RFC 8785, section 3.2.3.
func (w *writer) sort(members []member) (err error) {
	if len(members) < 2 {
		return nil
	}
	for i := range members {
		m := &members[i]
		if m.name = w.out[m.start+1 : m.colon-1]; m.escaped {
			if m.name, err = jsontext.AppendUnquote(nil, w.out[m.start:m.colon]); err != nil {
				return refuse(w.tokens.StackPointer(), "not a string")
			}
		}
	}
	byName := func(a, b member) int { return compareUTF16(a.name, b.name) }
	if slices.IsSortedFunc(members, byName) {
		return nil
	}
	from := members[0].start
	slices.SortFunc(members, byName)
	w.scratch = append(w.scratch[:0], w.out[from:]...)
	w.out = w.out[:from]
	for i, m := range members {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = append(w.out, w.scratch[m.start-from:m.end-from]...)
	}
	return nil
}

// compareUTF16 orders two valid UTF-8 texts by their UTF-16 code units. That is the order of their
// bytes, but where a code point from U+10000 on (F0 or more), whose units are surrogates
// (U+D800–U+DFFF), meets one from U+E000 to U+FFFF (EE or EF).
func compareUTF16(a, b []byte) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) || i == len(b) {
		return cmp.Compare(len(a), len(b))
	}
	if astral := a[i] >= 0xF0; astral != (b[i] >= 0xF0) && min(a[i], b[i]) >= 0xEE {
		if astral {
			return -1
		}
		return 1
	}
	return cmp.Compare(a[i], b[i])
}
