package mcpbridge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R15, R16: what is no answer to the question is asked again with the same token, and nothing of it
// runs the tool: an accept without content is no consent, nor is a boolean.
func TestWhatIsNoConsent(t *testing.T) {
	var effects counter
	s := memSite(t, nil, deploy(&effects, nil))
	for _, wrapped := range []bool{true, false} {
		c := dialRaw(t, s, wrapped)
		key, state := c.asked("deploy", `{"service":"api"}`, "")
		for _, response := range []string{
			`{"action":"accept"}`,
			`{"action":"accept","content":null}`,
			`{"action":"accept","content":{}}`,
			`{"action":"accept","content":{"decision":true}}`,
			`{"action":"accept","content":{"decision":null}}`,
			`{"action":"accept","content":{"decision":"allow"}}`,
			`{"action":"accept","content":{"decision":"Allow once"}}`,
			`{"action":"accept","content":{"decision":["allow_once"]}}`,
			`{"action":"accept","content":{"optionId":"allow_once"}}`,
			`{"action":"accept","content":{"confirm":true}}`,
			`{"action":"accept","content":{"decision":"allow_once","interruptId":"x"}}`,
			`{"action":"accept","content":{"decision":"allow_once","action":"accept"}}`,
			`{"action":"decline","content":{"decision":"allow_once"}}`,
		} {
			again, token := c.asked("deploy", `{"service":"api"}`, responses(key, state, response))
			if again != key || token != state {
				t.Errorf("%s: asked again as %q with %q, was %q with %q", response, again, token, key, state)
			}
		}
		effects.want(t, 0)
		r := c.round("deploy", `{"service":"api"}`, responses(key, state, `{"action":"decline","content":{}}`))
		if !r.Result.IsError || !strings.Contains(string(r.Result.StructuredContent), `"declined"`) {
			t.Errorf("a decline with an empty object: %+v", r)
		}
	}
}

// R15: indices are those that were offered, to the letter.
func TestSelectionIsStrict(t *testing.T) {
	s := memSite(t, nil, rounds(1))
	c := dialRaw(t, s, true)
	key, state := c.asked("rounds", `{}`, "")
	for _, choice := range []string{`0`, `"00"`, `"+0"`, `" 0"`, `"2"`, `"-1"`, `"0.0"`, `"a"`, `""`, `null`, `[0]`, `"9999999999999999999"`} {
		c.asked("rounds", `{}`, responses(key, state, `{"action":"accept","content":{"choice":`+choice+`}}`))
	}
	r := c.round("rounds", `{}`, responses(key, state, `{"action":"accept","content":{"choice":"0"}}`))
	if len(r.Result.Content) != 1 || r.Result.Content[0].Text != "done" {
		t.Errorf("result %+v", r)
	}
}

// What two readers can take for different answers is refused, where its text is seen; the token
// stays good.
func TestAmbiguousAnswersAreRefused(t *testing.T) {
	var effects counter
	s := memSite(t, nil, deploy(&effects, nil))
	c := dialRaw(t, s, true)
	key, state := c.asked("deploy", `{"service":"api"}`, "")
	yes := `{"action":"accept","content":{"decision":"allow_once"}}`
	for name, more := range map[string]string{
		"action twice":       responses(key, state, `{"action":"decline","action":"accept","content":{"decision":"allow_once"}}`),
		"action in capitals": responses(key, state, `{"action":"decline","Action":"accept","content":{"decision":"allow_once"}}`),
		"content in capitals": responses(key, state,
			`{"action":"accept","content":{"decision":"reject_once"},"CONTENT":{"decision":"allow_once"}}`),
		"field twice":     responses(key, state, `{"action":"accept","content":{"decision":"reject_once","decision":"allow_once"}}`),
		"key twice":       `,"requestState":"` + state + `","inputResponses":{"` + key + `":{"action":"decline"},"` + key + `":` + yes + `}`,
		"responses twice": responses(key, state, `{"action":"decline"}`) + `,"inputResponses":{"` + key + `":` + yes + `}`,
		"state twice":     responses(key, state, yes) + `,"requestState":"` + state + `"`,
		"roots":           responses(key, state, `{"action":"accept","roots":[],"content":{"decision":"allow_once"}}`),
		"unknown action":  responses(key, state, `{"action":"YES","content":{"decision":"allow_once"}}`),
		"no action":       responses(key, state, `{"content":{"decision":"allow_once"}}`),
		"no object":       responses(key, state, `"accept"`),
		"not UTF-8":       responses(key, state, `{"action":"accept","content":{"decision":"`+"\xff"+`"}}`),
	} {
		r := c.round("deploy", `{"service":"api"}`, more)
		if r.Error == nil || r.Error.Code != jsonrpc.CodeInvalidParams || strings.Contains(string(r.Error.Data)+r.Error.Message, "allow_once") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	effects.want(t, 0)
	if r := c.round("deploy", `{"service":"api"}`, responses(key, state, yes)); r.Result.IsError || r.Error != nil {
		t.Errorf("the answer: %+v", r)
	}
	effects.want(t, 1)

	// Without the bridge's transport the SDK has read it before: what is left to see is refused.
	c = dialRaw(t, s, false)
	key, state = c.asked("deploy", `{"service":"api"}`, "")
	for _, response := range []string{`{"action":"accept","roots":[]}`, `{"action":"YES"}`} {
		if r := c.round("deploy", `{"service":"api"}`, responses(key, state, response)); r.Error == nil || r.Error.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: %+v", response, r)
		}
	}
}

