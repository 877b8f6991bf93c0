package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/internal/schema"
)

type deploy struct {
	Service  string    `json:"service" jsonschema:"name of the service"`
	Replicas *uint8    `json:"replicas,omitempty"`
	Tags     []string  `json:"tags,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

func TestFor(t *testing.T) {
	for _, tc := range []struct {
		name  string
		infer func() (json.RawMessage, error)
		want  string
	}{
		{"struct", schema.For[deploy],
			`{"type":"object","properties":{"service":{"type":"string","description":"name of the service"},` +
				`"replicas":{"type":["null","integer"],"minimum":0,"maximum":255},"tags":{"type":["null","array"],` +
				`"items":{"type":"string"}},` +
				`"at":{"type":"string","format":"date-time"}},"required":["service"],"additionalProperties":false}`},
		{"empty struct", schema.For[struct{}], `{"type":"object","additionalProperties":false}`},
		{"map", schema.For[map[string]int], `{"type":"object","additionalProperties":{"type":"integer"}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.infer()
			if err != nil {
				t.Fatal(err)
			}
			var g, w any
			if err := errors.Join(json.Unmarshal(got, &g), json.Unmarshal([]byte(tc.want), &w)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(w, g); diff != "" {
				t.Errorf("schema (-want +got):\n%s", diff)
			}
			if _, err := schema.Compile(got); err != nil {
				t.Errorf("compile: %v", err)
			}
		})
	}
}

type cyclic struct{ Next *cyclic }

func TestForRefusesTypesWithoutJSON(t *testing.T) {
	for name, infer := range map[string]func() (json.RawMessage, error){
		"function": schema.For[struct{ F func() }], "channel": schema.For[struct{ C chan int }],
		"cycle": schema.For[cyclic],
	} {
		if raw, err := infer(); err == nil {
			t.Errorf("%s has the schema %s", name, raw)
		}
	}
}

// R15: what is inferred can be given. The option string wants a text where the type says a number;
// the refusal has the field's name, wherever the field stands.
func TestForRefusesTheOptionString(t *testing.T) {
	type counted struct {
		Count int `json:"count,string"`
	}
	type unread struct {
		Count int     `json:"-"`
		Kept  counted `json:"-"`
	}
	for name, infer := range map[string]func() (json.RawMessage, error){
		"integer": schema.For[counted],
		"text": schema.For[struct {
			Count string `json:"count,omitempty,string"`
		}],
		"inside":   schema.For[struct{ A []map[string]*counted }],
		"embedded": schema.For[struct{ counted }],
	} {
		if raw, err := infer(); err == nil || !strings.Contains(err.Error(), `"count"`) {
			t.Errorf("%s: %s, %v", name, raw, err)
		}
	}
	if _, err := schema.For[unread](); err != nil {
		t.Errorf("fields that are never read: %v", err)
	}
}

// R15: a json.Number is a number, as encoding/json reads one.
func TestForNumber(t *testing.T) {
	type input struct {
		Exact json.Number   `json:"exact"`
		Maybe *json.Number  `json:"maybe"`
		Many  []json.Number `json:"many"`
	}
	raw, err := schema.For[input]()
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	good := json.RawMessage(`{"exact":0.10000000000000000000001,"many":[1],"maybe":null}`)
	if err := s.Validate(good); err != nil || json.Unmarshal(good, new(input)) != nil {
		t.Errorf("%s: %v", good, err)
	}
	for bad, path := range map[string]string{
		`{"exact":"ten","many":[],"maybe":null}`: "/exact", `{"exact":1,"many":["1"],"maybe":null}`: "/many/0",
	} {
		wantError(t, s.Validate(json.RawMessage(bad)), path)
	}
}

