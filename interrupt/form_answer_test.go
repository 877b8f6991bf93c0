package interrupt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/interrupt"
)

const everyKind = `{"type":"object","required":["name"],"properties":{
	"name":{"type":"string","minLength":2,"maxLength":4,"default":"dflt"},
	"mail":{"type":"string","format":"email"},
	"site":{"type":"string","format":"uri"},
	"day":{"type":"string","format":"date"},
	"at":{"type":"string","format":"date-time"},
	"count":{"type":"integer","minimum":1,"maximum":9007199254740993},
	"ratio":{"type":"number","minimum":0.1,"maximum":0.3},
	"any":{"type":"number"},
	"sure":{"type":"boolean","default":true},
	"env":{"type":"string","enum":["dev","prod"],"enumNames":["Development","Production"]},
	"tier":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}]},
	"tags":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b","c"]}},
	"a/b":{"type":"boolean"}}}`

// R15: content that fits, and the form in which a handler gets it.
func TestFormAnswerAccepted(t *testing.T) {
	for _, tc := range []struct{ content, want string }{
		{`{"name":"ab"}`, `{"name":"ab"}`}, // defaults are never inserted (R11)
		{` { "sure" : false , "name" : "\u0061b" } `, `{"name":"ab","sure":false}`},
		{`{"name":"äöü€"}`, `{"name":"äöü€"}`}, // lengths count characters
		{`{"name":"😀😀😀😀"}`, `{"name":"😀😀😀😀"}`},
		{`{"name":"ab","count":1.0}`, `{"count":1,"name":"ab"}`},
		{`{"name":"ab","count":1e2}`, `{"count":100,"name":"ab"}`},
		{`{"name":"ab","count":250e-1}`, `{"count":25,"name":"ab"}`},
		{`{"name":"ab","count":9007199254740993}`, `{"count":9007199254740993,"name":"ab"}`},
		{`{"name":"ab","ratio":0.1}`, `{"name":"ab","ratio":0.1}`},
		{`{"name":"ab","ratio":0.30}`, `{"name":"ab","ratio":0.3}`},
		{`{"name":"ab","ratio":0.1000000000000000055}`, `{"name":"ab","ratio":0.1000000000000000055}`},
		{`{"name":"ab","any":-0.0}`, `{"any":0,"name":"ab"}`},
		{`{"name":"ab","any":-1e1000}`, `{"any":-1e+1000,"name":"ab"}`},
		{`{"name":"ab","mail":"a@example.com","site":"https://example.com/","day":"2026-02-28",` +
			`"at":"2026-02-28T10:00:00Z"}`,
			`{"at":"2026-02-28T10:00:00Z","day":"2026-02-28","mail":"a@example.com","name":"ab",` +
				`"site":"https://example.com/"}`},
		{`{"name":"ab","at":"2026-02-28T10:00:00.123456789012-23:59"}`, `{"at":"2026-02-28T10:00:00.123456789012-23:59","name":"ab"}`},
		{`{"name":"ab","env":"prod","tier":"s","tags":["c","a"]}`,
			`{"env":"prod","name":"ab","tags":["c","a"],"tier":"s"}`},
		{`{"name":"ab","a/b":true}`, `{"a/b":true,"name":"ab"}`},
	} {
		t.Run(tc.content, func(t *testing.T) {
			form := interrupt.Form("m", json.RawMessage(everyKind))
			payload := []byte(`{"content":` + tc.content + `}`)
			if err := form.ValidatePayload(payload); err != nil {
				t.Fatal(err)
			}
			if form.Action != "" || form.Content != nil {
				t.Errorf("checking changed the form: %q, %s", form.Action, form.Content)
			}
			if err := form.Return(payload); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(form.Content)); diff != "" || form.Action != interrupt.ActionAccept {
				t.Errorf("action %q, content (-want +got):\n%s", form.Action, diff)
			}
		})
	}
}

