package interrupt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/parley-go/parley/internal/canon"
)

// tagKeywords are the tags that a form reads.
var tagKeywords = []string{
	"title", "description", "default", "enum", "enumNames", "minLength", "maxLength", "format", "minimum", "maximum", "minItems",
	"maxItems",
}

// otherKeywords are the tags that a form refuses, as it does in a schema that is written out: the
// other keywords of JSON Schema (draft 7 and 2020-12), and the tags that one package reads as a
// description and the next as a list of keywords. A tag of any other name is not for a form.
var otherKeywords = []string{
	"type", "const", "oneOf", "anyOf", "allOf", "not", "if", "then", "else", "items", "prefixItems", "additionalItems", "contains",
	"minContains", "maxContains", "uniqueItems", "unevaluatedItems", "pattern", "multipleOf", "exclusiveMinimum", "exclusiveMaximum",
	"properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames", "dependencies",
	"dependentRequired", "dependentSchemas", "required", "minProperties", "maxProperties", "contentEncoding", "contentMediaType",
	"contentSchema", "readOnly", "writeOnly", "deprecated", "examples", "definitions",
	"jsonschema", "jsonschema_description", "jsonschema_extras",
}

// deriveForm writes the schema of a struct (R11). It is held to the profile when the question is
// validated, like any other; here only that is refused which has no schema.
func deriveForm(t reflect.Type) (json.RawMessage, error) {
	if t.Kind() != reflect.Struct || hasOwnForm(t) {
		return nil, &QuestionError{TypeForm, "/schema", fmt.Sprintf("is to be made of %s, which is no plain struct", clipped(t.String()))}
	}
	properties, required := &object{}, []string{}
	fields := map[string]string{} // by name, which Go field has it
	for i := range t.NumField() {
		field, err := readStructField(t.Field(i))
		if err != nil {
			return nil, err
		}
		if field == nil {
			continue
		}
		if other, ok := fields[field.name]; ok {
			return nil, field.refuse("", "has the name of field "+other)
		}
		fields[field.name] = field.Name
		property, err := field.schema()
		if err != nil {
			return nil, err
		}
		properties.set(field.name, property)
		if !field.optional {
			required = append(required, field.name)
		}
	}
	root := &object{}
	root.set("type", quoted("object"))
	root.set("properties", properties.raw())
	if len(required) > 0 {
		root.set("required", list(required))
	}
	return root.raw(), nil
}

// An object is JSON that is written member by member, in that order: a person is shown the fields
// in the order of the struct.
type object struct{ text bytes.Buffer }

func (o *object) set(name string, value json.RawMessage) {
	if o.text.Len() == 0 {
		o.text.WriteByte('{')
	} else {
		o.text.WriteByte(',')
	}
	o.text.Write(quoted(name))
	o.text.WriteByte(':')
	o.text.Write(value)
}

func (o *object) raw() json.RawMessage {
	if o.text.Len() == 0 {
		return json.RawMessage("{}")
	}
	return append(bytes.Clone(o.text.Bytes()), '}')
}

func quoted(s string) json.RawMessage {
	raw, err := canon.Marshal(s)
	if err != nil {
		panic(err) // a string always marshals
	}
	return raw
}

func list(values []string) json.RawMessage {
	parts := make([][]byte, len(values))
	for i, value := range values {
		parts[i] = quoted(value)
	}
	return slices.Concat(json.RawMessage("["), bytes.Join(parts, []byte(",")), json.RawMessage("]"))
}

// A structField is a field of a struct on its way to being one of a form.
type structField struct {
	reflect.StructField
	name     string // in the form
	optional bool
	tags     map[string]string // by keyword
}

// refuse says what is wrong with the field, or with the keyword of it.
func (f *structField) refuse(keyword, reason string) error {
	path := memberPath("/schema/properties", f.name)
	if keyword != "" {
		path = memberPath(path, keyword)
	}
	return &QuestionError{TypeForm, path, "field " + clipped(f.Name) + " " + reason}
}

// readStructField reads the name and the tags. It returns nil for a field that is not part of the
// JSON form.
func readStructField(from reflect.StructField) (*structField, error) {
	f := &structField{StructField: from, name: from.Name}
	named := from.Tag.Get("json")
	if named == "-" {
		return nil, nil
	}
	name, rest, _ := strings.Cut(named, ",")
	if name != "" {
		f.name = name
	}
	options := strings.Split(rest, ",")
	f.optional = from.Type.Kind() == reflect.Pointer || slices.Contains(options, "omitempty") || slices.Contains(options, "omitzero")
	if err := f.readTags(); err != nil {
		return nil, err
	}
	switch {
	case from.Anonymous && name == "":
		return nil, f.refuse("", "is embedded: a form is flat, so give its fields one by one")
	case !from.IsExported() && len(f.tags) == 0 && named == "":
		return nil, nil
	case !from.IsExported():
		return nil, f.refuse("", "is not exported")
	case slices.Contains(options, "string"):
		return nil, f.refuse("", "has the json option string: an answer is never converted")
	case strings.ContainsFunc(name, func(r rune) bool { // encoding/json would pass over it
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r)
	}):
		return nil, f.refuse("", "has a name in its json tag that encoding/json does not take")
	}
	return f, nil
}

// readTags refuses what would be dropped otherwise: a keyword that no form has, and a misspelt one.
func (f *structField) readTags() error {
	f.tags = map[string]string{}
	for _, keyword := range tagKeywords {
		if value, ok := f.Tag.Lookup(keyword); ok {
			f.tags[keyword] = value
		}
	}
	for _, keyword := range otherKeywords {
		if _, ok := f.Tag.Lookup(keyword); ok {
			return f.refuse(keyword, "has the tag "+keyword+", which is not one of a form: those are "+strings.Join(tagKeywords, ", "))
		}
	}
	for name := range tagNames(f.Tag) {
		for _, keyword := range tagKeywords {
			if name != keyword && strings.EqualFold(name, keyword) {
				return f.refuse(clipped(name), "has the tag "+clipped(name)+", which is spelt "+keyword)
			}
		}
	}
	return nil
}

// tagNames goes through the names of a tag in the conventional form, which go vet checks.
func tagNames(tag reflect.StructTag) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for rest := strings.TrimLeft(string(tag), " "); ; rest = strings.TrimLeft(rest, " ") {
			name, value, ok := strings.Cut(rest, `:"`)
			if !ok || !yield(name) {
				return
			}
			end := 0
			for end < len(value) && value[end] != '"' {
				if value[end] == '\\' {
					end++
				}
				end++
			}
			rest = value[min(end+1, len(value)):]
		}
	}
}

// hasOwnForm reports whether encoding/json does not take the type's form from its kind.
func hasOwnForm(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[interface{ UnmarshalText([]byte) error }]())
}

var (
	timeType   = reflect.TypeFor[time.Time]()
	numberType = reflect.TypeFor[json.Number]()
)