func TestCompile(t *testing.T) {
	for _, in := range []string{
		`{"type":"object"}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object",` +
			`"definitions":{"a":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/a"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$anchor":"x","type":"integer"},` +
			`"b":{"$ref":"#x"}}}`,
		`{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}}}`,
		`{"type":"object","properties":{"a":{"format":"int32","x-order":1}}}`,
		`{"$id":"https://example.com/tool","type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":true}}`,
	} {
		if _, err := schema.Compile(json.RawMessage(in)); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for _, tc := range []struct{ name, in, path string }{
		{"empty", ``, ""},
		{"not JSON", `{"type":`, "/type"},
		{"duplicate name", `{"type":"object","properties":{"a":{},"a":{}}}`, "/properties/a"},
		{"not an object", `true`, ""},
		{"no type", `{"properties":{}}`, "/type"},
		{"another type", `{"type":"array"}`, "/type"},
		{"several types", `{"type":["object","null"]}`, "/type"},
		{"unknown type", `{"type":"object","properties":{"a":{"type":"text"}}}`, "/properties/a/type"},
		{"keyword of a wrong kind", `{"type":"object","properties":{"a":{"type":"string","minLength":"1"}}}`,
			"/properties/a/minLength"},
		{"first of two", `{"type":"object","required":[1],"properties":{"b":{"type":7},"a":{"minLength":-1}}}`,
			"/properties/a/minLength"},
		{"count beyond 64 bits", `{"type":"object","properties":{"a":{"maxLength":18446744073709551616}}}`,
			"/properties/a/maxLength"},
		{"count with a fraction", `{"type":"object","properties":{"a":{"maxItems":1.5}}}`, "/properties/a/maxItems"},
		{"pattern", `{"type":"object","properties":{"a/b":{"pattern":"("}}}`, "/properties/a~1b/pattern"},
		{"lookahead", `{"type":"object","properties":{"a":{"pattern":"(?=x)"}}}`, "/properties/a/pattern"},
		{"remote reference", `{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`,
			"/properties/a/$ref"},
		{"remote reference with fragment",
			`{"type":"object","properties":{"a":{"$ref":"http://example.com/a.json#/b"}}}`, "/properties/a/$ref"},
		{"file", `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "/properties/a/$ref"},
		{"relative reference", `{"type":"object","properties":{"a":{"$ref":"other.json"}}}`, "/properties/a/$ref"},
		{"reference through $id",
			`{"$id":"https://example.com/x/","type":"object","allOf":[{"$ref":"https://example.com/x/a.json"}]}`,
			"/allOf/0/$ref"},
		{"dangling reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}}}`, "/properties/a/$ref"},
		{"dangling anchor", `{"type":"object","properties":{"a":{"$ref":"#a"}}}`, "/properties/a/$ref"},
		{"unknown dialect", `{"$schema":"https://example.com/dialect","type":"object"}`, "/$schema"},
		{"too deep", nested(`{"not":`, 1000, `true`), strings.Repeat("/not", 64) + "…"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := schema.Compile(json.RawMessage(tc.in))
			wantError(t, err, tc.path)
		})
	}
}

func wantError(t *testing.T, err error, path string) {
	t.Helper()
	e, ok := errors.AsType[*schema.Error](err)
	if !ok {
		t.Fatalf("error is %T: %v", err, err)
	}
	if e.Path != path || e.Reason == "" {
		t.Errorf("error is at %q (%v), want %q", e.Path, e, path)
	}
	if len(e.Error()) > 600 {
		t.Errorf("error has %d bytes", len(e.Error()))
	}
}

// canonical is what Validate takes.
func canonical(t *testing.T, doc string) json.RawMessage {
	t.Helper()
	form, err := canon.JSON([]byte(doc), &canon.Limits{Bytes: 16 << 20, Depth: 10_000})
	if err != nil {
		t.Fatalf("%.80s: %v", doc, err)
	}
	return form
}

// nested opens so often, around what is inside.
func nested(open string, depth int, inside string) string {
	return `{"type":"object","not":` + strings.Repeat(open, depth) + inside + strings.Repeat(`}`, depth) + `}`
}

const tool = `{
	"type": "object",
	"properties": {
		"name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[^x]*$"},
		"mail": {"type": "string", "format": "email"},
		"count": {"type": "integer", "minimum": 1, "maximum": 9007199254740993},
		"ratio": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.1},
		"env": {"enum": ["dev", "prod", 1.0]},
		"tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 12, "uniqueItems": true},
		"at": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
		"nest": {"type": "object", "properties": {"a/b": {"type": "boolean"}}, "required": ["a/b"]},
		"fixed": {"const": true}
	},
	"required": ["name"],
	"additionalProperties": false,
	"dependentRequired": {"mail": ["count"]}
}`

