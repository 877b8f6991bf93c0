package main

import (
	"encoding/json"
	"fmt"

	"charm.land/huh/v2"

	"github.com/parley-go/parley/interrupt"
)

// An input is a field of a form on the screen. Its value is the JSON that the person entered, nil
// where they left it out.
type input struct {
	field huh.Field
	value func() json.RawMessage
}

// input returns the input for a field of any kind. The default of a field is what it begins with,
// in plain sight; the accessible mode, where nothing can be in sight without being typed, names it
// instead.
func (t *terminal) input(f interrupt.Field, check func(json.RawMessage) error) input {
	title, hint := printable(titleOf(f)), printable(hint(f))
	preset := f.Default
	if t.accessible {
		if hint != "" {
			title = fmt.Sprintf("%s (%s)", title, hint)
		}
		if preset != nil {
			title = fmt.Sprintf("%s, suggested: %s", title, printable(string(preset)))
		}
		title, preset = title+":", nil
	}
	switch {
	case f.Kind == interrupt.FieldBoolean && f.Required && !t.accessible: // there an empty line would be a no
		yes := string(preset) == "true"
		field := huh.NewConfirm().Title(title).Description(hint).Value(&yes)
		return input{field, func() json.RawMessage { return encode(yes) }}
	case f.Kind == interrupt.FieldBoolean:
		options := []huh.Option[string]{huh.NewOption("Yes", "true"), huh.NewOption("No", "false")}
		return choiceInput(title, hint, leaveOut(f, options), preset)
	case f.Kind == interrupt.FieldEnum:
		return choiceInput(title, hint, leaveOut(f, choices(f)), preset)
	case f.Kind == interrupt.FieldMulti:
		return multiInput(title, hint, f, preset, check)
	}
	return textInput(title, hint, f, preset, check)
}

// textInput is a text or a number. A number is sent as it was typed, digit for digit; what is none
// is sent as a text, and refused.
func textInput(title, hint string, f interrupt.Field, preset json.RawMessage, check func(json.RawMessage) error) input {
	text := string(preset)
	if f.Kind == interrupt.FieldString && preset != nil && json.Unmarshal(preset, &text) != nil {
		text = ""
	}
	value := func(text string) json.RawMessage {
		switch {
		case text == "":
			return nil
		case f.Kind != interrupt.FieldString && json.Valid([]byte(text)):
			return json.RawMessage(text)
		}
		return encode(text)
	}
	field := huh.NewInput().Title(title).Description(hint).Value(&text).
		Validate(func(text string) error { return check(value(text)) })
	return input{field, func() json.RawMessage { return value(text) }}
}

// encode writes a value that can always be written. Two encodings of one string are the same.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
