package acpbridge_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/coder/acp-go-sdk"

	acpbridge "github.com/parley-go/parley/bridge/acp"
)

// What is no message changes nothing, and its text, which a person may have typed, is not logged.
func TestNoMessage(t *testing.T) {
	var log safeLog
	var effects counter
	opts := &acpbridge.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	e := connect(t, memGate(t, deploy(&effects, nil)), opts, caller(nil), plain)
	id := e.prompt(`deploy {"service":"api"}`)
	q := e.asked(permission)
	for _, line := range []string{
		"hunter2", "", "{}", "[]", "null", `"hunter2"`, `{"hunter2":`, `[{"jsonrpc":"2.0","id":1,"method":"session/list"}]`, "\xff\xfe", "\x00",
		`{"jsonrpc":5,"id":1,"result":{"hunter2":1}}`, `{"jsonrpc":"2.0","id":1,"error":"hunter2"}`, `{"jsonrpc":"2.0","result":"hunter2"}`,
		`{"jsonrpc":"2.0","id":null,"result":"hunter2"}`, strings.Repeat("{", 20000),
	} {
		e.write("%s", line)
	}
	e.answer(q, selected("allow_once"))
	e.ends(id, "end_turn")
	effects.want(t, 1)
	if text := log.String(); strings.Contains(text, "hunter2") || strings.Count(text, "no message") != 14 {
		t.Errorf("logged: %s", text)
	}
}

// A prompt that the SDK does not take for one is no turn: nobody waits for its end.
func TestNoPrompt(t *testing.T) {
	e := connect(t, memGate(t), nil, caller(nil), plain)
	for _, format := range []string{
		`{"jsonrpc":5,"id":1,"method":"session/prompt","params":%s}`, `{"jsonrpc":"2.0","id":null,"method":"session/prompt","params":%s}`,
		`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":%s,"error":"none"}`, `{"jsonrpc":"2.0","method":"session/prompt","params":%s}`,
	} {
		e.write(format, promptOf("deploy {}"))
	}
	e.response(e.request("session/close", `{"sessionId":"s1"}`))
}

// A prompt is handed on as long as it was, and of two names that the SDK takes for one the turn and
// the agent know the same.
func TestPromptHandedOn(t *testing.T) {
	var text, ofTurn, ofAgent string
	agent := &sessionsAgent{anAgent: anAgent{prompt: func(_ context.Context, turn *acpbridge.Turn, said string) error {
		text, ofTurn = said, string(turn.Session())
		return nil
	}}, seen: &ofAgent}
	e := connect(t, memGate(t), nil, agent, plain)
	page := strings.Repeat("<&>", 1<<20)
	e.ends(e.request("session/prompt", `{"sessionId":"s1","prompt":[{"type":"text","text":"`+page+`"}]}`), "end_turn")
	if text != page {
		t.Errorf("a page of %d bytes is one of %d", len(page), len(text))
	}
	for _, names := range []string{`"sessionId":"s1","SESSIONID":"s2"`, `"SESSIONID":"s1","sessionId":"s2"`, `"sessionId":"s1","sessionId":"s2"`} {
		e.ends(e.request("session/prompt", fmt.Sprintf(`{%s,"prompt":[{"type":"text","text":"x"}]}`, names)), "end_turn")
		if ofTurn != ofAgent {
			t.Errorf("%s: the turn is of session %s, the prompt of %s", names, ofTurn, ofAgent)
		}
	}
}

type safeLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

type sessionsAgent struct {
	anAgent
	seen *string
}

func (a *sessionsAgent) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	*a.seen = string(p.SessionId)
	return a.anAgent.Prompt(ctx, p)
}
