package interrupt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/interrupt"
)

// R11: what a form may ask for.
func TestFormSchemaAccepted(t *testing.T) {
	for _, tc := range []struct{ name, property string }{
		{"string", `{"type":"string"}`},
		{"title, description and default", `{"type":"string","title":"T","description":"D","default":"x"}`},
		{"keywords in any order", `{"default":"abc","maxLength":3,"minLength":3,"type":"string"}`},
		{"lengths", `{"type":"string","minLength":0,"maxLength":10}`},
		{"equal lengths", `{"type":"string","minLength":3,"maxLength":3}`},
		{"length written as a decimal", `{"type":"string","maxLength":1e2}`},
		{"email", `{"type":"string","format":"email","default":"a@example.com"}`},
		{"uri", `{"type":"string","format":"uri"}`},
		{"date", `{"type":"string","format":"date"}`},
		{"date-time", `{"type":"string","format":"date-time"}`},
		{"number", `{"type":"number","minimum":-1.5,"maximum":1e3,"default":0.1}`},
		{"integer", `{"type":"integer","minimum":1,"maximum":1,"default":1.0}`},
		{"integer bounds beyond float64",
			`{"type":"integer","minimum":9007199254740992,"maximum":9007199254740993,"default":9007199254740993}`},
		{"integer between fractions", `{"type":"integer","minimum":1.5,"maximum":2.5}`},
		{"integer between fractions below zero", `{"type":"integer","minimum":-2.5,"maximum":-1.5}`},
		{"zero between fractions", `{"type":"integer","minimum":-0.5,"maximum":0.5}`},
		{"integer at a bound", `{"type":"integer","minimum":0.5,"maximum":1}`},
		{"number between close bounds", `{"type":"number","minimum":1.5,"maximum":1.7}`},
		{"boolean", `{"type":"boolean","default":false}`},
		{"enum", `{"type":"string","enum":["a","b"],"default":"b"}`},
		{"enum of one", `{"type":"string","enum":["a"]}`},
		{"enumNames", `{"type":"string","enumNames":["A","B"],"enum":["a","b"]}`},
		{"oneOf", `{"type":"string","oneOf":[{"const":"a","title":"A"},{"title":"B","const":"b"}],"default":"a"}`},
		{"array of enum",
			`{"type":"array","maxItems":2,"minItems":1,"items":{"type":"string","enum":["a","b"]},"default":["b",` +
				`"a"]}`},
		{"array of anyOf", `{"type":"array","maxItems":1,"items":{"anyOf":[{"const":"a","title":"A"}]},"default":[]}`},
		{"maxItems beyond the choices", `{"type":"array","maxItems":9,"items":{"type":"string","enum":["a"]}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			form := interrupt.Form("m", json.RawMessage(`{"type":"object","properties":{"p":`+tc.property+`}}`))
			if err := form.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// R11: the keywords of the root.
func TestFormRoot(t *testing.T) {
	const p = `"properties":{"a":{"type":"string"},"b":{"type":"string"}}`
	for _, tc := range []struct{ name, schema, path string }{
		{"plain", `{"type":"object",` + p + `}`, ""},
		{"white space", " { \"type\" : \"object\" , " + p + " } \n", ""},
		{"no properties", `{"type":"object","properties":{}}`, ""},
		{"properties absent", `{"type":"object"}`, ""},
		{"2020-12", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` + p + `}`, ""},
		{"draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object",` + p + `}`, ""},
		{"additionalProperties false", `{"type":"object","additionalProperties":false,` + p + `}`, ""},
		{"required", `{"required":["b","a"],"type":"object",` + p + `}`, ""},
		{"none required", `{"required":[],"type":"object",` + p + `}`, ""},

		{"nil", ``, "/schema"},
		{"null", `null`, "/schema"},
		{"true", `true`, "/schema"},
		{"array", `[]`, "/schema"},
		{"not JSON", `{"type":"object",`, "/schema"},
		{"two values", `{"type":"object"} {}`, "/schema"},
		{"duplicate keyword", `{"type":"object","type":"object"}`, "/schema/type"},
		{"duplicate property", `{"type":"object","properties":{"a":{"type":"string"},"\u0061":{"type":"number"}}}`,
			"/schema/properties/a"},
		{"duplicate keyword of a property", `{"type":"object","properties":{"a":{"type":"string","type":"number"}}}`,
			"/schema/properties/a/type"},
		{"invalid UTF-8", "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"title\":\"\xff\"}}}",
			"/schema/properties/a/title"},
		{"too deep", `{"type":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`,
			"/schema/type" + strings.Repeat("/0", 63)},
		{"type missing", `{` + p + `}`, "/schema"},
		{"type array", `{"type":"array",` + p + `}`, "/schema/type"},
		{"type list", `{"type":["object"],` + p + `}`, "/schema/type"},
		{"type null", `{"type":null,` + p + `}`, "/schema/type"},
		{"other dialect", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object",` + p + `}`,
			"/schema/$schema"},
		{"dialect not a string", `{"$schema":7,"type":"object",` + p + `}`, "/schema/$schema"},
		{"additionalProperties true", `{"type":"object","additionalProperties":true,` + p + `}`,
			"/schema/additionalProperties"},
		{"additionalProperties a schema", `{"type":"object","additionalProperties":{},` + p + `}`,
			"/schema/additionalProperties"},
		{"additionalProperties null", `{"type":"object","additionalProperties":null,` + p + `}`,
			"/schema/additionalProperties"},
		{"properties a list", `{"type":"object","properties":[]}`, "/schema/properties"},
		{"name empty", `{"type":"object","properties":{"":{"type":"string"}}}`, "/schema/properties/"},
		{"required undeclared", `{"type":"object","required":["a","c"],` + p + `}`, "/schema/required/1"},
		{"required twice", `{"type":"object","required":["a","b","a"],` + p + `}`, "/schema/required/2"},
		{"required not strings", `{"type":"object","required":["a",1],` + p + `}`, "/schema/required/1"},
		{"required a string", `{"type":"object","required":"a",` + p + `}`, "/schema/required"},
		{"required true", `{"type":"object","required":true,` + p + `}`, "/schema/required"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := interrupt.Form("m", json.RawMessage(tc.schema)).Validate()
			if tc.path == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantQuestionError(t, err, tc.path)
		})
	}
}