// R15: content that does not fit; the error names the field (R16).
func TestFormContentRefused(t *testing.T) {
	for _, tc := range []struct{ name, content, path string }{
		{"null", `null`, ""},
		{"array", `[]`, ""},
		{"string", `"{}"`, ""},
		{"required missing", `{}`, "/name"},
		{"required missing among others", `{"sure":true}`, "/name"},
		{"null is not absent", `{"name":null}`, "/name"},
		{"optional null", `{"name":"ab","mail":null}`, "/mail"},
		{"undeclared", `{"name":"ab","more":1}`, "/more"},
		{"undeclared by case", `{"Name":"ab"}`, "/Name"},
		{"duplicate", `{"name":"ab","name":"ab"}`, "/name"},
		{"duplicate, written differently", `{"name":"ab","n\u0061me":"cd"}`, "/name"},
		{"duplicate at depth", `{"name":"ab","more":[{"x":1,"x":2}]}`, "/more/0/x"},
		{"too short", `{"name":"a"}`, "/name"},
		{"too short in characters", `{"name":"😀"}`, "/name"},
		{"too long", `{"name":"abcde"}`, "/name"},
		{"number for a string", `{"name":12}`, "/name"},
		{"boolean for a string", `{"name":true}`, "/name"},
		{"array for a string", `{"name":["ab"]}`, "/name"},
		{"email", `{"name":"ab","mail":"ab"}`, "/mail"},
		{"email with a line break", `{"name":"ab","mail":"\"a\nbcc:b\"@example.com"}`, "/mail"},
		{"uri", `{"name":"ab","site":"example.com"}`, "/site"},
		{"uri with spaces", `{"name":"ab","site":"https://example.com/a b"}`, "/site"},
		{"date", `{"name":"ab","day":"2026-02-29"}`, "/day"},
		{"date-time", `{"name":"ab","at":"2026-02-28"}`, "/at"},
		{"date-time without zone", `{"name":"ab","at":"2026-02-28T10:00:00"}`, "/at"},
		{"date-time that is a leap second", `{"name":"ab","at":"2016-12-31T23:59:60Z"}`, "/at"},
		{"date-time with a small t", `{"name":"ab","at":"2026-02-28t10:00:00Z"}`, "/at"},
		{"date-time with a small z", `{"name":"ab","at":"2026-02-28T10:00:00z"}`, "/at"},
		{"empty is no date", `{"name":"ab","day":""}`, "/day"},
		{"string for an integer", `{"name":"ab","count":"5"}`, "/count"},
		{"boolean for an integer", `{"name":"ab","count":true}`, "/count"},
		{"fraction for an integer", `{"name":"ab","count":1.5}`, "/count"},
		{"small fraction for an integer", `{"name":"ab","count":1.00000000000000000000001}`, "/count"},
		{"below", `{"name":"ab","count":0}`, "/count"},
		{"above beyond float64", `{"name":"ab","count":9007199254740994}`, "/count"},
		{"just below", `{"name":"ab","ratio":0.09999999999999999999999999}`, "/ratio"},
		{"just above", `{"name":"ab","ratio":0.3000000000000000000000001}`, "/ratio"},
		{"string for a number", `{"name":"ab","any":"1"}`, "/any"},
		{"huge exponent", `{"name":"ab","any":1e999999999}`, "/any"},
		{"many digits", `{"name":"ab","any":` + strings.Repeat("1", 1001) + `}`, "/any"},
		{"number for a boolean", `{"name":"ab","sure":1}`, "/sure"},
		{"zero for a boolean", `{"name":"ab","sure":0}`, "/sure"},
		{"string for a boolean", `{"name":"ab","sure":"true"}`, "/sure"},
		{"unknown choice", `{"name":"ab","env":"test"}`, "/env"},
		{"choice by name", `{"name":"ab","env":"Production"}`, "/env"},
		{"choice by case", `{"name":"ab","env":"Prod"}`, "/env"},
		{"choice with a space", `{"name":"ab","env":"prod "}`, "/env"},
		{"choice by index", `{"name":"ab","env":1}`, "/env"},
		{"choice empty", `{"name":"ab","env":""}`, "/env"},
		{"choice by title", `{"name":"ab","tier":"Small"}`, "/tier"},
		{"no items", `{"name":"ab","tags":[]}`, "/tags"},
		{"too many items", `{"name":"ab","tags":["a","b","c"]}`, "/tags"},
		{"item twice", `{"name":"ab","tags":["a","\u0061"]}`, "/tags/1"},
		{"unknown item", `{"name":"ab","tags":["a","d"]}`, "/tags/1"},
		{"item not a string", `{"name":"ab","tags":[null]}`, "/tags/0"},
		{"item for an array", `{"name":"ab","tags":"a"}`, "/tags"},
		{"object for an array", `{"name":"ab","tags":{"0":"a"}}`, "/tags"},
		{"pointer is escaped", `{"name":"ab","a/b":1}`, "/a~1b"},
		{"too deep", `{"name":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`,
			"/name" + strings.Repeat("/0", 63)},
		{"lone surrogate", `{"name":"\ud800b"}`, "/name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantRefused(t, `{"action":"accept","content":`+tc.content+`}`, "/content"+tc.path)
		})
	}
}

