package elicit_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/elicit"
	"github.com/parley-go/parley/interrupt"
)

// R15: an answer has one reading. What a second reader could take for another one is none, and no
// text of it is in the error.
func TestReadAnswer(t *testing.T) {
	const private = "a-private-answer"
	for text, want := range map[string]elicit.Answer{
		``:                                   {},
		`null`:                               {},
		`{}`:                                 {},
		`{"action":"accept"}`:                {Action: "accept"},
		`{"action":"accept","content":null}`: {Action: "accept"},
		`{"content":{},"action":"decline"}`:  {Action: "decline", Content: json.RawMessage(`{}`)},
		`{"action":"accept","content":{"b":1.50,"a":"x"}}`:            {Action: "accept", Content: json.RawMessage(`{"a":"x","b":1.5}`)},
		`{"action":"accept","content":{"n":9007199254740993}}`:        {Action: "accept", Content: json.RawMessage(`{"n":9007199254740993}`)},
		`{"action":"accept","content":["not","for","me","to","say"]}`: {Action: "accept", Content: json.RawMessage(`["not","for","me","to","say"]`)},
		`{"action":"maybe","_meta":{"x":1},"other":2,"Roots":[]}`:     {Action: "maybe"},
	} {
		got, err := elicit.ReadAnswer(json.RawMessage(text), 1<<10, "roots")
		if err != nil || got.Action != want.Action || string(got.Content) != string(want.Content) {
			t.Errorf("%s: %q, %s, %v", text, got.Action, got.Content, err)
		}
	}
	for name, text := range map[string]string{
		"no object":           `["` + private + `"]`,
		"no JSON":             `{"action":"` + private,
		"two values":          `{} {"action":"` + private + `"}`,
		"not UTF-8":           "{\"action\":\"\xff" + private + `"}`,
		"action twice":        `{"action":"decline","action":"` + private + `"}`,
		"a field twice":       `{"action":"accept","content":{"f":"no","f":"` + private + `"}}`,
		"deep, a field twice": `{"action":"accept","content":{"f":[{"g":1,"g":"` + private + `"}]}}`,
		"action in capitals":  `{"action":"decline","ACTION":"` + private + `"}`,
		"content in capitals": `{"action":"accept","Content":"` + private + `"}`,
		"another kind's name": `{"action":"accept","roots":["` + private + `"]}`,
		"an action of a type": `{"action":["` + private + `"]}`,
		"more than the bound": `{"action":"accept","content":{"f":"` + private + strings.Repeat("x", 1<<10) + `"}}`,
	} {
		if got, err := elicit.ReadAnswer(json.RawMessage(text), 1<<10, "roots"); err == nil || strings.Contains(err.Error(), private) {
			t.Errorf("%s: %+v, error %v", name, got, err)
		}
	}
}

// R15: the payload says what the client said. What does not fit stays in it, for the gate to refuse.
func TestPayload(t *testing.T) {
	const permission, selection, form, url = interrupt.TypeToolPermission, interrupt.TypeUserSelection, interrupt.TypeForm, interrupt.TypeURL
	for _, tc := range []struct{ kind, action, content, want string }{
		{permission, "accept", `{"decision":"allow_once"}`, `{"action":"accept","optionId":"allow_once"}`},
		{permission, "accept", `{"decision":true}`, `{"action":"accept","optionId":true}`},
		{permission, "accept", `{"optionId":"allow_once"}`, `{"action":"accept","content/optionId":"allow_once"}`},
		{permission, "accept", `{"decision":"a","x":1}`, `{"action":"accept","content/x":1,"optionId":"a"}`},
		{permission, "accept", `"allow_once"`, `{"action":"accept","content":"allow_once"}`},
		{permission, "accept", ``, `{"action":"accept"}`},
		{permission, "accept", `{}`, `{"action":"accept"}`},
		{permission, "decline", `{}`, `{"action":"decline"}`},
		{permission, "decline", `{"decision":"allow_once"}`, `{"action":"decline","content":{"decision":"allow_once"}}`},
		{selection, "accept", `{"choice":"0"}`, `{"action":"accept","selectionIdx":0}`},
		{selection, "accept", `{"choice":"12"}`, `{"action":"accept","selectionIdx":12}`},
		{selection, "accept", `{"choice":0}`, `{"action":"accept","selectionIdx":"0"}`},
		{selection, "accept", `{"choice":"00"}`, `{"action":"accept","selectionIdx":"00"}`},
		{selection, "accept", `{"choice":"-1"}`, `{"action":"accept","selectionIdx":"-1"}`},
		{selection, "accept", `{"choice":"+1"}`, `{"action":"accept","selectionIdx":"+1"}`},
		{selection, "accept", `{"choice":null}`, `{"action":"accept","selectionIdx":""}`},
		{selection, "accept", `{"choice":["0"]}`, `{"action":"accept","selectionIdx":"[\"0\"]"}`},
		{selection, "accept", `{"selectionIdx":0}`, `{"action":"accept","content/selectionIdx":0}`},
		{form, "accept", `{"a":1}`, `{"action":"accept","content":{"a":1}}`},
		{form, "accept", `{}`, `{"action":"accept","content":{}}`},
		{form, "accept", ``, `{"action":"accept"}`},
		{form, "cancel", `{}`, `{"action":"cancel"}`},
		{form, "cancel", `{"a":1}`, `{"action":"cancel","content":{"a":1}}`},
		{url, "accept", ``, `{"action":"accept"}`},
		{url, "accept", `{}`, `{"action":"accept"}`},
		{url, "accept", `{"a":1}`, `{"action":"accept","content":{"a":1}}`},
	} {
		answer := elicit.Answer{Action: tc.action}
		if tc.content != "" {
			answer.Content = json.RawMessage(tc.content)
		}
		if got, err := answer.Payload(tc.kind); err != nil || string(got) != tc.want {
			t.Errorf("%s: %s %s is %s, %v, want %s", tc.kind, tc.action, tc.content, got, err, tc.want)
		}
		for _, action := range []string{"", "ACCEPT", "accept ", "reject", "yes"} {
			if got, err := (elicit.Answer{Action: action, Content: answer.Content}).Payload(tc.kind); !errors.Is(err, elicit.ErrAction) {
				t.Errorf("%s: %q is %s, %v", tc.kind, action, got, err)
			}
		}
	}
}