func wantQuestionError(t *testing.T, err error, path string) *interrupt.QuestionError {
	t.Helper()
	e, ok := errors.AsType[*interrupt.QuestionError](err)
	if !ok || !errors.Is(err, interrupt.ErrInvalidQuestion) {
		t.Fatalf("error is %T: %v", err, err)
	}
	if e.Type != interrupt.TypeForm || e.Path != path || e.Reason == "" {
		t.Errorf("error is at %q (%v), want %q", e.Path, e, path)
	}
	return e
}

// R11: every other keyword is refused, by name and path, wherever it stands.
func TestFormUnknownKeywords(t *testing.T) {
	const property = `{"type":"object","properties":{"x":{"type":"string","title":"T"},"p":{"type":"string",%s}}}`
	places := []struct{ format, path string }{
		{`{"type":"object",%s,"properties":{}}`, "/schema/"},
		{property, "/schema/properties/p/"},
		{`{"type":"object","properties":{"p":{%s}}}`, "/schema/properties/p/"}, // named even where the type is missing
		{`{"type":"object","properties":{"p":{"type":"number",%s}}}`, "/schema/properties/p/"},
		{`{"type":"object","properties":{"p":{"type":"boolean",%s}}}`, "/schema/properties/p/"},
		{`{"type":"object","properties":{"p":{"type":"string","enum":["a"],%s}}}`, "/schema/properties/p/"},
		{`{"type":"object","properties":{"p":{"type":"string","oneOf":[{"const":"a","title":"A",%s}]}}}`,
			"/schema/properties/p/oneOf/0/"},
		{`{"type":"object","properties":{"p":{"type":"array","maxItems":1,"items":{"type":"string","enum":["a"]},%s}}}`,
			"/schema/properties/p/"},
		{`{"type":"object","properties":{"p":{"type":"array","maxItems":1,"items":{"type":"string","enum":["a"],%s}}}}`,
			"/schema/properties/p/items/"},
		{`{"type":"object","properties":{"p":{"type":"array","maxItems":1,"items":{"anyOf":[{"const":"a",` +
			`"title":"A"}],%s}}}}`, "/schema/properties/p/items/"},
		{`{"type":"object","properties":{"p":{"type":"array","maxItems":1,"items":{"anyOf":[{"const":"a",` +
			`"title":"A",%s}]}}}}`, "/schema/properties/p/items/anyOf/0/"},
	}
	keywords := map[string]string{
		"$ref": `"#"`, "$id": `"x"`, "$defs": `{}`, "$anchor": `"a"`, "$comment": `"c"`, "$dynamicRef": `"#a"`,
		"definitions": `{}`,
		"allOf":       `[]`, "not": `{}`, "if": `{}`, "then": `{}`, "else": `{}`,
		"pattern": `"a"`, "multipleOf": `2`, "exclusiveMinimum": `1`, "exclusiveMaximum": `1`, "uniqueItems": `true`,
		"contains": `{}`, "prefixItems": `[]`,
		"patternProperties": `{}`, "propertyNames": `{}`, "minProperties": `1`, "maxProperties": `1`,
		"dependentRequired": `{}`, "unevaluatedProperties": `false`,
		"readOnly": `true`, "writeOnly": `true`, "deprecated": `true`, "examples": `[]`, "contentEncoding": `"base64"`,
		"contentMediaType": `"text/plain"`,
		"x-order":          `1`, "Title": `"T"`, "MINIMUM": `1`,
	}
	for _, place := range places {
		for name, value := range keywords {
			schema := fmt.Sprintf(place.format, fmt.Sprintf("%q:%s", name, value))
			err := interrupt.Form("m", json.RawMessage(schema)).Validate()
			e := wantQuestionError(t, err, place.path+name)
			if !strings.Contains(e.Reason, name) {
				t.Errorf("%s: reason does not name %q: %v", schema, name, e)
			}
		}
	}
	for _, name := range []string{
		"const", "anyOf", "oneOf", "enum", "title", "description", "default", "format", "items", "minimum",
	} {
		schema := fmt.Sprintf(`{"type":"object","properties":{},%q:"a"}`, name)
		wantQuestionError(t, interrupt.Form("m", json.RawMessage(schema)).Validate(), "/schema/"+name)
	}
}

