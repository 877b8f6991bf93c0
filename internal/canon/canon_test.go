package canon_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/internal/canon"
)

func TestJSON(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"literals", ` [ null , true,false ] `, `[null,true,false]`},
		{"empty object", " {\n} ", `{}`},
		{"empty array", `[ ]`, `[]`},
		{"names are sorted", `{"b":1,"a":2,"":3,"aa":4}`, `{"":3,"a":2,"aa":4,"b":1}`},
		{"names are sorted at every depth", `[{"b":{"d":1,"c":2},"a":[{"f":1,"e":2}]}]`,
			`[{"a":[{"e":2,"f":1}],"b":{"c":2,"d":1}}]`},
		{"array order stays", `[3,1,2]`, `[3,1,2]`},
		// RFC 8785, section 3.2.3: by UTF-16 code units, under which U+1F600 (D83D DE00) comes
		// before U+FB33.
		{"RFC 8785 order",
			"{\"\\u20ac\":1,\"\\r\":2,\"\\ufb33\":3,\"1\":4,\"\\ud83d\\ude00\":5,\"\\u0080\":6,\"\\u00f6\":7}",
			"{\"\\r\":2,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\ufb33\":3}"},
		{"two astral names", "{\"\U0001F601\":1,\"\U0001F600\":2}", "{\"\U0001F600\":2,\"\U0001F601\":1}"},
		{"escaped names sort by meaning", `{"\\":1,"A":2,"\u0001":3,"]":4,"\u0042":5}`,
			`{"\u0001":3,"A":2,"B":5,"\\":1,"]":4}`},
		{"a name that starts another", `{"a\u0000":1,"a":2}`, `{"a":2,"a\u0000":1}`},
		// RFC 8785, section 3.2.2.2.
		{"escapes", `"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"`, `"€$\u000f\nA'B\"\\\\\"/"`},
		{"short escapes", `"\u0008\u0009\u000a\u000c\u000d"`, `"\b\t\n\f\r"`},
		{"no needless escapes", `"\u007f\u2028\u003c\u002f"`, "\"\u007f\u2028</\""},
		{"surrogate pair", `"\uD83D\uDE00"`, `"😀"`},
		{"no normalization of text", "\"e\u0301\"", "\"e\u0301\""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := canon.JSON([]byte(tc.in), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("form (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"0", "0"}, {"-0", "0"}, {"0.000", "0"}, {"-0e10", "0"}, {"0e-1000", "0"},
		{"1", "1"}, {"1.0", "1"}, {"1e0", "1"}, {"10e-1", "1"}, {"0.1e1", "1"}, {"0.01E+2", "1"},
		{"1e0000000000000000000000", "1"},
		{"-1.50", "-1.5"}, {"100", "100"}, {"1e2", "100"}, {"12.5e1", "125"}, {"12.5e3", "12500"},
		{"1002.50", "1002.5"},
		{"9007199254740993", "9007199254740993"}, {"-9007199254740993", "-9007199254740993"},
		{"9007199254740993.0", "9007199254740993"},
		{"0.1000000000000000055", "0.1000000000000000055"}, {"0.1", "0.1"},
		{"18446744073709551616", "18446744073709551616"},
		{"100000000000000000000", "100000000000000000000"}, {"1e20", "100000000000000000000"},
		{"123456789012345678901", "123456789012345678901"},
		{"1e21", "1e+21"}, {"1234567890123456789012", "1.234567890123456789012e+21"}, {"123e1000", ""},
		{"1e1000", "1e+1000"},
		{"123456789012345678901.5", "123456789012345678901.5"},
		{"1234567890123456789012.5", "1.2345678901234567890125e+21"},
		{"0.000001", "0.000001"}, {"1e-6", "0.000001"}, {"1.5e-6", "0.0000015"}, {"0.0000001", "1e-7"},
		{"15e-8", "1.5e-7"}, {"-0.00000012", "-1.2e-7"},
		{"1e-1000", "1e-1000"}, {"0.1e-1000", ""},
	} {
		t.Run(tc.in, func(t *testing.T) {
			got, err := canon.JSON([]byte(tc.in), nil)
			if (err == nil) != (tc.want != "") || string(got) != tc.want {
				t.Errorf("form is %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestJSONErrors(t *testing.T) {
	small := &canon.Limits{Bytes: 40, Depth: 2, Digits: 5, Exponent: 30}
	for _, tc := range []struct {
		name, in string
		lim      *canon.Limits
		path     string
	}{
		{"empty", "", nil, ""},
		{"only white space", " \n", nil, ""},
		{"two values", "1 2", nil, ""},
		{"text after the value", `{} x`, nil, ""},
		{"cut off", `{"a":[1`, nil, "/a"},
		{"cut off in a name", `{"a":1,"b`, nil, ""},
		{"not JSON", `{"a":nope}`, nil, "/a"},
		{"trailing comma", `{"a":1,}`, nil, ""},
		{"trailing comma in array", `[1,]`, nil, ""},
		{"name not a string", `{"a":{1:2}}`, nil, "/a"},
		{"name an object", `{"a":{{}:2}}`, nil, "/a"},
		{"leading zero", `[1,01]`, nil, ""},
		{"plus sign", `[+1]`, nil, "/0"},
		{"NaN", `[NaN]`, nil, "/0"},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", nil, "/a"},
		{"lone surrogate", `{"a":["\ud800"]}`, nil, "/a/0"},
		{"control character", "[\"\n\"]", nil, "/0"},
		{"byte order mark", "\ufeff{}", nil, ""},
		{"duplicate name", `{"a":1,"a":1}`, nil, "/a"},
		{"duplicate name, written differently", `{"x":[{"a":1,"\u0061":2}]}`, nil, "/x/0/a"},
		{"pointer is escaped", `{"a/b~":{"c":nope}}`, nil, "/a~1b~0/c"},
		{"too long", strings.Repeat(" ", 39) + "10", small, ""},
		{"too long in canonical form", `[1e20,1e20,1e20]`, small, ""},
		{"too deep array", `[[[]]]`, small, "/0/0"},
		{"too deep object", `{"a":{"b":{}}}`, small, "/a/b"},
		{"too many digits", `{"n":123456}`, small, "/n"},
		{"too many digits around the point", `[123.456]`, small, "/0"},
		{"too many digits after the point", `[0.00123456]`, small, "/0"},
		{"exponent too large", `[1,1e31]`, small, "/1"},
		{"exponent too small", `[1,1e-31]`, small, "/1"},
		{"exponent too large as normalised", `[11e30]`, small, "/0"},
		{"exponent too small as normalised", `[0.1e-30]`, small, "/0"},
		{"exponent of zero", `[0e31]`, small, "/0"},
		{"large exponent", `1e999999999`, nil, ""},
		{"exponent beyond an int", `1e-99999999999999999999999999999999`, nil, ""},
		{"many zeros", `1` + strings.Repeat("0", 1001), nil, ""},
		{"default depth", strings.Repeat("[", 65) + strings.Repeat("]", 65), nil, strings.Repeat("/0", 64)},
		{"default digits", `[` + strings.Repeat("1", 1001) + `]`, nil, "/0"},
		{"default bytes", `"` + strings.Repeat("a", 1<<20-1) + `"`, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := canon.JSON([]byte(tc.in), tc.lim)
			e, ok := errors.AsType[*canon.Error](err)
			if !ok || got != nil {
				t.Fatalf("form is %q, error %v; want only a *canon.Error", got, err)
			}
			if e.Reason == "" {
				t.Error("error without a reason")
			}
			if tc.path != e.Path {
				t.Errorf("path is %q (%v), want %q", e.Path, e, tc.path)
			}
		})
	}
}

// What is exactly at a limit is within it.
func TestLimitsAreInclusive(t *testing.T) {
	lim := &canon.Limits{Bytes: 9, Depth: 2, Digits: 5, Exponent: 30}
	for _, in := range []string{
		`[[12345]]`, `1e30`, `1e-30`, `1234e27`, `0.01234`, `123450000`, `0.0000000`, `"1234567"`,
	} {
		if _, err := canon.JSON([]byte(in), lim); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
	for _, in := range []string{
		strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("1", 1000), "1e1000",
		`"` + strings.Repeat("a", 1<<20-2) + `"`,
	} {
		if _, err := canon.JSON([]byte(in), nil); err != nil {
			t.Errorf("%.20s…: %v", in, err)
		}
	}
}

// Digits that do not count are not counted: the limit is on the number, not on how it is written.
func TestDigitsAreSignificant(t *testing.T) {
	got, err := canon.JSON([]byte(`[1.`+strings.Repeat("0", 5000)+`,0.5`+strings.Repeat("0", 5000)+`]`), nil)
	if err != nil || string(got) != "[1,0.5]" {
		t.Errorf("form is %q, %v", got, err)
	}
}

// A hostile name makes no long error.
func TestErrorIsBounded(t *testing.T) {
	_, err := canon.JSON([]byte(`{"`+strings.Repeat("ä", 100_000)+`":nope}`), nil)
	e, ok := errors.AsType[*canon.Error](err)
	if !ok || len(e.Path) > 300 || len(e.Error()) > 500 {
		t.Errorf("error is %d bytes long", len(err.Error()))
	}
	if !strings.HasSuffix(e.Path, "ä…") {
		t.Errorf("path is not cut between characters: %q", e.Path)
	}
}

// A number that would be long when written out is refused before it is, and a small value is cheap.
func TestAllocations(t *testing.T) {
	for _, tc := range []struct {
		in   string
		most float64 // generous: the race detector empties pools at random
	}{
		{`{"n":[1e999999999]}`, 20},
		{`{"service":"api","env":"production","replicas":3,"flags":["a","b"]}`, 10},
	} {
		in := []byte(tc.in)
		if n := testing.AllocsPerRun(200, func() { _, _ = canon.JSON(in, nil) }); n > tc.most {
			t.Errorf("%s: %v allocations", tc.in, n)
		}
	}
}

// The input is not written to, and the result is not shared.
func TestJSONIsDetached(t *testing.T) {
	in := []byte(`{"b":"\u0041","a":1.50}`)
	before := bytes.Clone(in)
	first, err := canon.JSON(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := bytes.Clone(first)
	if _, err := canon.JSON([]byte(`{"z":"zzzzzzzzzzzzzzzzzzzzz"}`), nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(in, before) || !bytes.Equal(first, kept) {
		t.Errorf("input is now %q, result %q", in, first)
	}
}

// An error in one call leaves nothing behind for the next.
func TestPoolIsClean(t *testing.T) {
	for range 50 {
		if _, err := canon.JSON([]byte(`{"a":{"b":1,"c":[1,{"d":x`), nil); err == nil {
			t.Fatal("accepted")
		}
		got, err := canon.JSON([]byte(`{"b":1,"a":2}`), nil)
		if err != nil || string(got) != `{"a":2,"b":1}` {
			t.Fatalf("form is %q, %v", got, err)
		}
	}
}

func TestDigest(t *testing.T) {
	digest := func(in string) [32]byte {
		form, err := canon.JSON([]byte(in), nil)
		if err != nil {
			t.Fatal(err)
		}
		return canon.Digest(form)
	}
	if digest(`{"a":1.0,"b":"\u0041"}`) != digest(` {"b":"A","a":10e-1}`) {
		t.Error("one value has two digests")
	}
	if digest(`9007199254740993`) == digest(`9007199254740992`) {
		t.Error("two values have one digest")
	}
}

func ExampleJSON() {
	form, err := canon.JSON([]byte(`{ "to": "caf\u00e9", "amount": 12.50, "id": 9007199254740993 }`), nil)
	fmt.Println(string(form), err)
	_, err = canon.JSON([]byte(`{"amount": 1, "amount": 1000}`), nil)
	fmt.Println(err)
	// Output:
	// {"amount":12.5,"id":9007199254740993,"to":"café"} <nil>
	// /amount: duplicate name
}

func BenchmarkJSON(b *testing.B) {
	in := []byte(`{"service":"api","env":"production","replicas":3,"ratio":0.25,"flags":["a","b"]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := canon.JSON(in, nil); err != nil {
			b.Fatal(err)
		}
	}
}
