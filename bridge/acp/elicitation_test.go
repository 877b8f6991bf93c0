package acpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/acp-go-sdk"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

const ticketSchema = `{"type":"object","properties":{
	"name":{"type":"string","minLength":2},
	"count":{"type":"integer","minimum":1,"maximum":9007199254740999},
	"price":{"type":"number"},
	"sure":{"type":"boolean"},
	"level":{"type":"string","enum":["lo","hi"],"enumNames":["Low","High"],"default":"lo"},
	"tags":{"type":"array","maxItems":2,"items":{"type":"string","enum":["a","b","c"]}}
},"required":["name","sure"]}`

// Each kind is an elicitation with its scope, where the client declares the mode; numbers are
// exact.
func TestElicitation(t *testing.T) {
	for _, tc := range []struct {
		tool   *gate.Tool
		params []string // parts of them
		answer string
		want   string
	}{
		{region(), []string{`"mode":"form"`, `"choice":{"type":"string","title":"Choice","oneOf":[{"const":"0","title":"south"},` +
			`{"const":"1","title":"north (recommended)"}]}`, `"required":["choice"]`, "2. north (recommended): cold"},
			`{"action":"accept","content":{"choice":"1"}}`, `"north"`},
		{form(ticketSchema), []string{`"mode":"form"`, `"type":"object"`, `"maximum":9007199254740999`,
			`"oneOf":[{"const":"lo","title":"Low"},{"const":"hi","title":"High"}],"default":"lo"`},
			`{"action":"accept","content":{"name":"Ann","sure":false,"count":9007199254740993,"price":0.1000000000000000055}}`,
			`{"count":9007199254740993,"name":"Ann","price":0.1000000000000000055,"sure":false}`},
		{page(), []string{`"mode":"url"`, `"url":"https://example.com/sign-in?id=1"`, `"elicitationId":"`}, `{"action":"accept"}`, `"went"`},
		{page(), nil, `{"action":"accept","content":{}}`, `"went"`},
		{page(), nil, `{"action":"accept","content":null,"_meta":{}}`, `"went"`},
	} {
		t.Run(tc.tool.Name(), func(t *testing.T) {
			var result string
			e := connect(t, memGate(t, tc.tool), nil, caller(func(r string, err error) {
				if result = r; err != nil {
					t.Error(err)
				}
			}), both)
			id := e.prompt(tc.tool.Name())
			q := e.asked(elicit)
			for _, part := range append(tc.params, `"sessionId":"s1"`, `"toolCallId":"call-`+tc.tool.Name()+`"`) {
				if !strings.Contains(string(q.Params), part) {
					t.Errorf("params %s\nhave not %s", q.Params, part)
				}
			}
			e.answer(q, tc.answer)
			e.ends(id, "end_turn")
			if result != tc.want {
				t.Errorf("result %s, want %s", result, tc.want)
			}
		})
	}
}