// R11: what is wrong with a property.
func TestFormPropertyRefused(t *testing.T) {
	for _, tc := range []struct{ name, property, path string }{
		{"not an object", `true`, ""},
		{"no type", `{"title":"T"}`, ""},
		{"nested object", `{"type":"object"}`, "/type"},
		{"nested object with properties", `{"type":"object","properties":{"a":{"type":"string"}}}`, "/properties"},
		{"null", `{"type":"null"}`, "/type"},
		{"type list", `{"type":["string","null"]}`, "/type"},
		{"unknown type", `{"type":"text"}`, "/type"},
		{"title not a string", `{"type":"string","title":1}`, "/title"},
		{"description not a string", `{"type":"string","description":null}`, "/description"},
		{"const", `{"type":"string","const":"a"}`, "/const"},
		{"anyOf", `{"type":"string","anyOf":[{"const":"a","title":"A"}]}`, "/anyOf"},

		// Keywords of one kind do not go with another.
		{"minimum of a string", `{"type":"string","minimum":1}`, "/minimum"},
		{"maxItems of a string", `{"type":"string","maxItems":1}`, "/maxItems"},
		{"items of a string", `{"type":"string","items":{"type":"string","enum":["a"]}}`, "/items"},
		{"enumNames of a string", `{"type":"string","enumNames":["a"]}`, "/enumNames"},
		{"minLength of a number", `{"type":"number","minLength":1}`, "/minLength"},
		{"format of a number", `{"type":"integer","format":"date"}`, "/format"},
		{"enum of numbers", `{"type":"number","enum":[1]}`, "/enum"},
		{"oneOf of integers", `{"type":"integer","oneOf":[{"const":1,"title":"A"}]}`, "/oneOf"},
		{"minimum of a boolean", `{"type":"boolean","minimum":0}`, "/minimum"},
		{"maxLength of an enum", `{"type":"string","enum":["a"],"maxLength":1}`, "/maxLength"},
		{"format of an enum", `{"type":"string","format":"email","enum":["a"]}`, "/format"},
		{"enum of an array", `{"type":"array","maxItems":1,"enum":["a"],"items":{"type":"string","enum":["a"]}}`,
			"/enum"},
		{"enum and oneOf", `{"type":"string","enum":["a"],"oneOf":[{"const":"a","title":"A"}]}`, "/oneOf"},
		{"oneOf and enumNames", `{"type":"string","oneOf":[{"const":"a","title":"A"}],"enumNames":["A"]}`,
			"/enumNames"},

		// Bounds and counts are exact, not negative, and do not cross.
		{"minLength negative", `{"type":"string","minLength":-1}`, "/minLength"},
		{"minLength with a fraction", `{"type":"string","minLength":1.5}`, "/minLength"},
		{"minLength a string", `{"type":"string","minLength":"1"}`, "/minLength"},
		{"maxLength null", `{"type":"string","maxLength":null}`, "/maxLength"},
		{"maxLength beyond 64 bits", `{"type":"string","maxLength":18446744073709551616}`, "/maxLength"},
		{"maxLength with a huge exponent", `{"type":"string","maxLength":1e999999999}`, "/maxLength"},
		{"lengths cross", `{"type":"string","minLength":3,"maxLength":2}`, "/minLength"},
		{"lengths cross, other order", `{"maxLength":2,"minLength":3,"type":"string"}`, "/minLength"},
		{"minimum a string", `{"type":"number","minimum":"1"}`, "/minimum"},
		{"maximum true", `{"type":"number","maximum":true}`, "/maximum"},
		{"bounds cross", `{"type":"number","minimum":0.2,"maximum":0.1}`, "/minimum"},
		{"bounds cross beyond float64", `{"type":"integer","minimum":9007199254740993,"maximum":9007199254740992}`,
			"/minimum"},
		{"bounds of an integer without one", `{"type":"integer","minimum":1.5,"maximum":1.7}`, "/minimum"},
		{"below zero", `{"type":"integer","minimum":-1.7,"maximum":-1.5}`, "/minimum"},
		{"beside zero", `{"type":"integer","minimum":0.1,"maximum":0.9}`, "/minimum"},
		{"beyond float64", `{"type":"integer","minimum":9007199254740993.1,"maximum":9007199254740993.9}`, "/minimum"},
		{"items cross", `{"type":"array","minItems":2,"maxItems":1,"items":{"type":"string","enum":["a","b"]}}`,
			"/minItems"},
		{"more items than choices", `{"type":"array","minItems":2,"maxItems":3,"items":{"type":"string","enum":["a"]}}`,
			"/minItems"},
		{"maxItems negative", `{"type":"array","maxItems":-1,"items":{"type":"string","enum":["a"]}}`, "/maxItems"},
		{"maxItems missing", `{"type":"array","items":{"type":"string","enum":["a"]}}`, ""},
		{"items missing", `{"type":"array","maxItems":1}`, ""},

		{"unknown format", `{"type":"string","format":"ipv4"}`, "/format"},
		{"format not a string", `{"type":"string","format":["date"]}`, "/format"},

		// Choices are non-empty and unique.
		{"no choices", `{"type":"string","enum":[]}`, "/enum"},
		{"enum a string", `{"type":"string","enum":"a"}`, "/enum"},
		{"choice not a string", `{"type":"string","enum":["a",1]}`, "/enum/1"},
		{"choice null", `{"type":"string","enum":["a",null]}`, "/enum/1"},
		{"choice empty", `{"type":"string","enum":["a",""]}`, "/enum/1"},
		{"choice twice", `{"type":"string","enum":["a","b","\u0061"]}`, "/enum/2"},
		{"too few names", `{"type":"string","enum":["a","b"],"enumNames":["A"]}`, "/enumNames"},
		{"too many names", `{"type":"string","enumNames":["A","B"],"enum":["a"]}`, "/enumNames"},
		{"no names", `{"type":"string","enum":["a"],"enumNames":[]}`, "/enumNames"},
		{"name not a string", `{"type":"string","enum":["a"],"enumNames":[1]}`, "/enumNames/0"},
		{"name empty", `{"type":"string","enum":["a"],"enumNames":[""]}`, "/enumNames/0"},
		{"name twice", `{"type":"string","enum":["a","b"],"enumNames":["A","A"]}`, "/enumNames/1"},
		{"oneOf empty", `{"type":"string","oneOf":[]}`, "/oneOf"},
		{"oneOf an object", `{"type":"string","oneOf":{}}`, "/oneOf"},
		{"oneOf of strings", `{"type":"string","oneOf":["a"]}`, "/oneOf/0"},
		{"oneOf without title", `{"type":"string","oneOf":[{"const":"a"}]}`, "/oneOf/0"},
		{"oneOf without const", `{"type":"string","oneOf":[{"title":"A"}]}`, "/oneOf/0"},
		{"oneOf const not a string", `{"type":"string","oneOf":[{"const":1,"title":"A"}]}`, "/oneOf/0/const"},
		{"oneOf title not a string", `{"type":"string","oneOf":[{"const":"a","title":1}]}`, "/oneOf/0/title"},
		{"oneOf const empty", `{"type":"string","oneOf":[{"const":"","title":"A"}]}`, "/oneOf/0/const"},
		{"oneOf title empty", `{"type":"string","oneOf":[{"const":"a","title":""}]}`, "/oneOf/0/title"},
		{"oneOf const twice", `{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"a","title":"B"}]}`,
			"/oneOf/1/const"},
		{"oneOf title twice", `{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"A"}]}`,
			"/oneOf/1/title"},
		{"items a list", `{"type":"array","maxItems":1,"items":[]}`, "/items"},
		{"items of strings", `{"type":"array","maxItems":1,"items":{"type":"string"}}`, "/items"},
		{"items without type", `{"type":"array","maxItems":1,"items":{"enum":["a"]}}`, "/items"},
		{"items of numbers", `{"type":"array","maxItems":1,"items":{"type":"number","enum":["a"]}}`, "/items/type"},
		{"items of objects", `{"type":"array","maxItems":1,"items":{"type":"object","properties":{}}}`,
			"/items/properties"},
		{"items enum and anyOf",
			`{"type":"array","maxItems":1,"items":{"enum":["a"],"anyOf":[{"const":"a","title":"A"}]}}`, "/items/enum"},
		{"items type and anyOf",
			`{"type":"array","maxItems":1,"items":{"type":"string","anyOf":[{"const":"a","title":"A"}]}}`,
			"/items/type"},
		{"items oneOf", `{"type":"array","maxItems":1,"items":{"oneOf":[{"const":"a","title":"A"}]}}`, "/items/oneOf"},
		{"items choice twice", `{"type":"array","maxItems":1,"items":{"type":"string","enum":["a","a"]}}`,
			"/items/enum/1"},
		{"items anyOf empty", `{"type":"array","maxItems":1,"items":{"anyOf":[]}}`, "/items/anyOf"},

		// Defaults fit their field.
		{"default not a string", `{"type":"string","default":1}`, "/default"},
		{"default null", `{"type":"string","default":null}`, "/default"},
		{"default too long", `{"type":"string","default":"abc","maxLength":2}`, "/default"},
		{"default not of the format", `{"default":"x","type":"string","format":"email"}`, "/default"},
		{"default not a number", `{"type":"number","default":"1"}`, "/default"},
		{"default out of bounds", `{"type":"number","default":2,"maximum":1.9}`, "/default"},
		{"default not an integer", `{"type":"integer","default":1.5}`, "/default"},
		{"default number for a boolean", `{"type":"boolean","default":0}`, "/default"},
		{"default no choice", `{"type":"string","enum":["a"],"default":"b"}`, "/default"},
		{"default a title", `{"type":"string","oneOf":[{"const":"a","title":"A"}],"default":"A"}`, "/default"},
		{"default not an array", `{"type":"array","maxItems":1,"items":{"type":"string","enum":["a"]},"default":"a"}`,
			"/default"},
		{"default item no choice",
			`{"type":"array","maxItems":2,"items":{"type":"string","enum":["a","b"]},"default":["a","c"]}`,
			"/default/1"},
		{"default item twice",
			`{"type":"array","maxItems":2,"items":{"type":"string","enum":["a","b"]},"default":["a","a"]}`,
			"/default/1"},
		{"default too many",
			`{"type":"array","maxItems":1,"items":{"type":"string","enum":["a","b"]},"default":["a","b"]}`, "/default"},
		{"default too few",
			`{"type":"array","minItems":1,"maxItems":1,"items":{"type":"string","enum":["a"]},"default":[]}`,
			"/default"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			schema := `{"type":"object","properties":{"a/b":` + tc.property + `}}`
			wantQuestionError(t, interrupt.Form("m", json.RawMessage(schema)).Validate(),
				"/schema/properties/a~1b"+tc.path)
		})
	}
}