// R16: the reason names the field as the client's form does, and says nothing of the answer.
func TestReason(t *testing.T) {
	const private = "a-private-answer"
	permission := interrupt.ToolPermission("tool", "May it?")
	selection := interrupt.UserSelection(interrupt.UserChoice{Title: "a"}, interrupt.UserChoice{Title: "b"})
	form := interrupt.Form("?", []byte(`{"type":"object","properties":{"n":{"type":"integer","maximum":5},"d":{"type":"string","format":"date"}},"required":["d"]}`))
	for _, tc := range []struct {
		asked   interrupt.Interrupt
		payload string
		want    string // it begins so
	}{
		{permission, `{"optionId":"` + private + `"}`, "decision: "},
		{permission, `{"action":"accept"}`, "decision: "},
		{permission, `{"action":"accept","content/x":"` + private + `"}`, "unknown member"},
		{selection, `{"selectionIdx":7}`, "choice: "},
		{selection, `{"selectionIdx":"` + private + `"}`, "choice: "},
		{form, `{"action":"accept","content":{"d":"2026-07-28","n":6}}`, "n: "},
		{form, `{"action":"accept","content":{"d":"` + private + `"}}`, "d: "},
		{form, `{"action":"accept","content":{}}`, "d: "},
		{form, `{"action":"accept"}`, ""},
		{form, `{"action":"accept","content":{"d":"2026-07-28","d":"` + private + `"}}`, "d: "},
		{form, ``, "the answer is missing"},
	} {
		e := refused(t, tc.asked, tc.payload)
		reason := elicit.Reason(e)
		if !strings.HasPrefix(reason, tc.want) || len(reason) <= len(tc.want) && strings.HasSuffix(tc.want, " ") || strings.Contains(reason, private) {
			t.Errorf("%s: %q of %v, want %q", tc.payload, reason, e, tc.want)
		}
	}
	long := interrupt.Form("?", []byte(`{"type":"object","properties":{"`+strings.Repeat("n", 600)+`":{"type":"integer"}}}`))
	e := refused(t, long, `{"action":"accept","content":{"`+strings.Repeat("n", 600)+`":"x"}}`)
	if reason := elicit.Reason(e); len(reason) > elicit.MaxReason+len("…") {
		t.Errorf("a reason of %d bytes", len(reason))
	}
}

// refused is the error of a gate for an answer to that question; none at all where it is empty.
func refused(t *testing.T, asked interrupt.Interrupt, payload string) *gate.Error {
	t.Helper()
	second := interrupt.UserSelection(interrupt.UserChoice{Title: "a"}, interrupt.UserChoice{Title: "b"})
	tool := gate.NewTool("tool", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := interrupt.AskAll(ctx, asked, second)
		return "", err
	}, nil)
	g, err := gate.Open(t.Context(), memstore.New(), &gate.Options{Tools: []*gate.Tool{tool}, Keys: [][]byte{gate.NewKey()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(context.Background()) })
	call := gate.Call{Tool: "tool", Arguments: json.RawMessage(`{}`), Scope: "ann", Session: "s", Facilities: []interrupt.Facility{
		interrupt.FacilityPermission, interrupt.FacilitySelection, interrupt.FacilityForm, interrupt.FacilityURL,
	}}
	outcome, err := g.Invoke(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	call.Token = outcome.Prompt.Token
	call.Answers = gate.Answers{outcome.Prompt.Questions[1].ID: json.RawMessage(`{"selectionIdx":0}`)}
	if payload != "" {
		call.Answers[outcome.Prompt.Questions[0].ID] = json.RawMessage(payload)
	}
	_, err = g.Invoke(t.Context(), call)
	e, ok := errors.AsType[*gate.Error](err)
	if !ok || e.Code != gate.ErrInvalidAnswer {
		t.Fatalf("%s: %v, want it refused", payload, err)
	}
	return e
}