func TestValidate(t *testing.T) {
	s, err := schema.Compile(json.RawMessage(tool))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []string{
		`{"name":"ab"}`,
		`{"name":"äöü€"}`,
		`{"name":"ab","count":1.0}`,
		`{"name":"ab","count":1e2}`,
		`{"name":"ab","count":9007199254740993}`,
		`{"name":"ab","ratio":0.3}`,
		`{"name":"ab","env":1}`,
		`{"name":"ab","at":null,"nest":{"a/b":false,"more":1},"fixed":true}`,
		`{"name":"ab","mail":"a@example.com","count":1}`,
	} {
		if err := s.Validate(canonical(t, doc)); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func TestValidateErrors(t *testing.T) {
	s, err := schema.Compile(json.RawMessage(tool))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ doc, path string }{
		{`null`, ""},
		{`[]`, ""},
		{`{"name":"ab","count":1e1000}`, "/count"},
		{`{}`, "/name"},
		{`{"name":null}`, "/name"},
		{`{"name":"a"}`, "/name"},
		{`{"name":"äöü€!"}`, "/name"},
		{`{"name":"xx"}`, "/name"},
		{`{"name":"ab","more":1}`, "/more"},
		{`{"name":"ab","count":"1"}`, "/count"},
		{`{"name":"ab","count":1.5}`, "/count"},
		{`{"name":"ab","count":0}`, "/count"},
		{`{"name":"ab","count":9007199254740994}`, "/count"},
		{`{"name":"ab","ratio":0}`, "/ratio"},
		{`{"name":"ab","ratio":0.35}`, "/ratio"},
		{`{"name":"ab","env":"test"}`, "/env"},
		{`{"name":"ab","env":"1"}`, "/env"},
		{`{"name":"ab","tags":[]}`, "/tags"},
		{`{"name":"ab","tags":["a","a"]}`, "/tags"},
		{`{"name":"ab","tags":["0","1",2,"3","4","5","6","7","8","9",10]}`, "/tags/2"},
		{`{"name":"ab","at":"2026-02-30"}`, "/at"},
		{`{"name":"ab","nest":{}}`, "/nest/a~1b"},
		{`{"name":"ab","nest":{"a/b":1}}`, "/nest/a~1b"},
		{`{"name":"ab","fixed":1}`, "/fixed"},
		{`{"name":"ab","mail":"a@example.com"}`, "/count"},
		{`{"name":"ab","mail":"a","count":1}`, "/mail"},
		{`{"z":1,"name":"a","b":2,"count":"x"}`, "/b"},
	} {
		t.Run(tc.doc, func(t *testing.T) {
			doc := canonical(t, tc.doc)
			wantError(t, s.Validate(doc), tc.path)
			first := s.Validate(doc).Error()
			for range 20 {
				if again := s.Validate(doc).Error(); again != first {
					t.Fatalf("error is once %q and once %q", first, again)
				}
			}
		})
	}
}

// Every keyword's refusal leads to the value it is about.
func TestValidatePlaces(t *testing.T) {
	for _, tc := range []struct{ property, value, path string }{
		{`{"exclusiveMaximum":1}`, `1`, "/p"},
		{`{"minimum":0.1}`, `0.09999999999999999999`, "/p"},
		{`{"minProperties":1}`, `{}`, "/p"},
		{`{"maxProperties":1}`, `{"a":1,"b":2}`, "/p"},
		{`{"minItems":1}`, `[]`, "/p"},
		{`{"maxItems":1}`, `[1,2]`, "/p"},
		{`{"contains":{"const":1}}`, `[2]`, "/p"},
		{`{"contains":{"const":1},"minContains":2}`, `[1]`, "/p"},
		{`{"contains":{"const":1},"maxContains":1}`, `[1,1]`, "/p"},
		{`{"prefixItems":[true],"items":false}`, `[1,2]`, "/p/1"},
		{`{"propertyNames":{"maxLength":1}}`, `{"a":1,"bb":2}`, "/p/bb"},
		{`{"patternProperties":{"^x":{"type":"string"}}}`, `{"xy":1}`, "/p/xy"},
		{`{"not":{"type":"string"}}`, `"a"`, "/p"},
		{`{"oneOf":[{"type":"string"},{"maxLength":2}]}`, `"a"`, "/p"},
		{`{"oneOf":[{"type":"string"},{"type":"null"}]}`, `1`, "/p"},
		{`{"anyOf":[{"properties":{"a":{"type":"string"}}},{"type":"null"}]}`, `{"a":1}`, "/p"},
		{`{"allOf":[{"properties":{"b":{"type":"string"}}},{"properties":{"a":{"type":"string"}}}]}`, `{"a":1,"b":1}`,
			"/p/a"},
		{`{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, "/p/b"},
		{`{"dependentSchemas":{"a":{"required":["b"]}}}`, `{"a":1}`, "/p/b"},
		{`{"properties":{"a":true},"unevaluatedProperties":false}`, `{"a":1,"z":1}`, "/p/z"},
		{`{"items":{"type":"string"}}`, `["a","b",1,2,"c","d","e","f","g","h",1]`, "/p/2"},
		{`{"additionalProperties":{"type":"string"}}`, `{"b":1,"10":1,"9":1,"a":1}`, "/p/9"},
		{`false`, `1`, "/p"},
	} {
		t.Run(tc.property, func(t *testing.T) {
			s, err := schema.Compile(json.RawMessage(`{"type":"object","properties":{"p":` + tc.property + `}}`))
			if err != nil {
				t.Fatal(err)
			}
			wantError(t, s.Validate(canonical(t, `{"p":`+tc.value+`}`)), tc.path)
		})
	}
}

func TestSchemaIsShared(t *testing.T) {
	s, err := schema.Compile(json.RawMessage(tool))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if err := s.Validate(json.RawMessage(`{"name":"ab","mail":"a@example.com","count":1}`)); err != nil {
					t.Error(err)
				}
				if err := s.Validate(json.RawMessage(`{"name":"ab","at":"x","ratio":0.35}`)); err == nil {
					t.Error("accepted")
				}
			}
		})
	}
	group.Wait()
}

// What a person wrote does not come back in an error.
func TestErrorsDoNotQuoteValues(t *testing.T) {
	s, err := schema.Compile(json.RawMessage(tool))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []string{
		`{"name":"hunter2 hunter2"}`, `{"name":"ab","mail":"hunter2","count":1}`, `{"name":"ab","env":"hunter2"}`,
		`{"name":"ab","at":"hunter2"}`,
	} {
		if err := s.Validate(json.RawMessage(doc)); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// Both dialects are one road to one validator, so that numbers are exact in both.
func TestDraft7(t *testing.T) {
	s, err := schema.Compile(json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object",
		"properties":{"n":{"type":"integer","maximum":9007199254740993},"d":{"format":"date"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, s.Validate(json.RawMessage(`{"n":9007199254740994}`)), "/n")
	wantError(t, s.Validate(json.RawMessage(`{"d":"today"}`)), "/d")
}

// Validate has no limits of its own: a document that is longer and deeper than canon's defaults is
// checked like any other, however deep a schema that refers to itself follows it.
func TestValidateHasNoLimits(t *testing.T) {
	s, err := schema.Compile(json.RawMessage(`{
		"type":"object",
		"properties":{"a":{"$ref":"#"},"text":{"type":"string","maxLength":1500000}}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, s.Validate(json.RawMessage(`{"a":{"a":{"a":1}}}`)), "/a/a/a")
	long := strings.Repeat("x", 1_500_000)
	for _, depth := range []int{0, 63, 64, 500} {
		around := func(inside string) json.RawMessage {
			return canonical(t, strings.Repeat(`{"a":`, depth)+inside+strings.Repeat(`}`, depth))
		}
		if err := s.Validate(around(`{"text":"` + long + `"}`)); err != nil {
			t.Errorf("depth %d: %v", depth, err)
		}
		if err := s.Validate(around(`{"text":"` + long + `x"}`)); err == nil {
			t.Errorf("depth %d: a text that is too long is accepted", depth)
		}
	}
	if err := s.Validate(json.RawMessage(strings.Repeat(`{"a":`, 20_000))); err == nil {
		t.Error("what is no JSON is accepted")
	}
}

// A schema is the host's own, and may be larger than what callers send.
func TestLargeSchemas(t *testing.T) {
	for name, raw := range map[string]string{
		"long": `{"type":"object","description":"` + strings.Repeat("x", 1_500_000) + `"}`,
		"deep": nested(`{"not":`, 300, `true`),
	} {
		if _, err := schema.Compile(json.RawMessage(raw)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIsFormat(t *testing.T) {
	for _, tc := range []struct {
		name string
		yes  []string
		no   []string
	}{
		{"email", []string{"a@example.com", "a.b+c@example.com", `"a b"@example.com`, "a@[127.0.0.1]"},
			[]string{"", "a", "@example.com", "a@", "a b@example.com", "a..b@example.com", "a@-x.com",
				"\"a\nbcc: b\"@example.com", "ä@example.com", "a@b@c@"}},
		{"uri", []string{"https://example.com/a?b=c#d", "mailto:a@example.com", "urn:x:y", "https://example.com/%20"},
			[]string{"", "example.com", "/a", "//example.com", "https://example.com/a b", "https://ex ample.com",
				"https://example.com/ä", "https://example.com/%zz", "http://[::1", "a\nb:c", `https://example.com/\x`}},
		{"date", []string{"2026-02-28", "2024-02-29"},
			[]string{"", "2026-02-29", "2026-2-1", "26-02-01", "2026-02-01T", "2026-13-01", " 2026-02-01",
				"２026-02-01"}},
		{"date-time",
			[]string{"2026-02-28T12:00:00Z", "2026-02-28t12:00:00.123z", "2026-02-28T12:00:00+01:30",
				"2026-12-31T23:59:60Z"},
			[]string{"", "2026-02-28", "2026-02-28T12:00:00", "2026-02-28 12:00:00Z", "2026-02-28T+1:00:00Z",
				"2026-02-28T24:00:00Z", "2026-02-28T12:60:00Z", "2026-02-28T12:00:00.Z", "2026-02-28T12:00:00+1:30",
				"2026-02-28T12:00:00+0130", "2026-02-28T12:00:00+01:300", "2026-02-28T12:00:60Z",
				"2026-02-30T12:00:00Z"}},
		{"hostname", nil, []string{"example.com"}},
		{"", nil, []string{""}},
	} {
		for _, s := range tc.yes {
			if !schema.IsFormat(tc.name, s) {
				t.Errorf("%q is no %s", s, tc.name)
			}
		}
		for _, s := range tc.no {
			if schema.IsFormat(tc.name, s) {
				t.Errorf("%q is a %s", s, tc.name)
			}
		}
	}
}

func ExampleSchema_Validate() {
	raw, err := schema.For[struct {
		Service  string `json:"service"`
		Replicas uint8  `json:"replicas,omitempty"`
	}]()
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := schema.Compile(raw)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Validate(json.RawMessage(`{"service":"api","replicas":3}`)))
	fmt.Println(s.Validate(json.RawMessage(`{"service":"api","replicas":300}`)))
	fmt.Println(s.Validate(json.RawMessage(`{"replicas":3}`)))
	// Output:
	// <nil>
	// /replicas: must be at most 255
	// /service: is required
}

// Types that read their own JSON or text are not taken for their kind.
func TestInferOwnForms(t *testing.T) {
	type input struct {
		Raw   json.RawMessage `json:"raw"`
		Bytes []byte          `json:"bytes"`
		Addr  netip.Addr      `json:"addr"`
		Addrs []netip.Addr    `json:"addrs,omitempty"`
		When  time.Time       `json:"when"`
	}
	raw, err := schema.For[input]()
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	good, err := json.Marshal(input{
		Raw: json.RawMessage(`{"x":[1]}`), Bytes: []byte("hello"), Addr: netip.MustParseAddr("::1"), When: time.Unix(0, 0).UTC(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(good); err != nil {
		t.Errorf("%s: %v", good, err)
	}
	for _, bad := range []string{`{"raw":1,"bytes":[1],"addr":"::1","when":"2026-01-01T00:00:00Z"}`, `{"raw":1,"bytes":"","addr":{},"when":"2026-01-01T00:00:00Z"}`,
		`{"raw":1,"bytes":"","addr":"::1","when":"today"}`} {
		if err := s.Validate(json.RawMessage(bad)); err == nil {
			t.Errorf("%s is valid", bad)
		}
	}
}
