package canon_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/parley-go/parley/internal/canon"
)

func TestSetText(t *testing.T) {
	for name, tc := range map[string]struct{ object, want string }{
		"empty":                         {`{}`, `{"m":"v"}`},
		"first":                         {`{"n":1}`, `{"m":"v","n":1}`},
		"last":                          {`{"l":[1,{"m":2}]}`, `{"l":[1,{"m":2}],"m":"v"}`},
		"between":                       {`{"l":"}","n":"\"]"}`, `{"l":"}","m":"v","n":"\"]"}`},
		"replaced":                      {`{"l":1,"m":{"m":[]},"n":2}`, `{"l":1,"m":"v","n":2}`},
		"replaced alone":                {`{"m":null}`, `{"m":"v"}`},
		"there already":                 {`{"l":1,"m":"v"}`, `{"l":1,"m":"v"}`},
		"a name that starts it":         {`{"":1,"mm":2}`, `{"":1,"m":"v","mm":2}`},
		"a name with an escape, before": {`{"\"":1}`, `{"\"":1,"m":"v"}`},
		"a name with an escape, behind": {`{"m\"":1}`, `{"m":"v","m\"":1}`},
		"not ASCII":                     {"{\"a\":1,\"\U0001F600\":2,\"\ufb33\":3}", "{\"a\":1,\"m\":\"v\",\"\U0001F600\":2,\"\ufb33\":3}"},
	} {
		before := []byte(tc.object)
		have, err := canon.SetText(before, "m", "v")
		if err != nil || string(have) != tc.want || string(before) != tc.object {
			t.Errorf("%s: %s, %v, want %s; the object is now %s", name, have, err, tc.want, before)
		}
	}
	for _, bad := range []string{``, `{`, `[]`, `null`, `"{}"`, `{"a"`, `{"a":`, `{"a":1`, `{"a":"`, `{"a":"\`, `{"a":[`, `{"a"}`, `{1}`, `{}}`} {
		if have, err := canon.SetText([]byte(bad), "m", "v"); err == nil {
			t.Errorf("%s: %s", bad, have)
		}
	}
	if have, err := canon.SetText([]byte(`{}`), "m", "\xff"); err == nil {
		t.Errorf("a text that is not UTF-8: %s", have)
	}
}

// A member that is set in a form is where and what the form of the changed object has it; other
// text makes an error or nonsense, and nothing worse.
func FuzzSetText(f *testing.F) {
	f.Fuzz(func(t *testing.T, in []byte, name, text string) {
		have, err := canon.SetText(in, name, text)
		form, formErr := canon.JSON(in, nil)
		if formErr != nil || !bytes.Equal(form, in) || in[0] != '{' {
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(in, &members); err != nil {
			t.Fatal(err)
		}
		value, nameErr := canon.JSON([]byte(quote(text)), nil)
		_, textErr := canon.JSON([]byte(quote(name)), nil)
		if (err != nil) != (nameErr != nil || textErr != nil) {
			t.Fatalf("%q in %s: %v, want an error as %v or %v", name, in, err, nameErr, textErr)
		}
		if err != nil {
			return
		}
		members[name] = value
		changed, err := canon.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		want, err := canon.JSON(changed, &canon.Limits{Bytes: len(changed) + len(in)})
		if err != nil || !bytes.Equal(have, want) {
			t.Fatalf("%q in %s: %s, want %s, %v", name, in, have, want, err)
		}
	})
}

// quote writes a string without replacing what is not UTF-8.
func quote(s string) string {
	b := []byte{'"'}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}
