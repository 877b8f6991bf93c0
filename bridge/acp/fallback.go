package acpbridge

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/elicit"
	"github.com/parley-go/parley/internal/resume"
	"github.com/parley-go/parley/interrupt"
)

// AskedAsFallback reports whether an answer that the handler runs with, of whichever round, was
// given to a question that the client was asked in the form of a permission, for want of a better
// one (see [Fallbacks]): some clients answer those for their person. It is recorded with the
// answer, so that a recovery and another process know it too, whichever face they go on by. It is
// false on a context that no gate made.
func AskedAsFallback(ctx context.Context) bool {
	run := resume.From(ctx)
	return run != nil && run.Fallback
}

// skip is the option that declines.
const skip = "decline"

// asPermission asks with one option for each answer, and one to decline. The first is what a client
// takes that approves everything.
func (s subject) asPermission(
	q gate.Question, view View, options []acp.PermissionOption, reason string, answer func(option string) json.RawMessage,
) (wireQuestion, error) {
	title := s.title()
	if view.Title != "" {
		title = view.Title
	}
	options = append(options, option(skip, acp.PermissionOptionKindRejectOnce, "Skip"))
	call := acp.ToolCallUpdate{Title: &title, Kind: &view.Kind, Content: view.Content}
	w, err := s.request(q, call, options, reason, func(option string) json.RawMessage {
		if option == skip {
			return interrupt.Decline(q.ID)
		}
		return answer(option)
	})
	w.fallback = true
	return w, err
}

func allowOnce(id, name string) acp.PermissionOption {
	return option(id, acp.PermissionOptionKindAllowOnce, name)
}

func textContent(text string) []acp.ToolCallContent {
	return []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(text))}
}

func (s subject) selectionAsPermission(q gate.Question, asked *interrupt.UserSelectionInterrupt, reason string) (wireQuestion, error) {
	var options []acp.PermissionOption
	for i, o := range asked.Options {
		one := allowOnce(strconv.Itoa(i), choiceName(o))
		if o.IsRecommended {
			options = slices.Insert(options, 0, one)
			continue
		}
		options = append(options, one)
	}
	view := View{Kind: acp.ToolKindOther, Content: textContent(s.choices(asked))}
	return s.asPermission(q, view, options, reason, func(option string) json.RawMessage {
		index, _ := strconv.Atoi(option) // it is one of those above
		return answerFor("selectionIdx", index)
	})
}

// maxFallbackOptions is how many choices of a form become options.
const maxFallbackOptions = 8

// formAsPermission is for a form that is one required answer out of a few. All others would lose
// what they ask for.
func (s subject) formAsPermission(q gate.Question, asked *interrupt.FormInterrupt, reason string) (wireQuestion, error) {
	fields, err := asked.Fields()
	if err != nil {
		return wireQuestion{}, &unfit{"the form cannot be read back"}
	}
	if len(fields) != 1 || !fields[0].Required {
		return wireQuestion{}, &unfit{"the client cannot show a form, and this one is not a single required choice"}
	}
	field := fields[0]
	if elicit.AsksForSecret(field) {
		return wireQuestion{}, secretField(field)
	}
	var options []acp.PermissionOption
	values := map[string]any{}
	add := func(value any, name string) {
		id := strconv.Itoa(len(options))
		options, values[id] = append(options, allowOnce(id, name)), value
	}
	switch {
	case field.Kind == interrupt.FieldBoolean:
		add(true, "Yes")
		add(false, "No")
	case field.Kind == interrupt.FieldEnum && len(field.Options) <= maxFallbackOptions:
		for _, o := range field.Options {
			add(o.Value, o.Title)
		}
	default:
		return wireQuestion{}, &unfit{"the client cannot show a form, and this one is not a choice of a few"}
	}
	text := asked.Message + "\n\n" + field.Name
	if field.Title != "" {
		text = asked.Message + "\n\n" + field.Title
	}
	if field.Description != "" {
		text += ": " + field.Description
	}
	view := View{Kind: acp.ToolKindOther, Content: textContent(text)}
	return s.asPermission(q, view, options, reason, func(option string) json.RawMessage {
		return answerFor("content", map[string]any{field.Name: values[option]})
	})
}

func (s subject) urlAsPermission(q gate.Question, asked *interrupt.URLInterrupt, reason string) (wireQuestion, error) {
	view := View{Title: "Open a page", Kind: acp.ToolKindFetch, Content: textContent(asked.Message + "\n\n" + asked.URL)}
	return s.asPermission(q, view, []acp.PermissionOption{allowOnce("open", "I will open it")}, reason, func(string) json.RawMessage {
		return json.RawMessage(`{}`)
	})
}
