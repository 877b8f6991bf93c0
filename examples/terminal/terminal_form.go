package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"charm.land/huh/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-go/parley/interrupt"
)

// form asks first whether the form is to be filled in at all, and then shows its fields together.
func (t *terminal) form(ctx context.Context, id string, q *interrupt.FormInterrupt) (json.RawMessage, error) {
	declared, err := q.Fields()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(t.out, "%s\n\n", printable(q.Message))
	payload, err := t.choose(ctx, fmt.Sprintf("A form of %d fields.", len(declared)), 0, noOrCancel(id, way{"Fill it in", nil}))
	if err != nil || payload != nil {
		return payload, err
	}
	inputs := make([]input, len(declared))
	fields := make([]huh.Field, len(declared))
	for i, f := range declared {
		inputs[i] = t.input(f, func(value json.RawMessage) error { return misfit(q, f, value) })
		fields[i] = inputs[i].field
	}
	if len(fields) > 0 {
		if err := t.show(ctx, fields...); err != nil {
			return nil, err
		}
	}
	content := map[string]json.RawMessage{}
	for i, f := range declared {
		if value := inputs[i].value(); value != nil { // what was left empty is left out; no default takes its place
			content[f.Name] = value
			fmt.Fprintf(t.out, "   %s: %s\n", printable(titleOf(f)), printable(string(value)))
		}
	}
	whole, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return json.Marshal(interrupt.FormPayload{InterruptId: id, Action: interrupt.ActionAccept, Content: whole})
}

// misfit says why a value is none for the field, or nothing; a nil value is one that was left out.
// The form checks whole answers only: what it says of the other fields, which are not there yet, is
// passed over.
func misfit(q *interrupt.FormInterrupt, f interrupt.Field, value json.RawMessage) error {
	if value == nil {
		if f.Required {
			return errors.New("is required")
		}
		return nil
	}
	content, err := json.Marshal(map[string]json.RawMessage{f.Name: value})
	if err != nil {
		return err
	}
	payload, err := json.Marshal(interrupt.FormPayload{Content: content})
	if err != nil {
		return err
	}
	e, ok := errors.AsType[*interrupt.PayloadError](q.ValidatePayload(payload))
	if own := string(jsontext.Pointer("/content").AppendToken(f.Name)); ok && strings.HasPrefix(e.Path+"/", own+"/") {
		return errors.New(e.Reason)
	}
	return nil
}

func titleOf(f interrupt.Field) string {
	if f.Title != "" {
		return f.Title
	}
	return f.Name
}

// hint says what fits into a field.
func hint(f interrupt.Field) string {
	var hints []string
	add := func(format string, args ...any) { hints = append(hints, fmt.Sprintf(format, args...)) }
	if f.Description != "" {
		add("%s", f.Description)
	}
	switch {
	case f.Minimum != "" && f.Maximum != "":
		add("%s to %s", f.Minimum, f.Maximum)
	case f.Minimum != "":
		add("%s or more", f.Minimum)
	case f.Maximum != "":
		add("at most %s", f.Maximum)
	}
	if f.MaxLength != nil {
		add("at most %d characters", *f.MaxLength)
	}
	if f.MaxItems != nil {
		add("at most %d of them", *f.MaxItems)
	}
	if f.Format != "" {
		add("%s", f.Format)
	}
	if !f.Required {
		add("may be left out")
	}
	return strings.Join(hints, ", ")
}
