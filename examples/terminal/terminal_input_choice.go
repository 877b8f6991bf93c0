package main

import (
	"encoding/json"

	"charm.land/huh/v2"

	"github.com/parley-go/parley/interrupt"
)

// leftOut stands for no value. It is not JSON, and not empty, since huh begins on an empty one.
const leftOut = "-"

// choiceInput is one of several values in JSON, or leftOut.
func choiceInput(title, hint string, options []huh.Option[string], preset json.RawMessage) input {
	for i, option := range options {
		options[i] = option.Selected(preset != nil && option.Value == normal(preset))
	}
	field := huh.NewSelect[string]().Title(title).Description(hint).Options(options...)
	return input{field, func() json.RawMessage {
		if value := field.GetValue().(string); value != leftOut {
			return json.RawMessage(value)
		}
		return nil
	}}
}

func choices(f interrupt.Field) []huh.Option[string] {
	options := make([]huh.Option[string], len(f.Options))
	for i, option := range f.Options {
		options[i] = huh.NewOption(printable(option.Title), string(encode(option.Value)))
	}
	return options
}

// leaveOut puts the way to say nothing first, where there is one.
func leaveOut(f interrupt.Field, options []huh.Option[string]) []huh.Option[string] {
	if f.Required {
		return options
	}
	return append([]huh.Option[string]{huh.NewOption("(leave it out)", leftOut)}, options...)
}

func multiInput(title, hint string, f interrupt.Field, preset json.RawMessage, check func(json.RawMessage) error) input {
	var chosen []string // in JSON
	var presets []json.RawMessage
	if preset != nil && json.Unmarshal(preset, &presets) == nil {
		for _, p := range presets {
			chosen = append(chosen, normal(p))
		}
	}
	value := func(chosen []string) json.RawMessage {
		if len(chosen) == 0 && !f.Required {
			return nil
		}
		items := make([]json.RawMessage, len(chosen))
		for i, c := range chosen {
			items[i] = json.RawMessage(c)
		}
		return encode(items)
	}
	field := huh.NewMultiSelect[string]().Title(title).Description(hint).Options(choices(f)...).Value(&chosen).
		Validate(func(chosen []string) error { return check(value(chosen)) })
	return input{field, func() json.RawMessage { return value(chosen) }}
}

// normal writes a value of the schema's text as encode writes it, so that it can be compared.
func normal(raw json.RawMessage) string {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return ""
	}
	return string(encode(v))
}
