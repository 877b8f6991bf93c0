package elicit

import (
	"bytes"
	"encoding/json"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// Schema writes fields in their order, and for each what MCP and ACP have words for, which is the
// whole profile of forms (R11). legacyTitles is how MCP said the titles of choices in 2025-06-18.
func Schema(fields []interrupt.Field, legacyTitles bool) json.RawMessage {
	var properties []member
	var required []string
	for _, f := range fields {
		properties = append(properties, member{f.Name, property(f, legacyTitles)})
		if f.Required {
			required = append(required, f.Name)
		}
	}
	root := []member{{"type", value("object")}, {"properties", object(properties)}}
	if required != nil {
		root = append(root, member{"required", value(required)})
	}
	return object(root)
}

func property(f interrupt.Field, legacyTitles bool) json.RawMessage {
	var p []member
	add := func(name string, present bool, v any) {
		if present {
			p = append(p, member{name, value(v)})
		}
	}
	kind := string(f.Kind)
	switch f.Kind {
	case interrupt.FieldEnum:
		kind = "string"
	case interrupt.FieldMulti:
		kind = "array"
	}
	add("type", true, kind)
	add("title", f.Title != "", f.Title)
	add("description", f.Description != "", f.Description)
	add("format", f.Format != "", f.Format)
	add("minLength", f.MinLength != nil, f.MinLength)
	add("maxLength", f.MaxLength != nil, f.MaxLength)
	add("minimum", f.Minimum != "", f.Minimum)
	add("maximum", f.Maximum != "", f.Maximum)
	add("minItems", f.MinItems != nil, f.MinItems)
	add("maxItems", f.MaxItems != nil, f.MaxItems)
	switch f.Kind {
	case interrupt.FieldEnum:
		p = append(p, choices(f.Options, "oneOf", legacyTitles)...)
	case interrupt.FieldMulti:
		items := choices(f.Options, "anyOf", legacyTitles)
		if items[0].name == "enum" {
			items = append([]member{{"type", value("string")}}, items...)
		}
		p = append(p, member{"items", object(items)})
	}
	add("default", f.Default != nil, f.Default)
	return object(p)
}

// choices are the options of a field: their values alone where no title says more, else with titles
// under the keyword.
func choices(options []interrupt.FieldOption, keyword string, legacyTitles bool) []member {
	var values, titles []string
	var titled []json.RawMessage
	named := false
	for _, o := range options {
		values, titles = append(values, o.Value), append(titles, o.Title)
		titled = append(titled, object([]member{{"const", value(o.Value)}, {"title", value(o.Title)}}))
		named = named || o.Title != o.Value
	}
	switch {
	case !named:
		return []member{{"enum", value(values)}}
	case legacyTitles:
		return []member{{"enum", value(values)}, {"enumNames", value(titles)}}
	}
	return []member{{keyword, value(titled)}}
}

// A member of a JSON object, which keeps its place.
type member struct {
	name  string
	value json.RawMessage
}

func object(list []member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(value(m.name))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func value(v any) json.RawMessage {
	raw, err := canon.Marshal(v)
	if err != nil {
		panic(err) // only for what has no JSON form, and these have one
	}
	return raw
}
