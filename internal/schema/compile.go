package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-go/parley/internal/canon"
)

// base names the schema to the library. Nothing can be loaded from there (RFC 2606), and the loader
// would refuse to.
const base = "https://parley.invalid/arguments"

// What a schema may measure: it is the host's own, so that the bounds are wide.
const (
	maxBytes = 16 << 20
	maxDepth = 1000
)

// A Schema is a compiled schema. It does not change, and any number of goroutines may use it.
type Schema struct {
	compiled *jsonschema.Schema
}

// Compile reads a schema for the arguments of a tool: its root is an object with type "object". The
// error is an [*Error] whose path leads into the schema.
func Compile(raw json.RawMessage) (*Schema, error) {
	canonical, err := canon.JSON(raw, &canon.Limits{Bytes: maxBytes, Depth: maxDepth})
	if err != nil {
		return nil, err
	}
	doc, err := decode(canonical)
	if err != nil {
		return nil, err
	}
	root, ok := doc.(map[string]any)
	if !ok {
		return nil, at(nil, "schema must be an object")
	}
	if root["type"] != "object" {
		return nil, at([]string{"type"}, `must be "object"`)
	}
	if err := checkCounts(doc, nil); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	for _, format := range strict() {
		c.RegisterFormat(format)
	}
	if err := c.AddResource(base, doc); err != nil {
		return nil, at(nil, "not usable as a schema")
	}
	compiled, err := c.Compile(base)
	if err != nil {
		return nil, placed(err, doc)
	}
	return &Schema{compiled}, nil
}

// decode makes of a canonical form the values that the library works on. Of another text it could
// make what was not meant: of two members of one name it takes the last.
func decode(canonical []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(canonical))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return nil, at(nil, "not readable")
	}
	return doc, nil
}

type noLoader struct{}

var errNoLoad = errors.New("nothing is loaded")

func (noLoader) Load(string) (any, error) { return nil, errNoLoad }

var counts = []string{
	"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains",
}

// checkCounts refuses counts that are not exactly an int. The library would cut them to 64 bits and
// so enforce another number. It looks at every member of that name, also in an example or a
// default: a needless refusal is better than a bound that is not the written one.
func checkCounts(v any, place []string) error {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if err := checkCounts(item, append(place, strconv.Itoa(i))); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			here := append(place, name)
			if number, ok := v[name].(json.Number); ok && slices.Contains(counts, name) {
				count, err := canon.ParseDecimal(string(number), nil)
				if err != nil {
					return at(here, "must be a number")
				}
				if _, err := count.Int(); err != nil {
					return at(here, "must be an integer that fits 64 bits")
				}
			}
			if err := checkCounts(v[name], here); err != nil {
				return err
			}
		}
	}
	return nil
}

// placed turns an error of the library's compiler into one that names the place in the schema.
func placed(err error, doc any) error {
	if e, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if invalid, ok := errors.AsType[*jsonschema.ValidationError](e.Err); ok {
			return first(invalid)
		}
	}
	if e, ok := errors.AsType[*jsonschema.InvalidRegexError](err); ok {
		_, fragment, _ := strings.Cut(e.URL, "#")
		if path, err := url.PathUnescape(fragment); err == nil {
			fragment = path
		}
		return &Error{Path: canon.Clip(fragment, 256), Reason: "must be a regular expression (RE2)"}
	}
	target := ""
	if e, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		target = e.URL
	} else if e, ok := errors.AsType[*jsonschema.JSONPointerNotFoundError](err); ok {
		target = e.URL
	} else if e, ok := errors.AsType[*jsonschema.AnchorNotFoundError](err); ok {
		target = e.Reference
	}
	if place := findReference(doc, target, nil); place != nil {
		return at(place, "must refer to a place within the schema")
	}
	return at(nil, "not usable as a schema: "+canon.Clip(err.Error(), 200))
}

// findReference returns the first place of a reference to target, which the library's errors do not
// tell.
func findReference(v any, target string, place []string) []string {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if found := findReference(item, target, append(place, strconv.Itoa(i))); found != nil {
				return found
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			here := append(place, name)
			ref, ok := v[name].(string)
			if ok && target != "" && strings.HasPrefix(name, "$") && refersTo(ref, target) {
				return here
			}
			if found := findReference(v[name], target, here); found != nil {
				return found
			}
		}
	}
	return nil
}

func refersTo(ref, target string) bool {
	from, err := url.Parse(base)
	if err != nil {
		return false
	}
	to, err := from.Parse(ref)
	if err != nil {
		return false
	}
	whole := to.String()
	without, _, _ := strings.Cut(whole, "#")
	return ref == target || whole == target || without == target
}
