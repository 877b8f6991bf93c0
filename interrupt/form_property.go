package interrupt

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-go/parley/internal/canon"
)

// schema writes the property of a form for a field. The tags are written out as they are, so that
// the profile judges them: whether they go with the kind, whether bounds cross, whether a default
// fits.
func (f *structField) schema() (json.RawMessage, error) {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	kind, err := f.kindOf(t)
	if err != nil {
		return nil, err
	}
	if err := f.checkBounds(t); err != nil {
		return nil, err
	}
	property := &object{}
	property.set("type", quoted(kind))
	for _, keyword := range tagKeywords {
		text, ok := f.tag(keyword, t)
		if !ok || keyword == "enum" || keyword == "enumNames" {
			continue
		}
		value, err := f.keyword(keyword, text, kind)
		if err != nil {
			return nil, err
		}
		property.set(keyword, value)
	}
	if err := f.choices(property, kind); err != nil {
		return nil, err
	}
	return property.raw(), nil
}

// kindOf is the type of the property in the schema.
func (f *structField) kindOf(t reflect.Type) (string, error) {
	switch {
	case t == timeType:
		if format, ok := f.tags["format"]; ok && format != "date-time" {
			return "", f.refuse("format", "is a time, whose format is date-time")
		}
		return "string", nil
	case t == numberType:
		return "number", nil
	case hasOwnForm(t):
		return "", f.refuse("", fmt.Sprintf("is of type %s, which reads itself: a form cannot ask for it", clipped(t.String())))
	}
	switch t.Kind() {
	case reflect.String:
		return "string", nil
	case reflect.Bool:
		return "boolean", nil
	case reflect.Float32, reflect.Float64:
		return "number", nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer", nil
	case reflect.Slice:
		if t.Elem().Kind() != reflect.String || hasOwnForm(t.Elem()) || t.Elem() == numberType {
			break
		}
		if _, ok := f.tags["enum"]; !ok {
			return "", f.refuse("enum", "is a slice without an enum tag: a form asks for several choices of a list")
		}
		return "array", nil
	}
	return "", f.refuse("", fmt.Sprintf("is of type %s, which a form cannot ask for", clipped(t.String())))
}

// tag returns the text of a keyword: that of the tag, or what follows from the type.
func (f *structField) tag(keyword string, t reflect.Type) (string, bool) {
	if text, ok := f.tags[keyword]; ok {
		return text, true
	}
	switch {
	case keyword == "format" && t == timeType:
		return "date-time", true
	case keyword == "maxItems" && t.Kind() == reflect.Slice:
		return strconv.Itoa(len(split(f.tags["enum"]))), true
	case keyword == "minimum":
		text, _ := bounds(t)
		return text, text != ""
	case keyword == "maximum":
		_, text := bounds(t)
		return text, text != ""
	}
	return "", false
}

// bounds are the least and the greatest number that a type holds; empty where it holds any. What is
// no nearer to a greater float than to the greatest one is still read.
func bounds(t reflect.Type) (low, high string) {
	switch kind := t.Kind(); {
	case kind >= reflect.Int && kind <= reflect.Int64:
		most := int64(math.MaxInt64) >> (64 - t.Bits())
		return strconv.FormatInt(-most-1, 10), strconv.FormatInt(most, 10)
	case kind >= reflect.Uint && kind <= reflect.Uint64:
		return "0", strconv.FormatUint(math.MaxUint64>>(64-t.Bits()), 10)
	case kind == reflect.Float32, kind == reflect.Float64:
		most := math.MaxFloat64
		if kind == reflect.Float32 {
			most = math.MaxFloat32
		}
		high = strconv.FormatFloat(most, 'g', -1, t.Bits())
		return "-" + high, high
	}
	return "", ""
}

// checkBounds refuses a tag with a bound that the type does not hold: an answer up to it could not
// be read.
func (f *structField) checkBounds(t reflect.Type) error {
	low, high := bounds(t)
	if low == "" {
		return nil
	}
	for _, keyword := range []string{"minimum", "maximum"} {
		text, ok := f.tags[keyword]
		if !ok {
			continue
		}
		bound, err := canon.ParseDecimal(text, nil)
		if err != nil {
			return f.refuse(keyword, "has the tag "+keyword+", which must be a number")
		}
		if bound.Compare(decimal(low)) < 0 || bound.Compare(decimal(high)) > 0 {
			return f.refuse(keyword, fmt.Sprintf("has the tag %s, which a field of type %s does not hold", keyword, clipped(t.String())))
		}
	}
	return nil
}

func decimal(number string) canon.Decimal {
	d, err := canon.ParseDecimal(number, nil)
	if err != nil {
		panic(err) // a number of this package's own
	}
	return d
}

// keyword is the value of a tag in JSON. What stands in a tag is text, and what kind of value is
// meant follows from the keyword and the kind of the field.
func (f *structField) keyword(keyword, text, kind string) (json.RawMessage, error) {
	switch keyword {
	case "title", "description", "format":
		return quoted(text), nil
	case "default":
		switch kind {
		case "string":
			return quoted(text), nil
		case "array":
			return list(split(text)), nil
		case "boolean":
			if text != "true" && text != "false" {
				return nil, f.refuse(keyword, "has a default that is neither true nor false")
			}
			return json.RawMessage(text), nil
		}
	}
	if _, err := canon.ParseDecimal(text, nil); err != nil {
		return nil, f.refuse(keyword, "has the tag "+keyword+", which must be a number")
	}
	return json.RawMessage(text), nil
}

// choices writes the list of choices: as plain values or, where they have titles, with these. On a
// field of another kind the profile refuses it.
func (f *structField) choices(property *object, kind string) error {
	text, ok := f.tags["enum"]
	names, named := f.tags["enumNames"]
	if named && !ok {
		return f.refuse("enumNames", "has the tag enumNames without an enum")
	}
	if !ok {
		return nil
	}
	values, keyword, choices := split(text), "enum", list(split(text))
	if named {
		titles := split(names)
		if len(titles) != len(values) {
			return f.refuse("enumNames", fmt.Sprintf("has %d choices and titles for %d", len(values), len(titles)))
		}
		keyword, choices = "oneOf", titled(values, titles)
	}
	if kind != "array" {
		property.set(keyword, choices)
		return nil
	}
	items := &object{}
	if named {
		items.set("anyOf", choices)
	} else {
		items.set("type", quoted("string"))
		items.set("enum", choices)
	}
	property.set("items", items.raw())
	return nil
}

func titled(values, titles []string) json.RawMessage {
	text := json.RawMessage("[")
	for i := range values {
		if i > 0 {
			text = append(text, ',')
		}
		choice := &object{}
		choice.set("const", quoted(values[i]))
		choice.set("title", quoted(titles[i]))
		text = append(text, choice.raw()...)
	}
	return slices.Concat(text, json.RawMessage("]"))
}

// split takes a list apart at its commas. Space around a part does not count; an empty text is no
// parts.
func split(text string) []string {
	if strings.TrimSpace(text) == "" {
		return []string{}
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