// R15–R17: what is no clear answer is asked again, a decline and a cancel are what they are.
func TestElicitationAnswers(t *testing.T) {
	const again = gate.Code("asked again")
	for _, tc := range []struct {
		tool   *gate.Tool
		answer string
		want   gate.Code
	}{
		{region(), `{}`, again},
		{region(), `null`, again},
		{region(), `{"action":null}`, again},
		{region(), `{"content":{"choice":"0"}}`, again},
		{region(), `{"action":"_custom","content":{"choice":"0"}}`, again},
		{region(), `{"action":"Accept","content":{"choice":"0"}}`, again},
		{region(), `{"Action":"accept","content":{"choice":"0"}}`, again},
		{region(), `{"action":"decline","Action":"accept","content":{"choice":"0"}}`, again},
		{region(), `{"action":"decline","action":"accept","content":{"choice":"0"}}`, again},
		{region(), `{"action":"accept"}`, again},
		{region(), `{"action":"accept","content":{}}`, again},
		{region(), `{"action":"accept","content":null}`, again},
		{region(), `{"action":"accept","content":{"choice":"2"}}`, again},
		{region(), `{"action":"accept","content":{"choice":0}}`, again},
		{region(), `{"action":"accept","content":{"choice":"0","choice":"1"}}`, again},
		{region(), `{"action":"accept","content":{"choice":"0","selectionIdx":1}}`, again},
		{region(), `{"action":"accept","content":[0]}`, again},
		{region(), `{"outcome":{"outcome":"selected","optionId":"0"}}`, again},
		{region(), `{"action":"decline"}`, gate.ErrDeclined},
		{region(), `{"action":"decline","content":{}}`, gate.ErrDeclined},
		{region(), `{"action":"cancel"}`, gate.ErrCancelled},
		{form(ticketSchema), `{"action":"accept","content":{"name":"Ann"}}`, again},
		{form(ticketSchema), `{"action":"accept","content":{"name":"A","sure":true}}`, again},
		{form(ticketSchema), `{"action":"accept","content":{"name":"Ann","sure":"yes"}}`, again},
		{form(ticketSchema), `{"action":"accept","content":{"name":"Ann","sure":true,"more":1}}`, again},
		{form(ticketSchema), `{"action":"accept","content":{"name":"Ann","sure":true,"count":9007199254741000}}`, again},
		{form(ticketSchema), `{"action":"decline","content":{"name":"Ann"}}`, again},
		{page(), `{"action":"accept","content":{"url":"https://example.org"}}`, again},
	} {
		t.Run(tc.answer, func(t *testing.T) {
			var ended error
			g := memGate(t, tc.tool)
			e := connect(t, g, nil, caller(func(_ string, err error) { ended = err }), both)
			id := e.prompt(tc.tool.Name())
			e.answer(e.asked(elicit), tc.answer)
			stop := "end_turn"
			switch tc.want {
			case again:
				q := e.asked(elicit)
				if !strings.Contains(string(q.Params), `"message":"Not accepted: `) {
					t.Errorf("the reason is not said: %s", q.Params)
				}
				e.answer(q, `{"action":"decline"}`)
				tc.want = gate.ErrDeclined
			case gate.ErrCancelled:
				stop = "cancelled"
			}
			if got := statuses("call-"+tc.tool.Name(), e.ends(id, stop)); !slices.Equal(got, []string{"failed"}) {
				t.Errorf("statuses %v", got)
			}
			if !errors.Is(ended, tc.want) {
				t.Errorf("ended with %v, want %s", ended, tc.want)
			}
		})
	}
}

