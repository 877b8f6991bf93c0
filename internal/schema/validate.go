package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/parley-go/parley/internal/canon"
)

// Validate checks a document in canonical form, as [canon.JSON] makes it. That form has no
// duplicate names and no number that takes long to compute with; how long and how deep the document
// may be is for who made the form to decide. The error is an [*Error] that names the first
// offending place, in the order of names and indexes, and so is the same every time.
func (s *Schema) Validate(canonical json.RawMessage) error {
	v, err := decode(canonical)
	if err != nil {
		return err
	}
	err = s.compiled.Validate(v)
	if err == nil {
		return nil
	}
	invalid, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return at(nil, "does not fit the schema")
	}
	return first(invalid)
}

// A finding is one thing wrong at one place.
type finding struct {
	place  []string
	reason string
}

// first picks one of all findings; the library lists them in the order of a Go map.
func first(err *jsonschema.ValidationError) error {
	var found []finding
	collect(err, &found)
	f := slices.MinFunc(found, func(a, b finding) int {
		return cmp.Or(slices.CompareFunc(a.place, b.place, compareTokens), cmp.Compare(a.reason, b.reason))
	})
	return at(f.place, f.reason)
}

// collect descends where every cause must be mended. Of the branches of an anyOf one would do, so
// that none is told.
func collect(err *jsonschema.ValidationError, found *[]finding) {
	switch err.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		if len(err.Causes) > 0 {
			for _, cause := range err.Causes {
				collect(cause, found)
			}
			return
		}
	}
	place, reason := describe(err)
	*found = append(*found, finding{place, reason})
}

func describe(err *jsonschema.ValidationError) (place []string, reason string) {
	place = err.InstanceLocation
	inside := func(names []string) []string {
		if len(names) == 0 {
			return place
		}
		return append(slices.Clip(place), slices.Min(names))
	}
	switch k := err.ErrorKind.(type) {
	case *kind.Required:
		return inside(k.Missing), "is required"
	case *kind.DependentRequired:
		return inside(k.Missing), "is required beside " + canon.Clip(strconv.Quote(k.Prop), 40)
	case *kind.Dependency:
		return inside(k.Missing), "is required beside " + canon.Clip(strconv.Quote(k.Prop), 40)
	case *kind.AdditionalProperties:
		return inside(k.Properties), "is not a known property"
	case *kind.PropertyNames:
		return inside([]string{k.Property}), "is not an allowed name"
	}
	return place, reasonOf(err.ErrorKind)
}

func reasonOf(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "must be " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "must be one of the allowed values"
	case *kind.Const:
		return "must be the allowed value"
	case *kind.Format:
		return "must have the format " + canon.Clip(k.Want, 40)
	case *kind.Pattern:
		return "must match the pattern " + canon.Clip(k.Want, 80)
	case *kind.FalseSchema:
		return "is not allowed"
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
		return "fits none of the alternatives, or too many"
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d must differ", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains, *kind.MinContains, *kind.MaxContains:
		return "contains too few or too many items of a kind"
	case *kind.AdditionalItems:
		return "has too many items"
	}
	return boundOf(k)
}

func boundOf(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items", k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d properties", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d properties", k.Want)
	case *kind.Minimum:
		return "must be at least " + exact(k.Want)
	case *kind.Maximum:
		return "must be at most " + exact(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + exact(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + exact(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + exact(k.Want)
	}
	return "does not fit the schema"
}

// exact writes a bound of the schema, which is a decimal, with all of its digits.
func exact(r *big.Rat) string {
	digits, _ := r.FloatPrec()
	return canon.Clip(r.FloatString(digits), 40)
}

// compareTokens orders indexes by value, before names, which it orders by their bytes.
func compareTokens(a, b string) int {
	i, errA := strconv.ParseUint(a, 10, 32)
	j, errB := strconv.ParseUint(b, 10, 32)
	switch {
	case errA == nil && errB == nil:
		return cmp.Or(cmp.Compare(i, j), cmp.Compare(a, b))
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return cmp.Compare(a, b)
}
