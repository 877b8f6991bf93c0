package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

const ticketSchema = `{"type":"object","properties":{
	"summary":{"type":"string","minLength":3},
	"count":{"type":"integer","minimum":1,"maximum":9007199254740993},
	"urgent":{"type":"boolean","default":true}
},"required":["summary"]}`

// ask makes a tool that asks one question and returns the verified payload, without its question's
// id.
func asks(name string, question func() interrupt.Interrupt, opts *gate.ToolOptions) *gate.Tool {
	return raw(name, func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, question()); err != nil {
			return nil, err
		}
		r, _ := interrupt.ResumeFrom(ctx)
		var payload map[string]json.RawMessage
		if err := json.Unmarshal(r.Answers[0].Payload, &payload); err != nil {
			return nil, err
		}
		delete(payload, "interruptId")
		return payload, nil
	}, opts)
}

// R15: an answer is checked against its question strictly. R16: an invalid one changes nothing, and
// the error names the field.
func TestAnswersAreChecked(t *testing.T) {
	g := openMem(t,
		asks("permission", func() interrupt.Interrupt { return interrupt.ToolPermission("x", "") }, nil),
		asks("selection", func() interrupt.Interrupt { return choose("a", "b") }, nil),
		asks("form", func() interrupt.Interrupt { return interrupt.Form("Ticket", json.RawMessage(ticketSchema)) }, nil),
		asks("url", func() interrupt.Interrupt { return interrupt.URL("Sign in", "https://example.com/login") }, nil))
	for _, test := range []struct {
		tool    string
		valid   string
		result  string
		invalid map[string]string // payload → what the message names
	}{
		{"permission", allow, `{"action":"accept","optionId":"allow_once"}`, map[string]string{
			`{}`:                              "/optionId",
			`{"optionId":"maybe"}`:            "/optionId",
			`{"optionId":1}`:                  "/optionId",
			`{"optionId":"allow_once","x":1}`: "/x",
			`{"optionId":"allow_once","optionId":"other"}`:   "/optionId",
			`{"optionId":"allow_once","action":"yes"}`:       "/action",
			`{"optionId":"allow_once","action":"decline"}`:   "decline",
			`{"optionId":"allow_once","interruptId":"else"}`: "/interruptId",
			`{"optionId":"allow_once","Action":"decline"}`:   "/Action",
			`null`:                        "object",
			`[]`:                          "object",
			`true`:                        "object",
			``:                            "",
			`{"optionId":"allow_once"`:    "",
			`{"optionId":"allow_once"} 1`: "",
		}},
		{"selection", `{"selectionIdx":1}`, `{"action":"accept","selectionIdx":1}`, map[string]string{
			`{}`:                       "/selectionIdx",
			`{"selectionIdx":2}`:       "/selectionIdx",
			`{"selectionIdx":-1}`:      "/selectionIdx",
			`{"selectionIdx":"1"}`:     "/selectionIdx",
			`{"selectionIdx":0.5}`:     "/selectionIdx",
			`{"selectionIdx":true}`:    "/selectionIdx",
			`{"selectionIdx":null}`:    "/selectionIdx",
			`{"selectionIdx":1e300}`:   "/selectionIdx",
			`{"selectionIdx":1,"a":0}`: "/a",
		}},
		{"form", `{"content":{"summary":"abc","count":9007199254740993}}`,
			`{"action":"accept","content":{"count":9007199254740993,"summary":"abc"}}`, map[string]string{
				`{}`:                           "/content",
				`{"content":null}`:             "/content",
				`{"content":[]}`:               "/content",
				`{"content":{}}`:               "summary",
				`{"content":{"summary":"ab"}}`: "summary",
				`{"content":{"summary":1}}`:    "summary",
				`{"content":{"summary":null}}`: "summary",
				`{"content":{"summary":"abc","count":9007199254740994}}`: "count",
				`{"content":{"summary":"abc","count":"1"}}`:              "count",
				`{"content":{"summary":"abc","count":1.5}}`:              "count",
				`{"content":{"summary":"abc","count":0}}`:                "count",
				`{"content":{"summary":"abc","urgent":"true"}}`:          "urgent",
				`{"content":{"summary":"abc","urgent":1}}`:               "urgent",
				`{"content":{"summary":"abc","other":1}}`:                "other",
				`{"content":{"summary":"abc","summary":"def"}}`:          "summary",
				`{"action":"decline","content":{"summary":"abc"}}`:       "decline",
				`{"action":"cancel","content":{}}`:                       "cancel",
			}},
		{"url", `{}`, `{"action":"accept"}`, map[string]string{
			`{"content":{}}`:                 "/content",
			`{"action":"open"}`:              "/action",
			`{"url":"https://evil.example"}`: "/url",
		}},
	} {
		c := call(test.tool, `{}`)
		p := mustAsk(t, g, c)
		for payload, names := range test.invalid {
			e := mustFail(t, g, with(c, p, payload), gate.ErrInvalidAnswer)
			if !strings.Contains(e.Message, names) || !strings.Contains(e.Message, p.Questions[0].ID) {
				t.Errorf("%s %s: the error names neither %q nor the question: %v", test.tool, payload, names, e)
			}
			if !e.StillOpen || e.Question != p.Questions[0].ID || strings.HasPrefix(names, "/") && e.Path != names {
				t.Errorf("%s %s: %+v", test.tool, payload, e)
			}
			if !errors.Is(e, interrupt.ErrInvalidPayload) {
				t.Errorf("%s %s: the error is no ErrInvalidPayload", test.tool, payload)
			}
		}
		mustFinish(t, g, with(c, p, test.valid), test.result) // R16: the question stayed open, the token good
	}
}

