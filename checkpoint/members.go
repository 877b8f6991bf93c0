package checkpoint

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/parley-go/parley/internal/canon"
)

// members appends JSON objects member by member, byte for byte as encoding/json writes the same
// structs: what is stored keeps its form, and is written without reflection. The first error stays.
type members struct {
	buf        []byte
	escapeHTML bool // <, > and & in strings are written as escapes
	err        error
}

// buffers are those in which is written what has no size yet.
var buffers = sync.Pool{New: func() any { return new(members) }}

// write returns what a value appends.
func write(appendTo func(*members), escapeHTML bool) ([]byte, error) {
	m := buffers.Get().(*members)
	m.buf, m.escapeHTML, m.err = m.buf[:0], escapeHTML, nil
	appendTo(m)
	data, err := bytes.Clone(m.buf), m.err
	const keep = 64 << 10
	if cap(m.buf) <= keep {
		buffers.Put(m)
	}
	return data, err
}

// open and shut begin and end an object.

func (m *members) open() { m.buf = append(m.buf, '{') }
func (m *members) shut() { m.buf = append(m.buf, '}') }

// element separates an item of an array from the one before it.
func (m *members) element(i int) {
	if i > 0 {
		m.buf = append(m.buf, ',')
	}
}

// name begins a member.
func (m *members) name(name string) {
	if m.buf[len(m.buf)-1] != '{' {
		m.buf = append(m.buf, ',')
	}
	m.buf = append(append(append(m.buf, '"'), name...), `":`...) // the names of this package need no escape
}

// The members that are left out where they are zero have "optional" in their name.

func (m *members) number(name string, n uint64) {
	m.name(name)
	m.buf = strconv.AppendUint(m.buf, n, 10)
}

func (m *members) integer(name string, n int64) {
	m.name(name)
	m.buf = strconv.AppendInt(m.buf, n, 10)
}

func (m *members) optionalNumber(name string, n uint64) {
	if n != 0 {
		m.number(name, n)
	}
}

func (m *members) optionalInteger(name string, n int) {
	if n != 0 {
		m.integer(name, int64(n))
	}
}

func (m *members) optionalTrue(name string, is bool) {
	if is {
		m.name(name)
		m.buf = append(m.buf, "true"...)
	}
}

func (m *members) text(name, s string) {
	m.name(name)
	m.string(s)
}

func (m *members) string(s string) {
	m.buf = appendText(m.buf, s, m.escapeHTML)
}

func (m *members) optionalText(name, s string) {
	if s != "" {
		m.text(name, s)
	}
}

// hex writes an id or a hash.
func (m *members) hex(name string, b []byte) {
	m.name(name)
	m.digits(b)
}

func (m *members) digits(b []byte) {
	m.buf = append(hex.AppendEncode(append(m.buf, '"'), b), '"')
}

func (m *members) optionalHash(name string, h Hash) {
	if !h.IsZero() {
		m.hex(name, h[:])
	}
}

func (m *members) status(name string, s Status) {
	text, err := s.MarshalText()
	m.fail(err)
	m.text(name, string(text))
}

func (m *members) time(name string, t time.Time) {
	m.name(name)
	dst, err := t.AppendText(append(m.buf, '"'))
	if m.fail(err); err == nil {
		m.buf = append(dst, '"')
	}
}

func (m *members) optionalTime(name string, t time.Time) {
	if !t.IsZero() {
		m.time(name, t)
	}
}

func (m *members) raw(name string, value json.RawMessage) {
	m.name(name)
	m.value(value)
}

func (m *members) optionalRaw(name string, value json.RawMessage) {
	if len(value) > 0 {
		m.raw(name, value)
	}
}

// value writes a JSON value without the white space between its tokens.
func (m *members) value(value json.RawMessage) {
	if value == nil {
		m.buf = append(m.buf, "null"...)
		return
	}
	dst, err := canon.AppendCompact(m.buf, value)
	if m.fail(err); err == nil {
		m.buf = dst
	}
}

func (m *members) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// appendText appends a string with the escapes of encoding/json: what JSON demands; U+2028 and
// U+2029, which end a line in JavaScript; and one for each byte that is no UTF-8.
func appendText(dst []byte, s string, escapeHTML bool) []byte {
	dst = append(dst, '"')
	done := 0 // how much of s is written
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		if escape := escapeOf(r, size, escapeHTML); escape != "" {
			dst = append(append(dst, s[done:i]...), escape...)
			done = i + size
		}
		i += size
	}
	return append(append(dst, s[done:]...), '"')
}

// escapeOf returns what stands for a rune, or "" where that is the rune itself. size is how many
// bytes it was read from.
func escapeOf(r rune, size int, escapeHTML bool) string {
	switch {
	case r == '"':
		return `\"`
	case r == '\\':
		return `\\`
	case r < ' ':
		return controls[r]
	case r < utf8.RuneSelf:
		if escapeHTML && (r == '<' || r == '>' || r == '&') {
			return `\u00` + hexDigits[r>>4:r>>4+1] + hexDigits[r&15:r&15+1]
		}
	case r == utf8.RuneError && size == 1:
		return `\ufffd`
	case r == '\u2028':
		return `\u2028`
	case r == '\u2029':
		return `\u2029`
	}
	return ""
}

const hexDigits = "0123456789abcdef"

// controls are the escapes of the characters before the space.
var controls = func() (escapes [' ']string) {
	for c := range escapes {
		escapes[c] = `\u00` + hexDigits[c>>4:c>>4+1] + hexDigits[c&15:c&15+1]
	}
	escapes['\b'], escapes['\f'], escapes['\n'], escapes['\r'], escapes['\t'] = `\b`, `\f`, `\n`, `\r`, `\t`
	return escapes
}()