const anyNumbers = `{"type":"object","properties":{"n":{"type":"number"},"i":{"type":"integer"}}}`

// Integers beyond 2^53 and decimals arrive as they were written, where the bridge's transport sees
// them; elsewhere a form is shown only where float64 loses nothing.
func TestNumbersAreExact(t *testing.T) {
	const numbers = `{"i":9007199254740993,"n":0.12345678901234567890123}`
	s := memSite(t, nil, form(anyNumbers))
	c := dialRaw(t, s, true)
	key, state := c.asked("form", `{}`, "")
	r := c.round("form", `{}`, responses(key, state, `{"action":"accept","content":`+numbers+`}`))
	if len(r.Result.Content) != 1 || r.Result.Content[0].Text != numbers {
		t.Errorf("result %+v", r)
	}
	if r := dialRaw(t, s, false).round("form", `{}`, ""); r.Error == nil || r.Error.Code != -32056 {
		t.Errorf("without the transport: %+v", r)
	}
	// In an older session the answer is a response of its own.
	old := dialRaw(t, s, true)
	old.initialize(legacy)
	old.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"form","arguments":{}}}`)
	old.read()
	old.send(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":` + numbers + `}}`)
	if text := old.read(); !strings.Contains(text, strings.ReplaceAll(numbers, `"`, `\"`)) {
		t.Errorf("result %s", text)
	}
}

// Which forms with numbers are shown where numbers are float64.
func TestNumbersAsFloat(t *testing.T) {
	for field, shown := range map[string]bool{
		`{"type":"number"}`:                                                                 false,
		`{"type":"integer"}`:                                                                false,
		`{"type":"number","minimum":0,"maximum":1}`:                                         false,
		`{"type":"integer","minimum":0}`:                                                    false,
		`{"type":"integer","minimum":0,"maximum":9007199254740992}`:                         false,
		`{"type":"integer","minimum":0,"maximum":9007199254740991}`:                         true,
		fmt.Sprintf(`{"type":"integer","minimum":%d,"maximum":9007199254740991}`, minInt53): true,
		fmt.Sprintf(`{"type":"integer","minimum":%d,"maximum":-1.5e2}`, minInt53-1):         false,
		`{"type":"integer","minimum":-1e300,"maximum":0}`:                                   false,
		`{"type":"integer","minimum":1.5,"maximum":9007199254740990.99999999999999999999}`:  true,
		`{"type":"integer","minimum":1.5,"maximum":9007199254740991.00000000000000000001}`:  false,
		`{"type":"string"}`: true,
	} {
		s := memSite(t, nil, form(`{"type":"object","properties":{"n":`+field+`}}`))
		r := dialRaw(t, s, false).round("form", `{}`, "")
		if got := r.Result.ResultType == "input_required"; got != shown || !got && (r.Error == nil || r.Error.Code != -32056) {
			t.Errorf("%s: shown is %v, want %v: %+v", field, got, shown, r)
		}
	}
}