// R13: what the client cannot show, or not as it is, is not asked and not stored.
func TestCannotAsk(t *testing.T) {
	formOnly, urlOnly := `{"elicitation":{"form":{}}}`, `{"elicitation":{"url":{}}}`
	for _, tc := range []struct {
		name         string
		tool         *gate.Tool
		capabilities string
		opts         acpbridge.Options
	}{
		{"a selection, without elicitation", region(), plain, acpbridge.Options{}},
		{"a selection, with an elicitation without modes", region(), `{"elicitation":{}}`, acpbridge.Options{}},
		{"a selection, with URLs only", region(), urlOnly, acpbridge.Options{}},
		{"a form, with URLs only", form(ticketSchema), urlOnly, acpbridge.Options{}},
		{"a URL, with forms only", page(), formOnly, acpbridge.Options{}},
		{"a form for a secret", form(`{"type":"object","properties":{"apiKey":{"type":"string"}}}`), both, acpbridge.Options{}},
		{"an integer beyond 64 bits", form(`{"type":"object","properties":{"n":{"type":"integer","maximum":9223372036854775808}}}`), both, acpbridge.Options{}},
		{"a question that is too large", form(ticketSchema), both, acpbridge.Options{MaxWire: 2000}},
		{"a question that is too large as the SDK writes it", form(`{"type":"object","properties":{"n":{"type":"string","description":"` +
			strings.Repeat("<", 2000) + `"}}}`), both, acpbridge.Options{MaxWire: 8000}},
		{"a form of several fields, as a permission", form(ticketSchema), plain, acpbridge.Options{Fallback: acpbridge.Fallbacks{Form: true}}},
		{"a form with one optional field, as a permission", form(`{"type":"object","properties":{"sure":{"type":"boolean"}}}`), plain,
			acpbridge.Options{Fallback: acpbridge.Fallbacks{Form: true}}},
		{"a form with one text, as a permission", form(`{"type":"object","properties":{"why":{"type":"string"}},"required":["why"]}`), plain,
			acpbridge.Options{Fallback: acpbridge.Fallbacks{Form: true}}},
		{"a form for a secret, as a permission", form(`{"type":"object","properties":{"pin":{"type":"string","enum":["1","2"]}},"required":["pin"]}`), plain,
			acpbridge.Options{Fallback: acpbridge.Fallbacks{Form: true}}},
		{"a URL, where only selections may be permissions", page(), plain, acpbridge.Options{Fallback: acpbridge.Fallbacks{Selection: true}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var ended error
			g := memGate(t, tc.tool)
			e := connect(t, g, &tc.opts, caller(func(_ string, err error) { ended = err }), tc.capabilities)
			got := e.ends(e.prompt(tc.tool.Name()), "end_turn")
			if !errors.Is(ended, gate.ErrConfirmationRequired) || !slices.Equal(statuses("call-"+tc.tool.Name(), got), []string{"pending", "failed"}) {
				t.Errorf("ended with %v, %v", ended, got)
			}
			if s := recorded(t, g); s.Status == checkpoint.Open || s.Prompt != nil {
				t.Errorf("recorded: %+v", s)
			}
		})
	}
}

// A client that refuses an elicitation of a mode that it declared is asked otherwise, where the host
// allows that, and else not at all. The question waits. Params that it does not take are of that
// question alone; a method that it does not know is of all that come after.
func TestRefusedElicitation(t *testing.T) {
	for _, number := range []int{-32601, -32602} {
		for _, fallback := range []bool{true, false} {
			var ended error
			opts := &acpbridge.Options{Fallback: acpbridge.Fallbacks{Selection: fallback}}
			e := connect(t, memGate(t, region(), page()), opts, caller(func(_ string, err error) { ended = err }), both)
			id := e.prompt("region")
			e.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"No"}}`, e.asked(elicit).ID, number)
			if fallback {
				e.answer(e.asked(permission), "{}")
				e.answer(e.asked(permission), selected("1")) // nor is it asked the refused way again
			}
			e.ends(id, "end_turn")
			if fallback != (ended == nil) || !fallback && !errors.Is(ended, gate.ErrConfirmationRequired) {
				t.Errorf("%d, fallback %v: ended with %v", number, fallback, ended)
			}
			id = e.prompt("page")
			if number == -32602 {
				e.answer(e.asked(elicit), `{"action":"accept"}`)
			}
			e.ends(id, "end_turn")
			if known := number == -32602; known != (ended == nil) || !known && !errors.Is(ended, gate.ErrConfirmationRequired) {
				t.Errorf("%d, another question: ended with %v", number, ended)
			}
		}
	}
}

// A question that stood in line when the client said that it does not know the method is not
// elicited any more.
func TestRefusedWhileInLine(t *testing.T) {
	g := memGate(t, region())
	agent := &anAgent{prompt: func(ctx context.Context, turn *acpbridge.Turn, _ string) error {
		var calls sync.WaitGroup
		for i := range 2 {
			calls.Go(func() {
				_, err := turn.CallTool(ctx, acpbridge.Call{ID: acp.ToolCallId(fmt.Sprint("call-", i)), Tool: "region"})
				if err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		return nil
	}}
	e := connect(t, g, &acpbridge.Options{Fallback: acpbridge.Fallbacks{Selection: true}}, agent, both)
	id := e.prompt("go")
	q := e.asked(elicit)
	waitFor(t, func() bool {
		page, err := g.List(t.Context(), gate.ListQuery{Scope: "ann", Statuses: []checkpoint.Status{checkpoint.Open}})
		return err == nil && len(page.Interactions) == 2
	})
	e.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"No"}}`, q.ID)
	for range 2 {
		e.answer(e.asked(permission), selected("1"))
	}
	e.ends(id, "end_turn")
}

