package main

import (
	"context"
	"encoding/json"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

const (
	nameForm   = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	colourForm = `{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`
	okForm     = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`
	userForm   = `{"type":"object","properties":{"username":{"type":"string","description":"User's response"},` +
		`"email":{"type":"string","description":"User's email address"}},"required":["username","email"]}`
	defaultsForm = `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},` +
		`"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},` +
		`"verified":{"type":"boolean","default":true}}}`
	enumsForm = `{"type":"object","properties":{
		"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},
			{"const":"value3","title":"Third Option"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti":{"type":"array","maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","maxItems":3,"items":{"anyOf":[{"const":"value1","title":"First Choice"},
			{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`
)

// newTools returns those tools of the tests that ask a person.
func newTools() []*gate.Tool {
	return []*gate.Tool{
		asks("test_input_required_result_elicitation", "hello", question{"What is your name?", nameForm}),
		asks("test_input_required_result_request_state", "state-ok", question{"Is it ok?", okForm}),
		asks("test_input_required_result_tampered_state", "state-ok", question{"Is it ok?", okForm}),
		asks("test_input_required_result_multi_round", "done",
			question{"What is your name?", nameForm}, question{"Which colour?", colourForm}),
		asks("test_input_required_result_capabilities", "done", question{"Is it ok?", okForm}),
		asks("test_elicitation_sep1034_defaults", "Elicitation completed", question{"Please check", defaultsForm}),
		asks("test_elicitation_sep1330_enums", "Elicitation completed", question{"Please choose", enumsForm}),
		gate.NewTool("test_elicitation", func(ctx context.Context, in struct {
			Message string `json:"message"`
		}) (string, error) {
			form, err := interrupt.Ask(ctx, interrupt.Form(in.Message, json.RawMessage(userForm)))
			if err != nil {
				return "", err
			}
			return "User response: " + string(form.Content), nil
		}, nil),
	}
}

type question struct{ message, schema string }

// asks is a tool without arguments that asks these forms one after the other.
func asks(name, end string, questions ...question) *gate.Tool {
	return gate.NewRawTool(name, func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		text := end
		for _, q := range questions {
			form, err := interrupt.Ask(ctx, interrupt.Form(q.message, json.RawMessage(q.schema)))
			if err != nil {
				return nil, err
			}
			text += " " + string(form.Content)
		}
		return json.Marshal(text)
	}, nil)
}
