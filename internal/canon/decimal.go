package canon

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A Decimal is a JSON number, exactly. The zero value is 0. Two Decimals are == exactly when they
// are the same number.
type Decimal struct {
	negative bool
	digits   string // without zeros at either end; empty for 0
	point    int    // the value is 0.digits × 10^point
}

// ParseDecimal reads one JSON number with nothing around it. The error is an [*Error] without a
// path.
func ParseDecimal(number string, lim *Limits) (Decimal, error) {
	limits := lim.orDefaults()
	if len(number) > limits.Bytes {
		return Decimal{}, refuse("", fmt.Sprintf("longer than %d bytes", limits.Bytes))
	}
	if number == "" || !strings.Contains("-0123456789", number[:1]) ||
		!strings.Contains("0123456789", number[len(number)-1:]) ||
		!jsontext.Value(number).IsValid() {
		return Decimal{}, refuse("", "not a number")
	}
	d, reason := scanDecimal([]byte(number), limits)
	if reason != "" {
		return Decimal{}, refuse("", reason)
	}
	return Decimal{d.negative, string(d.digits), d.point}, nil
}

// Compare returns -1, 0 or +1 as d is less than, equal to or greater than e.
func (d Decimal) Compare(e Decimal) int {
	if d.sign() != e.sign() {
		return cmp.Compare(d.sign(), e.sign())
	}
	// Both have a first digit other than zero, so the place of the point decides before the digits
	// do.
	return d.sign() * cmp.Or(cmp.Compare(d.point, e.point), strings.Compare(d.digits, e.digits))
}

func (d Decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// IsInteger reports whether d has no fraction. 1.0 and 1e2 have none.
func (d Decimal) IsInteger() bool { return d.digits == "" || d.point >= len(d.digits) }

// Truncate returns d without its fraction: the nearest integer towards zero.
func (d Decimal) Truncate() Decimal {
	switch {
	case d.IsInteger():
		return d
	case d.point <= 0:
		return Decimal{}
	}
	// The point lies behind the first digit, which is not zero, so that some digit stays.
	return Decimal{d.negative, strings.TrimRight(d.digits[:d.point], "0"), d.point}
}

// ErrNotInt is returned by [Decimal.Int] for a number that has a fraction or is out of range.
var ErrNotInt = errors.New("not an integer in range")

// Int returns d as an int, or ErrNotInt where it is not exactly one.
func (d Decimal) Int() (int, error) {
	const most = 19 // digits of the largest int64
	if !d.IsInteger() || d.point > most {
		return 0, ErrNotInt
	}
	digits := d.digits + strings.Repeat("0", d.point-len(d.digits))
	if digits == "" {
		return 0, nil
	}
	if d.negative {
		digits = "-" + digits
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0, ErrNotInt
	}
	return n, nil
}

// String returns the canonical form of d.
func (d Decimal) String() string {
	return string(rawDecimal{d.negative, []byte(d.digits), d.point}.append(nil))
}

// A rawDecimal is a Decimal whose digits may still lie in the input.
type rawDecimal struct {
	negative bool
	digits   []byte
	point    int
}

// scanDecimal takes a number apart that the tokenizer found well formed. Its only work is to look
// at each byte once; digits are copied where a point stands between them. The reason is empty where
// the number is within the limits.
func scanDecimal(number []byte, limits Limits) (d rawDecimal, reason string) {
	if number[0] == '-' {
		d.negative, number = true, number[1:]
	}
	mantissa, exponent, ok := splitExponent(number, limits.Exponent)
	if !ok {
		return d, fmt.Sprintf("number with an exponent beyond ±%d", limits.Exponent)
	}
	whole, fraction := mantissa, []byte(nil)
	for i, c := range mantissa {
		if c == '.' {
			whole, fraction = mantissa[:i], mantissa[i+1:]
			break
		}
	}
	whole = trimLeft(whole)
	fraction = trimRight(fraction)
	switch {
	case len(fraction) == 0:
		d.point = len(whole) + exponent
		d.digits = trimRight(whole)
	case len(whole) == 0:
		d.digits = trimLeft(fraction)
		d.point = exponent - (len(fraction) - len(d.digits))
	default:
		d.point = len(whole) + exponent
		if len(whole)+len(fraction) > limits.Digits {
			return d, fmt.Sprintf("number with more than %d digits", limits.Digits)
		}
		d.digits = append(append(make([]byte, 0, len(whole)+len(fraction)), whole...), fraction...)
	}
	switch {
	case len(d.digits) == 0:
		return rawDecimal{}, ""
	case len(d.digits) > limits.Digits:
		return d, fmt.Sprintf("number with more than %d digits", limits.Digits)
	case d.point-1 > limits.Exponent || d.point-1 < -limits.Exponent:
		return d, fmt.Sprintf("number with an exponent beyond ±%d", limits.Exponent)
	}
	return d, ""
}

func splitExponent(number []byte, most int) (mantissa []byte, exponent int, ok bool) {
	i := 0
	for i < len(number) && number[i] != 'e' && number[i] != 'E' {
		i++
	}
	if i == len(number) {
		return number, 0, true
	}
	mantissa, written := number[:i], number[i+1:]
	negative := written[0] == '-'
	if negative || written[0] == '+' {
		written = written[1:]
	}
	for _, c := range written {
		if exponent = exponent*10 + int(c-'0'); exponent > most {
			return nil, 0, false
		}
	}
	if negative {
		exponent = -exponent
	}
	return mantissa, exponent, true
}

func trimLeft(digits []byte) []byte {
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
	}
	return digits
}

func trimRight(digits []byte) []byte {
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return digits
}

// append writes the number as ECMAScript's Number::toString does (ECMA-262, section 6.1.6.1.20),
// which RFC 8785 refers to, but with all of its digits.
func (d rawDecimal) append(dst []byte) []byte {
	if len(d.digits) == 0 {
		return append(dst, '0')
	}
	if d.negative {
		dst = append(dst, '-')
	}
	k, n := len(d.digits), d.point
	switch {
	case n > 21 || n <= -6:
		dst = append(dst, d.digits[0])
		if k > 1 {
			dst = append(append(dst, '.'), d.digits[1:]...)
		}
		if dst = append(dst, 'e'); n > 0 {
			dst = append(dst, '+')
		}
		return strconv.AppendInt(dst, int64(n-1), 10)
	case n <= 0:
		return append(appendZeros(append(dst, "0."...), -n), d.digits...)
	case n < k:
		return append(append(append(dst, d.digits[:n]...), '.'), d.digits[n:]...)
	default:
		return appendZeros(append(dst, d.digits...), n-k)
	}
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}
