package main

import (
	"context"
	"encoding/json"
	"fmt"

	"charm.land/huh/v2"

	"github.com/parley-go/parley/interrupt"
)

// A way is one way to answer a question: what the person reads, and the payload that it stands for.
type way struct {
	label   string
	payload []byte
}

// ask puts one question, and returns its payload.
func (t *terminal) ask(ctx context.Context, id string, question interrupt.Interrupt) (json.RawMessage, error) {
	switch q := question.(type) {
	case *interrupt.ToolPermissionInterrupt:
		return t.permission(ctx, id, q)
	case *interrupt.UserSelectionInterrupt:
		return t.selection(ctx, id, q)
	case *interrupt.FormInterrupt:
		return t.form(ctx, id, q)
	case *interrupt.URLInterrupt:
		fmt.Fprintf(t.out, "%s\n   %s\n\n", printable(q.Message), printable(q.URL))
		yes, err := json.Marshal(interrupt.URLPayload{InterruptId: id, Action: interrupt.ActionAccept})
		if err != nil {
			return nil, err
		}
		return t.choose(ctx, "Is it all right to open this page? (Nobody opens it for you.)", 0, noOrCancel(id, way{"Yes", yes}))
	}
	return nil, fmt.Errorf("ask question %s: a terminal cannot show the type %q", id, question.TypeName())
}

// permission starts on the first option that rejects: Enter alone, perhaps pressed for something
// else, allows nothing.
func (t *terminal) permission(ctx context.Context, id string, q *interrupt.ToolPermissionInterrupt) (json.RawMessage, error) {
	var ways []way
	start := -1
	for i, option := range q.Options {
		payload, err := json.Marshal(interrupt.ToolPermissionPayload{InterruptId: id, OptionID: option.OptionID})
		if err != nil {
			return nil, err
		}
		if start < 0 && !option.Allows() {
			start = i
		}
		ways = append(ways, way{option.Name, payload})
	}
	if start < 0 {
		start = len(ways) // to decline
	}
	if q.Title != "" {
		fmt.Fprintf(t.out, "%s\n\n", printable(q.Title))
	}
	return t.choose(ctx, "May the tool "+q.ToolName+" run with these arguments?", start, noOrCancel(id, ways...))
}

func (t *terminal) selection(ctx context.Context, id string, q *interrupt.UserSelectionInterrupt) (json.RawMessage, error) {
	var ways []way
	start := 0
	for i, option := range q.Options {
		payload, err := json.Marshal(interrupt.UserSelectionPayload{InterruptId: id, SelectionIdx: i})
		if err != nil {
			return nil, err
		}
		label := option.Title
		if option.Description != "" {
			label += " – " + option.Description
		}
		if option.IsRecommended {
			label, start = label+" (recommended)", i
		}
		ways = append(ways, way{label, payload})
	}
	return t.choose(ctx, "Choose one.", start, noOrCancel(id, ways...))
}

// noOrCancel adds the two ways that every question has. They are not the same: who declines says no
// to this question, who cancels breaks the whole off.
func noOrCancel(id string, ways ...way) []way {
	return append(ways, way{"Decline to answer", interrupt.Decline(id)}, way{"Cancel", interrupt.Cancel(id)})
}

// choose lets the person choose one way, beginning on one of them.
func (t *terminal) choose(ctx context.Context, title string, start int, ways []way) ([]byte, error) {
	options := make([]huh.Option[int], len(ways))
	for i, w := range ways { // from 1: huh begins on the option that has the zero value, if one has
		options[i] = huh.NewOption(printable(w.label), i+1).Selected(i == start)
	}
	// The field keeps its value itself: given a variable, the accessible mode would take an empty
	// line for the first option.
	field := huh.NewSelect[int]().Title(printable(title)).Options(options...)
	if err := t.show(ctx, field); err != nil {
		return nil, err
	}
	chosen := ways[field.GetValue().(int)-1]
	fmt.Fprintf(t.out, "%s → %s\n", printable(title), printable(chosen.label))
	return chosen.payload, nil
}