// wantRefused gives the payload to a form that was answered before, and finds it unchanged (R16).
func wantRefused(t *testing.T, payload, path string) {
	t.Helper()
	form := interrupt.Form("m", json.RawMessage(everyKind))
	if err := form.Return([]byte(`{"content":{"name":"ab"}}`)); err != nil {
		t.Fatal(err)
	}
	before := *form
	for _, err := range []error{form.ValidatePayload([]byte(payload)), form.Return([]byte(payload))} {
		e, ok := errors.AsType[*interrupt.PayloadError](err)
		if !ok || !errors.Is(err, interrupt.ErrInvalidPayload) {
			t.Fatalf("error is %T: %v", err, err)
		}
		if e.Type != interrupt.TypeForm || e.Path != path || e.Reason == "" || len(e.Error()) > 1000 {
			t.Errorf("error is at %q (%.300v), want %q", e.Path, e, path)
		}
	}
	if diff := cmp.Diff(&before, form); diff != "" {
		t.Errorf("an invalid answer changed the form:\n%s", diff)
	}
}

// R15, R17: the members around the content.
func TestFormPayloadRefused(t *testing.T) {
	const ok = `"content":{"name":"ab"}`
	for _, tc := range []struct{ name, payload, path string }{
		{"empty", ``, ""},
		{"null", `null`, ""},
		{"content alone", `[]`, ""},
		{"two values", `{` + ok + `} {}`, ""},
		{"accept without content", `{"action":"accept"}`, "/content"},
		{"nothing", `{}`, "/content"},
		{"unknown action", `{"action":"yes",` + ok + `}`, "/action"},
		{"action by case", `{"action":"Accept",` + ok + `}`, "/action"},
		{"action null", `{"action":null,` + ok + `}`, "/action"},
		{"unknown member", `{` + ok + `,"confirmed":true}`, "/confirmed"},
		{"member by case", `{"Content":{"name":"ab"}}`, "/Content"},
		{"content twice", `{` + ok + `,` + ok + `}`, "/content"},
		{"decline with content", `{"action":"decline",` + ok + `}`, "/content"},
		{"decline with empty content", `{"action":"decline","content":{}}`, "/content"},
		{"cancel with content", `{"action":"cancel",` + ok + `}`, "/content"},
		{"cancel with null content", `{"action":"cancel","content":null}`, "/content"},
		{"id not a string", `{"interruptId":7,` + ok + `}`, "/interruptId"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantRefused(t, tc.payload, tc.path) })
	}
}

// How long an answer may be is for the gate to say, whose limit can be above a mebibyte; so is how
// long a form.
func TestFormLongAnswer(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	for name, schema := range map[string]string{
		"long answer": `{"type":"object","properties":{"text":{"type":"string"}}}`,
		"long form":   `{"type":"object","properties":{"text":{"type":"string","default":"` + long + `"}}}`,
	} {
		form := interrupt.Form("m", json.RawMessage(schema))
		if err := form.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		content := `{"text":"` + long + `"}`
		if err := form.Return([]byte(`{"content":` + content + `}`)); err != nil || string(form.Content) != content {
			t.Errorf("%s: %d bytes of content, %v", name, len(form.Content), err)
		}
	}
}

// R17: decline and cancel are different, and have no content; what an earlier answer left is gone.
func TestFormDeclineAndCancel(t *testing.T) {
	for payload, want := range map[string]interrupt.Action{
		string(interrupt.Decline("")): interrupt.ActionDecline, string(interrupt.Cancel("id")): interrupt.ActionCancel,
		`{"action":"decline"}`: interrupt.ActionDecline,
	} {
		form := interrupt.Form("m", json.RawMessage(everyKind))
		if err := form.Return([]byte(`{"content":{"name":"ab"}}`)); err != nil {
			t.Fatal(err)
		}
		if err := form.Return([]byte(payload)); err != nil {
			t.Fatal(err)
		}
		if form.Action != want || form.Content != nil {
			t.Errorf("%s: action %q, content %s", payload, form.Action, form.Content)
		}
	}
}

// R15: {} is content, where nothing is required; a false that was accepted stays an accept.
func TestFormEmptyContentAndFalse(t *testing.T) {
	form := interrupt.Form("m",
		json.RawMessage(`{"type":"object","properties":{"sure":{"type":"boolean","default":true}}}`))
	for _, content := range []string{`{}`, `{"sure":false}`} {
		payload, err := json.Marshal(interrupt.FormPayload{InterruptId: "x", Content: json.RawMessage(content)})
		if err != nil {
			t.Fatal(err)
		}
		if err := form.Return(payload); err != nil {
			t.Fatal(err)
		}
		if form.Action != interrupt.ActionAccept || string(form.Content) != content {
			t.Errorf("action %q, content %s, want %s", form.Action, form.Content, content)
		}
	}
	if err := form.Return([]byte(`{"content":null}`)); !errors.Is(err, interrupt.ErrInvalidPayload) {
		t.Errorf("null content: %v", err)
	}
}

