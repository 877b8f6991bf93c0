package mcpbridge

import (
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// formSchema is a form's schema as the wire can carry it. The error is an *unfit.
func formSchema(w wire, form *interrupt.FormInterrupt) (json.RawMessage, error) {
	fields, err := form.Fields()
	if err != nil {
		return nil, &unfit{"the form cannot be read back"}
	}
	for _, f := range fields {
		switch {
		case asksForSecret(f):
			// https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation: servers
			// MUST NOT use form mode elicitation to request sensitive information.
			return nil, &unfit{fmt.Sprintf("field %.64q asks for a secret, which MCP forbids in a form: use a URL", f.Name)}
		case w.era == era2025a && f.Kind == interrupt.FieldMulti:
			return nil, &unfit{fmt.Sprintf("field %.64q takes several choices, which protocol 2025-06-18 does not have", f.Name)}
		case !w.exact && !exactAsFloat(f):
			return nil, &unfit{fmt.Sprintf("field %.64q takes numbers that the SDK rounds: serve it through "+
				"Bridge.Transport or Bridge.HTTPHandler, or give integers bounds of at most 2^53-1", f.Name)}
		}
	}
	return schemaOf(w, fields), nil
}

// safeInteger is the largest of the integers that float64 holds each on its own.
var safeInteger = big.NewRat(1<<53-1, 1)

// exactAsFloat reports whether every answer that the field accepts is read exactly where numbers
// are float64. A literal beyond the bounds of an integer decodes to one that is beyond them, too.
func exactAsFloat(f interrupt.Field) bool {
	switch f.Kind {
	case interrupt.FieldNumber:
		return false
	case interrupt.FieldInteger:
		return safe(f.Minimum) && safe(f.Maximum)
	}
	return true
}

func safe(bound json.Number) bool {
	r, ok := new(big.Rat).SetString(string(bound))
	return ok && r.Abs(r).Cmp(safeInteger) <= 0
}

// schemaOf writes the fields in their order, and for each what the protocol has words for: the
// profile of forms (R11) is what MCP takes, but for two ways of older versions to say the titles of
// choices.
func schemaOf(w wire, fields []interrupt.Field) json.RawMessage {
	var properties []member
	var required []string
	for _, f := range fields {
		properties = append(properties, member{f.Name, property(w, f)})
		if f.Required {
			required = append(required, f.Name)
		}
	}
	root := []member{{"type", text("object")}, {"properties", object(properties)}}
	if required != nil {
		root = append(root, member{"required", value(required)})
	}
	return object(root)
}

func property(w wire, f interrupt.Field) json.RawMessage {
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
		p = append(p, choices(w, f.Options, "oneOf")...)
	case interrupt.FieldMulti:
		items := choices(w, f.Options, "anyOf")
		if items[0].name == "enum" {
			items = append([]member{{"type", text("string")}}, items...)
		}
		p = append(p, member{"items", object(items)})
	}
	add("default", f.Default != nil, f.Default)
	return object(p)
}

// choices are the options of a field: their values alone where no title says more, else with titles
// under the keyword, or as 2025-06-18 has it.
func choices(w wire, options []interrupt.FieldOption, keyword string) []member {
	var values, titles []string
	var titled []json.RawMessage
	named := false
	for _, o := range options {
		values, titles = append(values, o.Value), append(titles, o.Title)
		titled = append(titled, object([]member{{"const", text(o.Value)}, {"title", text(o.Title)}}))
		named = named || o.Title != o.Value
	}
	switch {
	case !named:
		return []member{{"enum", value(values)}}
	case w.era == era2025a:
		return []member{{"enum", value(values)}, {"enumNames", value(titles)}}
	}
	return []member{{keyword, value(titled)}}
}

func text(s string) json.RawMessage { return value(s) }

func value(v any) json.RawMessage {
	raw, err := canon.Marshal(v)
	if err != nil {
		panic(err) // only for what has no JSON form, and these have one
	}
	return raw
}
