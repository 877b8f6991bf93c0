package canon

import (
	"cmp"
	"slices"
	"unicode/utf8"

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

// compareUTF16 orders two valid UTF-8 texts by their UTF-16 code units. It differs from the order
// of code points only where a surrogate (U+D800–U+DFFF, standing for a code point from U+10000 on)
// meets a unit from U+E000 on.
func compareUTF16(a, b []byte) int {
	for len(a) > 0 && len(b) > 0 {
		ra, na := utf8.DecodeRune(a)
		rb, nb := utf8.DecodeRune(b)
		if ra != rb {
			if (ra > 0xFFFF) != (rb > 0xFFFF) {
				return cmp.Compare(firstUnit(ra), firstUnit(rb))
			}
			return cmp.Compare(ra, rb)
		}
		a, b = a[na:], b[nb:]
	}
	return cmp.Compare(len(a), len(b))
}

func firstUnit(r rune) rune {
	if r > 0xFFFF {
		return 0xD800 + (r-0x10000)>>10
	}
	return r
}
