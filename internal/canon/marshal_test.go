package canon_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/parley-go/parley/internal/canon"
)

func TestMarshal(t *testing.T) {
	for _, tc := range []struct {
		in   any
		want string
	}{
		{"a&b <c>", `"a&b <c>"`},
		{json.RawMessage(`{ "b": "<\u0026>", "a": 1.50 }`), `{"b":"<\u0026>","a":1.50}`},
		{map[string]string{"b": "\n", "a": "&"}, `{"a":"&","b":"\n"}`},
		{nil, `null`},
	} {
		got, err := canon.Marshal(tc.in)
		if err != nil || string(got) != tc.want {
			t.Errorf("%v is written as %s, %v; want %s", tc.in, got, err, tc.want)
		}
	}
	for _, in := range []any{make(chan int), json.RawMessage(`{`)} {
		if got, err := canon.Marshal(in); err == nil || got != nil {
			t.Errorf("%v is written as %s", in, got)
		}
	}
}

// What is compacted is what encoding/json makes of it: nothing but white space goes.
func TestAppendCompact(t *testing.T) {
	for _, in := range []string{
		` { "b" : [ 1.50 , -0e+1 , true ] , "a" : "<\u003c \u2028" , "a" : null } `, "\"\u2028 \"", "\"\xff\"", ` 1 `, `[ ]`,
		``, ` `, `{`, `1 2`, `[1,]`, `"`, `nul`,
	} {
		var want bytes.Buffer
		wantErr := json.Compact(&want, []byte(in))
		have, err := canon.AppendCompact([]byte("before"), []byte(in))
		if (err != nil) != (wantErr != nil) || err == nil && string(have) != "before"+want.String() {
			t.Errorf("%q: %q, %v, want %q, %v", in, have, err, want.String(), wantErr)
		}
	}
}