// R11: fields come in the order of the schema's text, with everything a face needs to show them.
func TestFormFields(t *testing.T) {
	form := interrupt.Form("m", json.RawMessage(`{"type":"object","required":["z","m"],"properties":{
		"z":{"type":"string","title":"Z","description":"zed","minLength":1,"maxLength":1e1,
			"format":"email","default":"a@b.c"},
		"a":{"type":"number","minimum":0.10,"maximum":9007199254740993},
		"m":{"type":"integer","default":1.0},
		"b":{"type":"boolean"},
		"e":{"type":"string","enum":["x","y"],"enumNames":["X","Y"]},
		"o":{"type":"string","oneOf":[{"const":"x","title":"X"}]},
		"l":{"type":"array","minItems":0,"maxItems":2,"items":{"type":"string","enum":["x","y"]}}}}`))
	number := func(n int) *int { return &n }
	titled := []interrupt.FieldOption{{Value: "x", Title: "X"}, {Value: "y", Title: "Y"}}
	want := []interrupt.Field{
		{Name: "z", Title: "Z", Description: "zed", Kind: interrupt.FieldString, Required: true,
			Default: json.RawMessage(`"a@b.c"`),
			Format:  "email", MinLength: number(1), MaxLength: number(10)},
		{Name: "a", Kind: interrupt.FieldNumber, Minimum: "0.1", Maximum: "9007199254740993"},
		{Name: "m", Kind: interrupt.FieldInteger, Required: true, Default: json.RawMessage(`1.0`)},
		{Name: "b", Kind: interrupt.FieldBoolean},
		{Name: "e", Kind: interrupt.FieldEnum, Options: titled},
		{Name: "o", Kind: interrupt.FieldEnum, Options: titled[:1]},
		{Name: "l", Kind: interrupt.FieldMulti, MinItems: number(0), MaxItems: number(2),
			Options: []interrupt.FieldOption{{Value: "x", Title: "x"}, {Value: "y", Title: "y"}}},
	}
	got, err := form.Fields()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	for i := range got[0].Default {
		got[0].Default[i] = 'x'
	}
	if err := form.Validate(); err != nil {
		t.Errorf("fields are not detached: %v", err)
	}
	_, err = interrupt.Form("m", json.RawMessage(`{"type":"object","pattern":"a"}`)).Fields()
	wantQuestionError(t, err, "/schema/pattern")
}

// R34: no error is long, however long the names in a question are.
func TestFormQuestionErrorIsBounded(t *testing.T) {
	long := strings.Repeat("ü", 10_000)
	for _, schema := range []string{
		`{"type":"object","` + long + `":1}`,
		`{"type":"object","properties":{"` + long + `":{"type":"string","` + long + `":1}}}`,
		`{"type":"object","properties":{"a":{"type":"string","oneOf":[{"` + long + `":1}]}}}`,
		`{"type":"object","properties":{"a":{"type":"array","items":{"` + long + `":1}}}}`,
		`{"type":"object","properties":{"a":{"type":"string","default":{"` + long + `":1}}}}`,
		`{"type":"object","properties":{"a":{"type":"string","default":{"` + long + `":nope}}}}`,
	} {
		err := interrupt.Form("m", json.RawMessage(schema)).Validate()
		if err == nil || len(err.Error()) > 1000 {
			t.Errorf("error is %.300v", err)
		}
	}
}
