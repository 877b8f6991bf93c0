package elicit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/internal/elicit"
	"github.com/parley-go/parley/interrupt"
)

// R11: a schema is written with all that its form says, in the order of the fields, and read back it
// is the same form.
func TestSchema(t *testing.T) {
	for name, tc := range map[string]struct {
		properties string
		legacy     bool
		want       string // "": the same
	}{
		"strings": {properties: `{"b":{"type":"string","title":"B","description":"what","format":"email","minLength":3,"maxLength":80,` +
			`"default":"a@b.c"},"a":{"type":"string"}}`},
		"exact numbers": {properties: `{"i":{"type":"integer","minimum":-9007199254740993,"maximum":9007199254740993},` +
			`"n":{"type":"number","minimum":0.12345678901234567890123}}`},
		"a boolean":        {properties: `{"b":{"type":"boolean","default":true}}`},
		"choices":          {properties: `{"e":{"type":"string","enum":["a","b"],"default":"b"}}`},
		"several choices":  {properties: `{"m":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b"]},"default":["a"]}}`},
		"titled choices":   {properties: `{"e":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"b"}]}}`},
		"several titled":   {properties: `{"m":{"type":"array","maxItems":2,"items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}}}`},
		"HTML as it is":    {properties: `{"s":{"type":"string","title":"<a> & \"b\""}}`},
		"titles of before": {properties: `{"e":{"type":"string","enum":["a","b"],"enumNames":["A","B"]}}`, legacy: true},
		"titles of before, now": {properties: `{"e":{"type":"string","enum":["a","b"],"enumNames":["A","B"]}}`,
			want: `{"e":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}}`},
		"titles, as before": {properties: `{"e":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}}`, legacy: true,
			want: `{"e":{"type":"string","enum":["a","b"],"enumNames":["A","B"]}}`},
		"titles that say the same": {properties: `{"e":{"type":"string","oneOf":[{"const":"a","title":"a"},{"const":"b","title":"b"}]}}`,
			want: `{"e":{"type":"string","enum":["a","b"]}}`},
	} {
		if tc.want == "" {
			tc.want = tc.properties
		}
		fields := fieldsOf(t, `{"type":"object","properties":`+tc.properties+`}`)
		written := elicit.Schema(fields, tc.legacy)
		if want := `{"type":"object","properties":` + tc.want + `}`; string(written) != want {
			t.Errorf("%s: %s, want %s", name, written, want)
		}
		if diff := cmp.Diff(fields, fieldsOf(t, string(written))); diff != "" {
			t.Errorf("%s: read back, -asked +written:\n%s", name, diff)
		}
		for i := range fields {
			fields[i].Required = true
		}
		if diff := cmp.Diff(fields, fieldsOf(t, string(elicit.Schema(fields, tc.legacy)))); diff != "" {
			t.Errorf("%s, required: read back, -asked +written:\n%s", name, diff)
		}
	}
}

func fieldsOf(t *testing.T, schema string) []interrupt.Field {
	t.Helper()
	fields, err := interrupt.Form("?", []byte(schema)).Fields()
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return fields
}