// R8: the zero value is invalid, and so is a message that cannot be shown.
func TestFormValidate(t *testing.T) {
	for _, tc := range []struct {
		name string
		form *interrupt.FormInterrupt
		path string
	}{
		{"zero", &interrupt.FormInterrupt{}, "/message"},
		{"no message", interrupt.Form("", json.RawMessage(`{"type":"object"}`)), "/message"},
		{"message not UTF-8", interrupt.Form("\xff", json.RawMessage(`{"type":"object"}`)), "/message"},
		{"no schema", interrupt.Form("m", nil), "/schema"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantQuestionError(t, tc.form.Validate(), tc.path) })
	}
	var zero interrupt.FormInterrupt
	if err := zero.Return([]byte(`{"content":{}}`)); !errors.Is(err, interrupt.ErrInvalidQuestion) ||
		zero.Action != "" {
		t.Errorf("zero value was answered: %v", err)
	}
	if err := zero.Return(interrupt.Decline("")); err == nil {
		t.Error("zero value was declined")
	}
}

// R8: a form keeps no bytes that the caller can change, and serializes without its answer.
func TestFormIsDetached(t *testing.T) {
	schema := []byte(`{"type":"object","properties":{"b":{"type":"boolean"},"a":{"type":"boolean"}}}`)
	form := interrupt.Form("m <1>", schema)
	schema[2] = 'x'
	payload := []byte(`{"content":{"a":true}}`)
	if err := form.Return(payload); err != nil {
		t.Fatal(err)
	}
	copy(payload, "xxxxxxxxxxxxxxxxxxxxxx")
	if string(form.Content) != `{"a":true}` {
		t.Errorf("content is %s", form.Content)
	}
	form.Key, form.Lifetime = "k", time.Minute
	if form.TypeName() != interrupt.TypeForm || form.QuestionKey() != "k" || form.QuestionLifetime() != time.Minute {
		t.Errorf("type %q, key %q, lifetime %v", form.TypeName(), form.QuestionKey(), form.QuestionLifetime())
	}
	body, err := form.Serialize()
	if err != nil {
		t.Fatal(err)
	}
	var back interrupt.FormInterrupt
	if err := json.Unmarshal(body, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(interrupt.Form(form.Message, form.Schema), &back); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestFormClone(t *testing.T) {
	form := interrupt.Form("m", json.RawMessage(`{"type":"object","properties":{"a":{"type":"boolean"}}}`))
	form.Key, form.Lifetime = "k", time.Minute
	if err := form.Return([]byte(`{"content":{"a":true}}`)); err != nil {
		t.Fatal(err)
	}
	dup, ok := interrupt.Clone(form).(*interrupt.FormInterrupt)
	if !ok {
		t.Fatalf("clone is a %T", interrupt.Clone(form))
	}
	if diff := cmp.Diff(form, dup); diff != "" {
		t.Errorf("clone (-want +got):\n%s", diff)
	}
	dup.Schema[0], dup.Content[0] = 'x', 'x'
	if form.Schema[0] != '{' || form.Content[0] != '{' {
		t.Error("clone shares bytes with the form")
	}
}

func TestFormErrorIsBounded(t *testing.T) {
	form := interrupt.Form(strings.Repeat("ü", 1000), nil)
	if text := form.Error(); len(text) > 220 || !strings.HasSuffix(text, "ü…") {
		t.Errorf("error is %q", text)
	}
}

func ExampleForm() {
	form := interrupt.Form("Where should it go?", json.RawMessage(`{
		"type": "object",
		"properties": {
			"env":      {"type": "string", "title": "Environment", "enum": ["staging", "production"]},
			"replicas": {"type": "integer", "minimum": 1, "maximum": 10, "default": 2}
		},
		"required": ["env"]
	}`))
	fields, err := form.Fields()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, field := range fields {
		fmt.Println(field.Name, field.Kind, field.Required)
	}
	fmt.Println(form.Return([]byte(`{"content": {"env": "production", "replicas": 11}}`)))
	fmt.Println(form.Return([]byte(`{"content": {"env": "production", "replicas": 3.0}}`)))
	fmt.Println(form.Action, string(form.Content))
	// Output:
	// env enum true
	// replicas integer false
	// answer to form: /content/replicas: must be at most 10
	// <nil>
	// accept {"env":"production","replicas":3}
}
