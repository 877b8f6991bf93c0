package elicit

import (
	"encoding/json"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// Schema writes fields in their order, and for each what MCP and ACP have words for, which is the
// whole profile of forms (R11). legacyTitles is how MCP said the titles of choices in 2025-06-18.
func Schema(fields []interrupt.Field, legacyTitles bool) json.RawMessage {
	var properties []canon.Member
	var required []string
	for _, f := range fields {
		properties = append(properties, canon.NewMember(f.Name, property(f, legacyTitles)))
		if f.Required {
			required = append(required, f.Name)
		}
	}
	root := []canon.Member{canon.NewMember("type", "object"), canon.NewMember("properties", canon.Object(properties))}
	if required != nil {
		root = append(root, canon.NewMember("required", required))
	}
	return canon.Object(root)
}

func property(f interrupt.Field, legacyTitles bool) json.RawMessage {
	var p []canon.Member
	add := func(name string, present bool, v any) {
		if present {
			p = append(p, canon.NewMember(name, v))
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
		if items[0].Name == "enum" {
			items = append([]canon.Member{canon.NewMember("type", "string")}, items...)
		}
		p = append(p, canon.NewMember("items", canon.Object(items)))
	}
	add("default", f.Default != nil, f.Default)
	return canon.Object(p)
}

// choices are the options of a field: their values alone where no title says more, else with titles
// under the keyword.
func choices(options []interrupt.FieldOption, keyword string, legacyTitles bool) []canon.Member {
	var values, titles []string
	var titled []json.RawMessage
	named := false
	for _, o := range options {
		values, titles = append(values, o.Value), append(titles, o.Title)
		titled = append(titled, canon.Object([]canon.Member{canon.NewMember("const", o.Value), canon.NewMember("title", o.Title)}))
		named = named || o.Title != o.Value
	}
	switch {
	case !named:
		return []canon.Member{canon.NewMember("enum", values)}
	case legacyTitles:
		return []canon.Member{canon.NewMember("enum", values), canon.NewMember("enumNames", titles)}
	}
	return []canon.Member{canon.NewMember(keyword, titled)}
}
