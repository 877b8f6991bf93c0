package schema

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// For returns the schema of T's JSON form: the fields of a struct are properties in the order of
// declaration, required unless they are marked omitempty or omitzero, and others are not allowed; a
// jsonschema tag is the description. A pointer or a slice may be null, as encoding/json has it. It
// returns an error for a type without a JSON form, such as a function, and for one that contains
// itself.
func For[T any]() (json.RawMessage, error) {
	inferred, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, fmt.Errorf("infer schema of %v: %w", reflect.TypeFor[T](), err)
	}
	raw, err := json.Marshal(inferred)
	if err != nil {
		return nil, fmt.Errorf("write schema of %v: %w", reflect.TypeFor[T](), err)
	}
	return raw, nil
}
