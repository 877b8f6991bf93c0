package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// For returns the schema of T's JSON form: the fields of a struct are properties in the order of
// declaration, required unless they are marked omitempty or omitzero, and others are not allowed; a
// jsonschema tag is the description. A pointer or a slice may be null, as encoding/json has it. A
// type that reads its own text is a string, one that reads its own JSON is anything. It returns an
// error for a type without a JSON form, such as a function, and for one that contains itself.
func For[T any]() (json.RawMessage, error) {
	own := map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[time.Time](): {Type: "string", Format: "date-time"}}
	collectOwn(reflect.TypeFor[T](), own, map[reflect.Type]bool{})
	inferred, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: own})
	if err != nil {
		return nil, fmt.Errorf("infer schema of %v: %w", reflect.TypeFor[T](), err)
	}
	raw, err := json.Marshal(inferred)
	if err != nil {
		return nil, fmt.Errorf("write schema of %v: %w", reflect.TypeFor[T](), err)
	}
	return raw, nil
}

// collectOwn finds the types inside t whose JSON form encoding/json does not take from their kind.
func collectOwn(t reflect.Type, own map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) {
	if seen[t] || own[t] != nil {
		return
	}
	seen[t] = true
	pointer := reflect.PointerTo(t)
	switch {
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Interface: // what they lead to, or nothing
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		own[t] = &jsonschema.Schema{}
		return
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		own[t] = &jsonschema.Schema{Type: "string"}
		return
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		own[t] = &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		collectOwn(t.Elem(), own, seen)
	case reflect.Struct:
		for i := range t.NumField() {
			collectOwn(t.Field(i).Type, own, seen)
		}
	}
}
