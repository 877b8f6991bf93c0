package schema

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// For returns the schema of T's JSON form: the fields of a struct are properties in the order of
// declaration, required unless they are marked omitempty or omitzero, and others are not allowed; a
// jsonschema tag is the description. A pointer or a slice may be null, as encoding/json has it. A
// type that reads its own text is a string, one that reads its own JSON is anything. It returns an
// error for a type without a JSON form, such as a function, for one that contains itself, and for a
// field with the json option string, which reads another kind of value than its type has.
func For[T any]() (json.RawMessage, error) { return ForType(reflect.TypeFor[T]()) }

// ForType is [For] for a type that is known at run time only.
func ForType(t reflect.Type) (json.RawMessage, error) {
	own := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Time]():   {Type: "string", Format: "date-time"},
		reflect.TypeFor[json.Number](): {Type: "number"},
	}
	if err := collectOwn(t, own, map[reflect.Type]bool{}); err != nil {
		return nil, fmt.Errorf("infer schema of %v: %w", t, err)
	}
	inferred, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: own})
	if err != nil {
		return nil, fmt.Errorf("infer schema of %v: %w", t, err)
	}
	raw, err := json.Marshal(inferred)
	if err != nil {
		return nil, fmt.Errorf("write schema of %v: %w", t, err)
	}
	return raw, nil
}

// collectOwn finds the types inside t whose JSON form encoding/json does not take from their kind.
// It refuses a field whose option makes another form of it.
func collectOwn(t reflect.Type, own map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) error {
	if seen[t] || own[t] != nil {
		return nil
	}
	seen[t] = true
	pointer := reflect.PointerTo(t)
	switch {
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Interface: // what they lead to, or nothing
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		own[t] = &jsonschema.Schema{}
		return nil
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		own[t] = &jsonschema.Schema{Type: "string"}
		return nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		own[t] = &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return collectOwn(t.Elem(), own, seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if err := collectField(t.Field(i), own, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

func collectField(field reflect.StructField, own map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) error {
	tag := field.Tag.Get("json")
	if tag == "-" || !field.IsExported() && !field.Anonymous {
		return nil // no part of the JSON form
	}
	name, options, _ := strings.Cut(tag, ",")
	if slices.Contains(strings.Split(options, ","), "string") {
		return fmt.Errorf("field %q (%s) has the json option string: an argument is never converted", cmp.Or(name, field.Name), field.Name)
	}
	return collectOwn(field.Type, own, seen)
}