// R16: that a question is still open is told where it is, and nowhere else.
func TestStillOpen(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	if e := mustFail(t, g, with(c, p, `{}`), gate.ErrInvalidAnswer); !e.StillOpen {
		t.Error("the question is open, and that is not told")
	}
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
	if e := mustFail(t, g, with(c, p, `{}`), gate.ErrInvalidAnswer); e.StillOpen {
		t.Error("the question is answered, and told to be open")
	}
}

// R15: accepting with false stays accepting, and a default is never inserted.
func TestNoAutomaticConfirmation(t *testing.T) {
	g := openMem(t, asks("form", func() interrupt.Interrupt { return interrupt.Form("Ticket", json.RawMessage(ticketSchema)) }, nil))
	c := call("form", `{}`)
	mustFinish(t, g, with(c, mustAsk(t, g, c), `{"content":{"summary":"abc","urgent":false}}`),
		`{"action":"accept","content":{"summary":"abc","urgent":false}}`)
	mustFinish(t, g, with(c, mustAsk(t, g, c), `{"content":{"summary":"abc"}}`), `{"action":"accept","content":{"summary":"abc"}}`)
}

// R15, R26: two ways to write the same answer are the same answer.
func TestSameAnswerWrittenOtherwise(t *testing.T) {
	g := openMem(t, asks("form", func() interrupt.Interrupt { return interrupt.Form("Ticket", json.RawMessage(ticketSchema)) }, &gate.ToolOptions{KeepResult: true}))
	c := call("form", `{}`)
	p := mustAsk(t, g, c)
	want := `{"action":"accept","content":{"count":10,"summary":"abc"}}`
	mustFinish(t, g, with(c, p, `{"content":{"summary":"abc","count":10}}`), want)
	mustFinish(t, g, with(c, p, `{"interruptId":"`+p.Questions[0].ID+`","action":"accept","content":{"count":1e1,"summary":"\u0061bc"}}`), want)
	mustFail(t, g, with(c, p, `{"content":{"summary":"abc","count":11}}`), gate.ErrAnswerConflict)
}

// R17: a tool can keep its question open: nothing is recorded, the token stays good. Decline and
// cancel stay different.
func TestKeepOpen(t *testing.T) {
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{
		asks("tool", func() interrupt.Interrupt { return interrupt.ToolPermission("x", "") }, &gate.ToolOptions{KeepOpen: true}),
	}})
	c := call("tool", `{}`)
	p := mustAsk(t, g, c)
	before, _ := store.counts()
	mustFail(t, g, with(c, p, `{"action":"decline"}`), gate.ErrDeclined)
	mustFail(t, g, with(c, p, `{"action":"cancel"}`), gate.ErrCancelled)
	err := g.Answer(t.Context(), gate.AnswerRequest{
		Interaction: p.Interaction, Round: 1, Scope: "ann", Answers: gate.Answers{p.Questions[0].ID: interrupt.Decline("")},
	})
	wantCode(t, "decline by another road", err, gate.ErrDeclined)
	if after, _ := store.counts(); after != before {
		t.Error("something was recorded")
	}
	c.Token = p.Token
	if again := mustAsk(t, g, c); again.Token != p.Token {
		t.Error("the token changed")
	}
	mustFinish(t, g, with(call("tool", `{}`), p, allow), `{"action":"accept","optionId":"allow_once"}`)
}

// R18: a prompt with several questions is answered whole or not at all; what is missing is named.
func TestPromptIsAnsweredWhole(t *testing.T) {
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		_, err := interrupt.AskAll(ctx, choose("a", "b"), choose("c", "d"))
		return "done", err
	}, nil))
	c := call("tool", `{}`)
	p := mustAsk(t, g, c)
	idx := `{"selectionIdx":0}`
	e := mustFail(t, g, with(c, p, idx), gate.ErrInvalidAnswer)
	if !strings.Contains(e.Message, p.Questions[1].ID) {
		t.Errorf("the missing question is not named: %v", e)
	}
	mustFail(t, g, with(c, p, idx, `{"selectionIdx":5}`), gate.ErrInvalidAnswer)
	extra := with(c, p, idx, idx)
	extra.Answers["another"] = json.RawMessage(idx)
	mustFail(t, g, extra, gate.ErrInvalidAnswer)
	list, err := g.List(t.Context(), gate.ListQuery{Scope: "ann"})
	if err != nil || len(list.Interactions) != 1 || list.Interactions[0].Status != checkpoint.Open {
		t.Fatalf("after bad answers: %+v, %v", list, err)
	}
	mustFinish(t, g, with(c, p, idx, idx), `"done"`)
}