// Where the host allows it, questions are asked as permissions, whose answers are what they say,
// and the handler can find out.
func TestFallback(t *testing.T) {
	opts := &acpbridge.Options{Fallback: acpbridge.Fallbacks{Selection: true, Form: true, URL: true}}
	told := func(tool string, q interrupt.Interrupt, result func(q interrupt.Interrupt) any) *gate.Tool {
		return asks(tool, q, func(ctx context.Context, q interrupt.Interrupt) any {
			return map[string]any{"is": result(q), "fallback": acpbridge.AskedAsFallback(ctx)}
		})
	}
	sure := `{"type":"object","properties":{"sure":{"type":"boolean","title":"Sure?"}},"required":["sure"]}`
	level := `{"type":"object","properties":{"level":{"type":"string","oneOf":[{"const":"lo","title":"Low"},{"const":"hi","title":"High"}]}},"required":["level"]}`
	content := func(q interrupt.Interrupt) any { return q.(*interrupt.FormInterrupt).Content }
	for _, tc := range []struct {
		tool   *gate.Tool
		parts  []string
		option string
		want   string
	}{
		{told("region", choice(), func(q interrupt.Interrupt) any { return q.(*interrupt.UserSelectionInterrupt).ConfirmedChoice.Title }),
			[]string{`"options":[{"kind":"allow_once","name":"north (recommended)","optionId":"1"},{"kind":"allow_once","name":"south","optionId":"0"},` +
				`{"kind":"reject_once","name":"Skip","optionId":"decline"}]`, `1. south\n2. north (recommended): cold`, `"kind":"other"`}, "0", `"south"`},
		{told("form", interrupt.Form("Please", json.RawMessage(sure)), content), []string{`Sure?`, `"name":"Yes"`}, "1", `{"sure":false}`},
		{told("form", interrupt.Form("Please", json.RawMessage(level)), content), []string{`"name":"Low"`}, "1", `{"level":"hi"}`},
		{told("page", interrupt.URL("Sign in", "https://example.com/in"), func(interrupt.Interrupt) any { return 1 }),
			[]string{`https://example.com/in`, `"kind":"fetch"`}, "open", `1`},
	} {
		t.Run(tc.tool.Name(), func(t *testing.T) {
			var result string
			var ended error
			agent := caller(func(r string, err error) { result, ended = r, err })
			e := connect(t, memGate(t, tc.tool), opts, agent, plain)
			id := e.prompt(tc.tool.Name())
			q := e.asked(permission)
			for _, part := range tc.parts {
				if !strings.Contains(string(q.Params), part) {
					t.Errorf("params %s\nhave not %s", q.Params, part)
				}
			}
			e.answer(q, selected(tc.option))
			e.ends(id, "end_turn")
			if want := `{"fallback":true,"is":` + tc.want + `}`; result != want {
				t.Errorf("result %s, want %s", result, want)
			}
			// The same with no for an answer.
			e = connect(t, memGate(t, tc.tool), opts, agent, plain)
			id = e.prompt(tc.tool.Name())
			e.answer(e.asked(permission), selected("decline"))
			e.ends(id, "end_turn")
			if !errors.Is(ended, gate.ErrDeclined) {
				t.Errorf("skipped: %v", ended)
			}
		})
	}
	t.Run("not where the client can", func(t *testing.T) {
		tool := told("page", interrupt.URL("Sign in", "https://example.com/in"), func(interrupt.Interrupt) any { return 1 })
		var result string
		e := connect(t, memGate(t, tool), opts, caller(func(r string, _ error) { result = r }), both)
		id := e.prompt("page")
		e.answer(e.asked(elicit), `{"action":"accept"}`)
		e.ends(id, "end_turn")
		if result != `{"fallback":false,"is":1}` {
			t.Errorf("result %s", result)
		}
	})
}
