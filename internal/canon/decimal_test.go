package canon_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/parley-go/parley/internal/canon"
)

var literals = []string{
	"0", "-0", "1", "-1", "1.0", "10e-1", "1e2", "100", "99.99", "-99.99", "0.1", "0.10", "0.1000000000000000055",
	"9007199254740992", "9007199254740993",
	"-9007199254740993", "1e21", "1e-7", "1e1000", "-1e1000", "1e-1000", "0.5", "5", "50", "12.5", "125", "0.0125",
	"9223372036854775807",
	"9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551616",
}

func parse(t *testing.T, literal string) canon.Decimal {
	t.Helper()
	d, err := canon.ParseDecimal(literal, nil)
	if err != nil {
		t.Fatalf("%s: %v", literal, err)
	}
	return d
}

// Every pair is compared as math/big compares it, and equal numbers are == and print the same.
func TestDecimalCompare(t *testing.T) {
	for _, a := range literals {
		for _, b := range literals {
			ra, _ := new(big.Rat).SetString(a)
			rb, _ := new(big.Rat).SetString(b)
			da, db := parse(t, a), parse(t, b)
			if got, want := da.Compare(db), ra.Cmp(rb); got != want {
				t.Errorf("%s against %s is %d, want %d", a, b, got, want)
			}
			if same := ra.Cmp(rb) == 0; (da == db) != same || (da.String() == db.String()) != same {
				t.Errorf("%s and %s: equal %v, want %v", a, b, da == db, same)
			}
		}
	}
}

func TestDecimalInt(t *testing.T) {
	for _, literal := range literals {
		r, _ := new(big.Rat).SetString(literal)
		d := parse(t, literal)
		if d.IsInteger() != r.IsInt() {
			t.Errorf("%s: integer %v, want %v", literal, d.IsInteger(), r.IsInt())
		}
		if whole := new(big.Int).Quo(r.Num(), r.Denom()); d.Truncate() != parse(t, whole.String()) {
			t.Errorf("%s: %v without its fraction, want %v", literal, d.Truncate(), whole)
		}
		n, err := d.Int()
		if fits := r.IsInt() && r.Num().IsInt64(); fits != (err == nil) {
			t.Errorf("%s: %d, %v", literal, n, err)
		} else if fits && r.Num().Int64() != int64(n) {
			t.Errorf("%s: %d", literal, n)
		} else if !fits && !errors.Is(err, canon.ErrNotInt) {
			t.Errorf("%s: error is %v", literal, err)
		}
	}
}

func TestParseDecimalErrors(t *testing.T) {
	for _, in := range []string{
		"", " 1", "1 ", "+1", "01", ".5", "5.", "1e", "0x10", "NaN", "true", `"1"`, "[1]", "1,2", "1 2", "--1",
		"1e999999999", "1e1001", "1" + strings.Repeat("0", 1001),
		strings.Repeat("7", 1001), "0." + strings.Repeat("0", 1<<20),
	} {
		if _, err := canon.ParseDecimal(in, nil); err == nil {
			t.Errorf("%.20q is accepted", in)
		} else if _, ok := errors.AsType[*canon.Error](err); !ok {
			t.Errorf("%.20q: error is a %T", in, err)
		}
	}
}

func TestZeroDecimal(t *testing.T) {
	var d canon.Decimal
	if d != parse(t, "-0.0e5") || d.String() != "0" || !d.IsInteger() {
		t.Errorf("zero value is %v", d)
	}
}

// Whatever two texts are, what is taken as a decimal compares, prints and is whole or not as
// math/big says.
func FuzzDecimal(f *testing.F) {
	f.Fuzz(func(t *testing.T, a, b string) {
		da, errA := canon.ParseDecimal(a, nil)
		db, errB := canon.ParseDecimal(b, nil)
		if errA != nil || errB != nil {
			return
		}
		ra, okA := new(big.Rat).SetString(a)
		rb, okB := new(big.Rat).SetString(b)
		if !okA || !okB {
			t.Fatalf("%q or %q is no number to math/big", a, b)
		}
		if have, want := da.Compare(db), ra.Cmp(rb); have != want || (da == db) != (want == 0) {
			t.Errorf("%q against %q is %d, want %d", a, b, have, want)
		}
		if da.IsInteger() != ra.IsInt() {
			t.Errorf("%q is an integer: %v", a, da.IsInteger())
		}
		if again, ok := new(big.Rat).SetString(da.String()); !ok || again.Cmp(ra) != 0 {
			t.Errorf("%q prints as %q", a, da)
		}
		if n, err := da.Int(); err == nil && ra.Cmp(new(big.Rat).SetInt64(int64(n))) != 0 || err != nil && ra.IsInt() && ra.Num().IsInt64() {
			t.Errorf("%q is the int %d, %v", a, n, err)
		}
	})
}
