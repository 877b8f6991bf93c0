package canon

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits bounds what [JSON] accepts. Nil works, and so does a zero field: it means the default.
// What was accepted under some limits is accepted again, as a form, under the same.
type Limits struct {
	Bytes    int // of the input and, on its own, of the form, in which 1e20 is written out; 1 MiB by default
	Depth    int // nested arrays and objects; 64 by default
	Digits   int // significant digits of a number; 1000 by default
	Exponent int // magnitude of a number's decimal exponent, as written and as normalised to d.ddd; 1000 by default
}

func (l *Limits) orDefaults() Limits {
	if l == nil {
		l = &Limits{}
	}
	return Limits{
		Bytes:    cmp.Or(l.Bytes, 1<<20),
		Depth:    cmp.Or(l.Depth, 64),
		Digits:   cmp.Or(l.Digits, 1000),
		Exponent: min(cmp.Or(l.Exponent, 1000), 1<<30), // beyond, sums of exponents and lengths could leave 32 bits
	}
}

// JSON returns the canonical form of the one JSON value in src. It reads src only, and the result
// is the caller's. The form of a form is itself. The error is an [*Error] and tells the first place
// that is wrong.
func JSON(src []byte, lim *Limits) ([]byte, error) {
	limits := lim.orDefaults()
	if len(src) > limits.Bytes {
		return nil, refuse("", fmt.Sprintf("longer than %d bytes", limits.Bytes))
	}
	w := writers.Get().(*writer)
	defer w.release()
	w.limits = limits
	w.in = *bytes.NewBuffer(src) // the tokenizer reads a bytes.Buffer in place, and never writes to it
	w.tokens.Reset(&w.in)
	if err := w.value(0); err != nil {
		return nil, err
	}
	if _, err := w.tokens.ReadToken(); err != io.EOF {
		return nil, refuse("", "more than one value")
	}
	if len(w.out) > limits.Bytes {
		return nil, refuse("", fmt.Sprintf("longer than %d bytes in canonical form", limits.Bytes))
	}
	return bytes.Clone(w.out), nil
}

// Digest returns the SHA-256 of a canonical form. Of bytes that are no canonical form it says
// nothing useful.
func Digest(canonical []byte) [32]byte { return sha256.Sum256(canonical) }

// A writer makes one form. Its buffers outlive it in a pool: small values, which are nearly all,
// then cost one allocation.
type writer struct {
	limits  Limits
	in      bytes.Buffer
	tokens  jsontext.Decoder
	out     []byte
	members []member // of all objects that are open, the innermost last
	scratch []byte   // for sorting, and for decoding strings
}

var writers = sync.Pool{New: func() any { return new(writer) }}

func (w *writer) release() {
	const keep = 64 << 10
	if cap(w.out) > keep || cap(w.scratch) > keep || cap(w.members) > keep/64 {
		return
	}
	clear(w.members)
	w.out, w.scratch, w.members = w.out[:0], w.scratch[:0], w.members[:0]
	w.in = bytes.Buffer{} // do not keep the caller's bytes
	w.tokens.Reset(&w.in)
	writers.Put(w)
}

func (w *writer) value(depth int) error {
	switch w.tokens.PeekKind() {
	case jsontext.KindBeginObject:
		return w.object(depth + 1)
	case jsontext.KindBeginArray:
		return w.array(depth + 1)
	case jsontext.KindString:
		_, err := w.str()
		return err
	case jsontext.KindNumber:
		return w.number()
	}
	literal, err := w.tokens.ReadValue() // or the error that peeking met
	if err != nil {
		return translate(err)
	}
	w.out = append(w.out, literal...)
	return nil
}

func (w *writer) open(depth int) error {
	delim, err := w.tokens.ReadToken()
	if err != nil {
		return translate(err)
	}
	if depth > w.limits.Depth {
		return refuse(w.tokens.StackPointer(), fmt.Sprintf("nested deeper than %d", w.limits.Depth))
	}
	w.out = append(w.out, byte(delim.Kind()))
	return nil
}

func (w *writer) shut() error {
	delim, err := w.tokens.ReadToken()
	if err != nil {
		return translate(err)
	}
	w.out = append(w.out, byte(delim.Kind()))
	return nil
}

func (w *writer) array(depth int) error {
	if err := w.open(depth); err != nil {
		return err
	}
	for first := true; w.tokens.PeekKind() != jsontext.KindEndArray; first = false {
		if !first {
			w.out = append(w.out, ',')
		}
		if err := w.value(depth); err != nil {
			return err
		}
	}
	return w.shut()
}

func (w *writer) object(depth int) error {
	if err := w.open(depth); err != nil {
		return err
	}
	base := len(w.members)
	for w.tokens.PeekKind() != jsontext.KindEndObject {
		if len(w.members) > base {
			w.out = append(w.out, ',')
		}
		m := member{start: len(w.out)}
		escaped, err := w.str()
		if err != nil {
			return err
		}
		m.escaped, m.colon = escaped, len(w.out)
		w.out = append(w.out, ':')
		if err := w.value(depth); err != nil {
			return err
		}
		m.end = len(w.out)
		w.members = append(w.members, m)
	}
	if err := w.sort(w.members[base:]); err != nil {
		return err
	}
	w.members = w.members[:base]
	return w.shut()
}

// str writes the next string or name and reports whether its form has escapes.
func (w *writer) str() (escaped bool, err error) {
	raw, err := w.tokens.ReadValue()
	if err != nil {
		return false, translate(err)
	}
	if raw.Kind() != jsontext.KindString {
		return false, refuse(w.tokens.StackPointer(), "name is not a string")
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		w.out = append(w.out, raw...) // without an escape there is only one way to write it
		return false, nil
	}
	if w.scratch, err = jsontext.AppendUnquote(w.scratch[:0], raw); err != nil {
		return false, refuse(w.tokens.StackPointer(), "not a string")
	}
	start := len(w.out)
	if w.out, err = jsontext.AppendQuote(w.out, w.scratch); err != nil {
		return false, refuse(w.tokens.StackPointer(), "not a string")
	}
	return bytes.IndexByte(w.out[start:], '\\') >= 0, nil
}

func (w *writer) number() error {
	raw, err := w.tokens.ReadValue()
	if err != nil {
		return translate(err)
	}
	d, reason := scanDecimal(raw, w.limits)
	if reason != "" {
		return refuse(w.tokens.StackPointer(), reason)
	}
	w.out = d.append(w.out)
	return nil
}
