package canon_test

import (
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
