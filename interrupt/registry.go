package interrupt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
)

// A registration is what is known of a type: its name and version of now, and how to make one.
type registration struct {
	name    string
	version int
	factory func() Interrupt
}

var registry = struct {
	mu    sync.RWMutex
	types map[string]registration // by every name they have and had
}{types: map[string]registration{}}

func init() {
	Register(func() Interrupt { return new(ToolPermissionInterrupt) })
	Register(func() Interrupt { return new(UserSelectionInterrupt) })
	Register(func() Interrupt { return new(FormInterrupt) })
	Register(func() Interrupt { return new(URLInterrupt) })
}

// Register makes a type of question known under the TypeName of what factory returns, so that a
// stored question can be read back; under its former names too, where it is a [Renamed] one. The
// factory returns a new pointer each time. Register is safe for concurrent use; call it at init. It
// panics where a name is empty or taken, or the version of a [Versioned] type is negative: these
// are a programmer's mistakes.
func Register(factory func() Interrupt) {
	zero := factory()
	is := registration{name: zero.TypeName(), factory: factory}
	names := []string{is.name}
	if r, ok := zero.(Renamed); ok {
		names = append(names, r.FormerNames()...)
	}
	if v, ok := zero.(Versioned); ok {
		is.version = v.QuestionVersion()
	}
	if is.version < 0 {
		panic(fmt.Sprintf("register interrupt type %q: version %d is negative", is.name, is.version))
	}
	registry.mu.Lock()
	defer registry.mu.Unlock()
	for i, name := range names {
		if name == "" {
			panic(fmt.Sprintf("register interrupt type %q: a name is empty", is.name))
		}
		if _, taken := registry.types[name]; taken || slices.Contains(names[:i], name) {
			panic(fmt.Sprintf("register interrupt type %q: name %q is already registered", is.name, name))
		}
	}
	for _, name := range names {
		registry.types[name] = is
	}
}

func registered(typeName string) (registration, bool) {
	registry.mu.RLock()
	defer registry.mu.RUnlock()
	is, ok := registry.types[typeName]
	return is, ok
}

// New returns a new zero question of the registered type, which is found by a former name too.
func New(typeName string) (Interrupt, bool) {
	is, ok := registered(typeName)
	if !ok {
		return nil, false
	}
	return is.factory(), true
}

// Rehydrate reads a question back from its serialized form, as the type writes it now. What an
// earlier version wrote is read by [Question.Interrupt]. The error matches [ErrInvalidQuestion].
func Rehydrate(typeName string, body []byte) (Interrupt, error) {
	q, ok := New(typeName)
	if !ok {
		return nil, &QuestionError{typeName, "", "type is not registered"}
	}
	unmarshal := json.Unmarshal
	if own(q) {
		unmarshal = strictly
	}
	if err := unmarshal(body, q); err != nil {
		return nil, &privateError{&QuestionError{typeName, "", "cannot be read back"}, err}
	}
	return q, nil
}

// strictly reads what this package's types wrote, several times faster than encoding/json: names
// are compared byte by byte and occur once, and text is UTF-8.
func strictly(body []byte, q any) error { return jsonv2.Unmarshal(body, q) }

// Clone returns a deep copy of the question, with its decision where it has one; nil where its type
// is not registered or does not serialize.
//
// The types of this package are copied whole. Another type is copied by serializing it and reading
// it back; exported fields that are not serialized (`json:"-"`), which is where a decision stands,
// are copied as well, unexported ones are not.
func Clone(q Interrupt) Interrupt {
	if v := reflect.ValueOf(q); q == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	if _, ok := New(q.TypeName()); !ok {
		return nil
	}
	body, err := q.Serialize()
	if err != nil {
		return nil
	}
	if c, ok := q.(interface{ clone() Interrupt }); ok {
		return c.clone()
	}
	dup, err := Rehydrate(q.TypeName(), bytes.Clone(body))
	if err != nil {
		return nil
	}
	copyUnserialized(reflect.ValueOf(dup), reflect.ValueOf(q))
	return dup
}

// cloneSound is Clone for a question that was just snapshotted: one of this package's types is
// known to serialize.
func cloneSound(q Interrupt) Interrupt {
	if c, ok := q.(interface{ clone() Interrupt }); ok && own(q) {
		return c.clone()
	}
	return Clone(q)
}

// copyUnserialized copies the exported fields of a struct that JSON passes over.
func copyUnserialized(dst, src reflect.Value) {
	if dst.Type() != src.Type() || dst.Kind() != reflect.Pointer || dst.Elem().Kind() != reflect.Struct {
		return
	}
	for i := range dst.Elem().NumField() {
		if f := dst.Elem().Type().Field(i); f.IsExported() && f.Tag.Get("json") == "-" {
			dst.Elem().Field(i).Set(deepCopy(src.Elem().Field(i)))
		}
	}
}

// deepCopy copies what pointers, slices, maps and exported struct fields lead to.
func deepCopy(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(deepCopy(v.Elem()))
		}
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(deepCopy(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(deepCopy(v.Index(i)))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			out.Index(i).Set(deepCopy(v.Index(i)))
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for iter := v.MapRange(); iter.Next(); {
				out.SetMapIndex(iter.Key(), deepCopy(iter.Value()))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(deepCopy(v.Field(i)))
			}
		}
	}
	return out
}
