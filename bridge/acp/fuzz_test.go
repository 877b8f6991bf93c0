package acpbridge_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// fuzzed is an editor whose agent has asked for a permission, in the turn with that id.
func fuzzed(t *testing.T, effects *counter) (e *editor, id string, q message) {
	opts := gate.Options{Tools: []*gate.Tool{deploy(effects, nil)}, Keys: [][]byte{testKey}, Logger: slog.New(slog.DiscardHandler)}
	e = connect(t, openGate(t, memstore.New(), opts), &acpbridge.Options{Logger: slog.New(slog.DiscardHandler)}, caller(nil), plain)
	id = e.prompt(`deploy {"service":"api"}`)
	return e, id, e.asked(permission)
}

// FuzzOutcome: whatever the client sends as the outcome, what was asked for happens only where it
// is an object that says selected and the option's id, each once.
func FuzzOutcome(f *testing.F) {
	for _, seed := range []string{
		selected("allow_once"), selected("reject_once"), cancelledOutcome, `{}`, `null`, `{"outcome":null}`,
		`{"outcome":{"outcome":"selected","optionId":"allow_once","optionID":"reject_once"}}`,
		`{"outcome":{"outcome":"cancelled","outcome":"selected","optionId":"allow_once"}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, result string) {
		if !json.Valid([]byte(result)) || strings.ContainsAny(result, "\r\n") || len(result) > 4096 {
			t.Skip("it is no message, and the client would wait for ever")
		}
		var effects counter
		e, id, q := fuzzed(t, &effects)
		for q.Method == permission {
			e.answer(q, result)
			for q = e.next(); q.Method == "session/update"; q = e.next() {
			}
		}
		if string(q.ID) != id {
			t.Fatalf("the turn has no response: %s", q.Text)
		}
		if effects.count() > 0 && (strings.Count(result, `optionId`) != 1 || strings.Count(result, `"selected"`) != 1 || !exactly(result)) {
			t.Errorf("%s was taken for an allowance", result)
		}
	})
}

// exactly reads an outcome as encoding/json does, names aside, which it takes in any case.
func exactly(result string) bool {
	var r map[string]map[string]any
	var loose map[string]any
	if json.Unmarshal([]byte(result), &loose) != nil {
		return false
	}
	outcome, _ := json.Marshal(map[string]any{"outcome": loose["outcome"]})
	return json.Unmarshal(outcome, &r) == nil && r["outcome"]["outcome"] == "selected" && r["outcome"]["optionId"] == "allow_once"
}

// FuzzLine: whatever a client writes, the agent still answers, and a question that is open is
// neither answered nor lost, unless it was cancelled.
func FuzzLine(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `nonsense`, cancelLine, `{"jsonrpc":"2.0","id":1,"method":"session/prompt"}`,
		`{"jsonrpc":"2.0","id":{},"method":"session/prompt","params":{"sessionId":"s1","prompt":[]}}`,
		`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"s2","prompt":[{"type":"text","text":"deploy"}],"_meta":{"a":1}}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":null}}`,
		`{"jsonrpc":"2.0","method":"session\/cancel","params":{"sessionId":"s1"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.ContainsAny(line, "\r\n") || len(line) > 4096 || bytes.Contains(line, []byte("result")) {
			t.Skip("it is not one line, or an answer")
		}
		var effects counter
		e, _, _ := fuzzed(t, &effects)
		if _, err := io.WriteString(e.out, string(line)+"\n"); err != nil {
			t.Fatal(err)
		}
		e.response(e.request("session/list", `{}`))
		effects.want(t, 0)
	})
}