// E1: a form does not ask for a secret.
func TestSecretsAreNotAskedFor(t *testing.T) {
	for name, refused := range map[string]bool{
		"password": true, "Password": true, "userPassword": true, "user_password": true, "API key": true, "apiKey": true, "APIKey": true,
		"github_token": true, "token": true, "client-secret": true, "cardNumber": true, "CVV": true, "pin": true,
		"token_count": false, "maxTokens": false, "secretary": false, "key": false, "pinned": false, "card": false, "shipping": false,
	} {
		for _, schema := range []string{
			fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"string"}}}`, name),
			fmt.Sprintf(`{"type":"object","properties":{"x":{"type":"string","title":%q}}}`, name),
		} {
			s := memSite(t, nil, form(schema))
			r := dialRaw(t, s, true).round("form", `{}`, "")
			if got := r.Error != nil && r.Error.Code == -32056; got != refused {
				t.Errorf("%s: refused is %v, want %v", schema, got, refused)
			}
		}
	}
	r := dialRaw(t, memSite(t, nil, form(`{"type":"object","properties":{"x":{"type":"string","format":"password"}}}`)), true).round("form", `{}`, "")
	if !strings.Contains(string(r.Result.StructuredContent), `"invalid_question"`) || !strings.Contains(string(r.Result.StructuredContent), "use a URL") {
		t.Errorf("a format for passwords: %s", r.Result.StructuredContent)
	}
}

// R18: a prompt with several questions is answered whole. One that was answered alone is asked
// again with the other.
func TestAnsweredWhole(t *testing.T) {
	s := memSite(t, nil, twoAtOnce())
	cs := connect(t, s, modern, &person{}, byHand)
	first := call(t, cs, "two_at_once", `{}`)
	if len(first.InputRequests) != 2 {
		t.Fatalf("asked %d", len(first.InputRequests))
	}
	var choice, why string
	for key := range first.InputRequests {
		if strings.Contains(key, ".user_selection.") {
			choice = key
		} else {
			why = key
		}
	}
	for _, answers := range []mcp.InputResponseMap{
		{choice: accept(`{"choice":"0"}`)},
		{choice: accept(`{"choice":"0"}`), why: accept(`{"why":"no"}`)},
		{"extra": accept(`{"choice":"0"}`)},
	} {
		again := send(t, cs, with("two_at_once", `{}`, first.RequestState, answers))
		if len(again.InputRequests) != 2 || again.RequestState != first.RequestState {
			t.Fatalf("%v: %+v", answers, again)
		}
		if m := again.InputRequests[why].(*mcp.ElicitParams).Message; !strings.Contains(m, "Not accepted") {
			t.Errorf("%v: message %q", answers, m)
		}
	}
	done := send(t, cs, with("two_at_once", `{}`, first.RequestState, mcp.InputResponseMap{
		choice: accept(`{"choice":"0"}`), why: accept(`{"why":"because"}`), "extra": accept(`{}`),
	}))
	wantText(t, done, `a {"why":"because"}`)
}

// R34: answers that are too large are asked again, as others that do not fit. Arguments that are end
// the call.
func TestTooLarge(t *testing.T) {
	const schema = `{"type":"object","properties":{"s":{"type":"string"}}}`
	large := `{"s":"` + strings.Repeat("x", 300<<10) + `"}`
	for _, version := range protocols {
		s := memSite(t, nil, form(schema))
		p := answering("accept:"+large, `accept:{"s":"y"}`)
		cs := connect(t, s, version, p)
		wantText(t, call(t, cs, "form", `{}`), `{"s":"y"}`)
		if m := p.messages(); len(m) != 2 || !strings.HasPrefix(m[1], "Not accepted: answers have ") {
			t.Errorf("messages %.200q", m)
		}
		wantEnding(t, call(t, cs, "form", `{"s":"`+strings.Repeat("x", 2<<20)+`"}`), gate.ErrTooLarge)
		p = answering("accept:"+large, "accept:"+large, "accept:"+large)
		if version != modern { // there the client gives up
			wantEnding(t, call(t, connect(t, s, version, p), "form", `{}`), gate.ErrTooLarge)
		}
	}
}

// R34, R27: a next question that is too large is how the call ended, and not the fault of the answer
// before it: nobody is asked again for that, and the handler does not run again.
func TestNextQuestionIsTooLarge(t *testing.T) {
	for _, version := range []string{modern, legacy} { // 2025-06-18 has no URLs
		for _, replay := range []gate.Replay{0, gate.Recover, gate.Repeatable} {
			var runs counter
			s := memSite(t, nil, raw("tool", func(ctx context.Context) (any, error) {
				runs.add()
				if _, err := interrupt.Ask(ctx, interrupt.URL("Connect", "https://example.com")); err != nil {
					return nil, err
				}
				_, err := interrupt.Ask(ctx, interrupt.URL(strings.Repeat("x", 2<<20), "https://example.com"))
				return nil, err
			}, &gate.ToolOptions{Replay: replay}))
			p := answering("accept", "accept")
			wantEnding(t, call(t, connect(t, s, version, p), "tool", `{}`), gate.ErrTooLarge)
			p.want(t, 1)
			runs.want(t, 2)
		}
	}
}

// Keys are unique over an interaction, also where the same is asked twice; a client that sends the
// answers of earlier rounds along does no harm.
func TestKeysAreUnique(t *testing.T) {
	s := memSite(t, nil, rounds(5))
	cs := connect(t, s, modern, &person{}, byHand)
	all := mcp.InputResponseMap{}
	r := call(t, cs, "rounds", `{}`)
	for range 5 {
		key, _ := only(t, r)
		if all[key] != nil {
			t.Errorf("key %q came twice", key)
		}
		all[key] = accept(`{"choice":"0"}`)
		r = send(t, cs, with("rounds", `{}`, r.RequestState, all))
	}
	wantText(t, r, "done")
}

// R17: a tool that keeps its question open answers a decline and a cancel with an error, and the
// token stays good.
func TestKeptOpen(t *testing.T) {
	var effects counter
	s := memSite(t, nil, deploy(&effects, &gate.ToolOptions{KeepOpen: true}))
	cs := connect(t, s, modern, &person{}, byHand)
	r := call(t, cs, "deploy", `{"service":"api"}`)
	key, _ := only(t, r)
	for _, no := range []struct {
		action string
		number int64
		code   gate.Code
	}{{"decline", -32052, gate.ErrDeclined}, {"cancel", -32053, gate.ErrCancelled}} {
		_, err := cs.CallTool(t.Context(), with("deploy", `{"service":"api"}`, r.RequestState,
			mcp.InputResponseMap{key: &mcp.ElicitResult{Action: no.action}}))
		wantError(t, err, no.number, no.code)
	}
	wantText(t, send(t, cs, with("deploy", `{"service":"api"}`, r.RequestState, mcp.InputResponseMap{key: accept(allow)})), "deployed api")
}
