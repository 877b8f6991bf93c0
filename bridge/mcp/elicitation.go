package mcpbridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/elicit"
	"github.com/parley-go/parley/interrupt"
)

// An unfit question cannot be carried to the client so that it means the same there (R13, R34).
type unfit struct{ reason string }

func (e *unfit) Error() string { return e.reason }

// elicitation is one question as MCP asks it. reason says why a former answer was not accepted;
// empty: there was none. The error is an *unfit.
func elicitation(w wire, p *gate.Prompt, q gate.Question, reason string) (*mcp.ElicitParams, error) {
	asked, err := q.Interrupt()
	if err != nil {
		return nil, &unfit{"the question cannot be read back"}
	}
	params := &mcp.ElicitParams{Mode: "form"}
	switch asked := asked.(type) {
	case *interrupt.ToolPermissionInterrupt:
		params.Message = permissionMessage(p, asked)
		params.RequestedSchema = oneChoice(w, elicit.FieldDecision, "Decision", permissionOptions(asked, q.Remember))
	case *interrupt.UserSelectionInterrupt:
		params.Message = selectionMessage(p, asked)
		params.RequestedSchema = oneChoice(w, elicit.FieldChoice, "Choice", selectionOptions(asked))
	case *interrupt.FormInterrupt:
		params.Message = asked.Message
		if params.RequestedSchema, err = formSchema(w, asked); err != nil {
			return nil, err
		}
	case *interrupt.URLInterrupt:
		params.Mode, params.Message, params.URL = "url", asked.Message, asked.URL
		if w.era == era2025 {
			params.ElicitationID = q.ID // required there, and gone in 2026-07-28
		}
	default:
		return nil, &unfit{fmt.Sprintf("a question of type %.64q has no form in MCP", q.Type)}
	}
	if reason != "" {
		params.Message = "Not accepted: " + reason + "\n\n" + params.Message
	}
	return params, nil
}

// permissionMessage says what would be done, and with which arguments: they are part of what a
// person decides on (R9).
func permissionMessage(p *gate.Prompt, asked *interrupt.ToolPermissionInterrupt) string {
	title := asked.Title
	if title == "" {
		title = "Allow the tool to run?"
	}
	return title + "\n\nTool: " + asked.ToolName + "\nArguments: " + indented(p.Arguments)
}

func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}

func selectionMessage(p *gate.Prompt, asked *interrupt.UserSelectionInterrupt) string {
	title := p.Title
	if title == "" {
		title = p.Tool
	}
	var b strings.Builder
	b.WriteString(title + " asks you to choose:")
	for _, o := range asked.Options {
		b.WriteString("\n- " + o.Title)
		if o.IsRecommended {
			b.WriteString(" (recommended)")
		}
		if o.Description != "" {
			b.WriteString(": " + o.Description)
		}
	}
	return b.String()
}

func permissionOptions(asked *interrupt.ToolPermissionInterrupt, remember *checkpoint.Remember) []interrupt.FieldOption {
	var options []interrupt.FieldOption
	for _, o := range asked.Options {
		title := o.Name
		if remember != nil && (o.Kind == interrupt.PermissionAllowAlways || o.Kind == interrupt.PermissionRejectAlways) {
			title += " (" + elicit.Remembered(remember) + ")"
		}
		options = append(options, interrupt.FieldOption{Value: o.OptionID, Title: title})
	}
	return options
}

// selectionOptions are offered by their index, since two selections can have one title for
// different things.
func selectionOptions(asked *interrupt.UserSelectionInterrupt) []interrupt.FieldOption {
	var options []interrupt.FieldOption
	for i, o := range asked.Options {
		title := o.Title
		if o.IsRecommended {
			title += " (recommended)"
		}
		options = append(options, interrupt.FieldOption{Value: strconv.Itoa(i), Title: title})
	}
	return options
}

// oneChoice is the schema of a permission or a selection: one required field, without a default,
// and no boolean, which some clients send untouched.
func oneChoice(w wire, name, title string, options []interrupt.FieldOption) json.RawMessage {
	field := interrupt.Field{Name: name, Title: title, Kind: interrupt.FieldEnum, Required: true, Options: options}
	return schemaOf(w, []interrupt.Field{field})
}
