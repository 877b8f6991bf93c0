package acpbridge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/acp-go-sdk"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// recorded is the state of the only interaction of the gate.
func recorded(t *testing.T, g *gate.Gate) gate.Summary {
	t.Helper()
	all := []checkpoint.Status{checkpoint.Started, checkpoint.Open, checkpoint.Answered, checkpoint.Running, checkpoint.Finished, checkpoint.Failed,
		checkpoint.Expired}
	page, err := g.List(t.Context(), gate.ListQuery{Scope: "ann", Statuses: all})
	if err != nil || len(page.Interactions) != 1 {
		t.Fatalf("interactions: %v, %v", page.Interactions, err)
	}
	return page.Interactions[0]
}

// wantQuiet wants no update after the last response: what came until the agent answered once more.
func (e *editor) wantQuiet() {
	e.t.Helper()
	_, before := e.response(e.request("session/list", `{}`))
	for _, m := range before {
		if m.Method == "session/update" {
			e.t.Errorf("after the response: %s", m.Text)
		}
	}
}

// However the client cancels, the turn ends with cancelled, the question is recorded so, the tool
// is told with a cancelled context, and the request is withdrawn.
func TestCancel(t *testing.T) {
	for name, cancel := range map[string]func(e *editor, prompt string, q message) (response string){
		"session/cancel":   func(e *editor, _ string, _ message) string { e.write(cancelLine); return "" },
		"$/cancel_request": func(e *editor, id string, _ message) string { e.write(cancelRequestLine, id); return "" },
		"session/close":    func(e *editor, _ string, _ message) string { return e.request("session/close", `{"sessionId":"s1"}`) },
		"session/cancel as a request": func(e *editor, _ string, _ message) string {
			e.request("session/cancel", `{"sessionId":"s1"}`)
			return ""
		},
		"session/close as a notification": func(e *editor, _ string, _ message) string {
			e.write(`{"jsonrpc":"2.0","method":"session/close","params":{"sessionId":"s1"}}`)
			return ""
		},
		"the outcome": func(e *editor, _ string, q message) string { e.answer(q, cancelledOutcome); return "" },
		"an error for the outcome": func(e *editor, _ string, q message) string {
			e.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32800,"message":"Request cancelled"}}`, q.ID)
			return ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			var told []error
			tool := raw("tool", func(ctx context.Context) (any, error) {
				_, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "May it?"))
				told = append(told, ctx.Err())
				return nil, err
			}, nil)
			g := memGate(t, tool)
			var ended error
			e := connect(t, g, nil, caller(func(_ string, err error) { ended = err }), plain)
			id := e.prompt("tool")
			q := e.asked(permission)
			response := cancel(e, id, q)
			after := e.ends(id, "cancelled")
			if got := statuses("call-tool", after); !slices.Equal(got, []string{"failed"}) {
				t.Errorf("after the cancel: %v", got)
			}
			if !errors.Is(ended, gate.ErrCancelled) {
				t.Errorf("the call ended with %v", ended)
			}
			if len(told) != 2 || told[0] != nil || !errors.Is(told[1], context.Canceled) {
				t.Errorf("the tool's contexts ended with %v, want only the second, cancelled", told)
			}
			if s := recorded(t, g); s.Status != checkpoint.Finished || s.Code != gate.ErrCancelled {
				t.Errorf("recorded as %v, %v", s.Status, s.Code)
			}
			if response != "" {
				e.response(response)
			}
			e.wantQuiet()
		})
	}
}

const cancelRequestLine = `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%s}}`

// A cancel right behind its prompt counts, and one without a turn counts for nothing later.
func TestCancelBehindPrompt(t *testing.T) {
	var effects counter
	e := connect(t, memGate(t, deploy(&effects, nil)), nil, callsAnew(), plain)
	for i := range 200 {
		line, id := e.line("session/prompt", promptOf(fmt.Sprintf(`deploy {"service":"%d"}`, i)))
		e.write("%s\n%s", line, cancelLine)
		e.ends(id, "cancelled")
	}
	e.write(cancelLine)
	id := e.prompt(`deploy {"service":"api"}`)
	e.answer(e.asked(permission), selected("allow_once"))
	e.ends(id, "end_turn")
	effects.want(t, 1)
}

// The race of a cancel and an answer, in both orders of the wire: a cancel that came first lets
// nothing happen; after one that came second nothing happens any more.
func TestCancelAndAllow(t *testing.T) {
	const closeLine = `{"jsonrpc":"2.0","id":"close","method":"session/close","params":{"sessionId":"s1"}}`
	for name, order := range map[string]string{"cancel first": "%[1]s\n%[2]s", "allow first": "%[2]s\n%[1]s", "close first": "%[1]s\n%[2]s"} {
		t.Run(name, func(t *testing.T) {
			cancelLine, first := cancelLine, strings.HasSuffix(name, " first") && name != "allow first"
			if name == "close first" {
				cancelLine = closeLine
			}
			var effects counter
			for range 300 {
				g := memGate(t, deploy(&effects, nil))
				before := effects.count()
				e := connect(t, g, nil, caller(nil), plain)
				id := e.prompt(`deploy {"service":"api"}`)
				q := e.asked(permission)
				e.write(order, cancelLine, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, selected("allow_once")))
				m, _ := e.response(id)
				at := effects.count()
				e.wantQuiet()
				if effects.count() != at {
					t.Fatal("an effect after the response")
				}
				s := recorded(t, g)
				cancelled := strings.Contains(m.Text, `"stopReason":"cancelled"`)
				if !cancelled && (first || at == before) { // the turn can be over when the cancel is read
					t.Fatalf("the turn ends with %s, %d effects", m.Text, at-before)
				}
				switch {
				case first && (at != before || s.Code != gate.ErrCancelled):
					t.Fatalf("%d effects, recorded %v: the cancel came first", at-before, s.Code)
				case at > before && s.Code != "" || s.Status == checkpoint.Open || s.Status == checkpoint.Running:
					t.Fatalf("%d effects, recorded %v %v", at-before, s.Status, s.Code)
				}
			}
		})
	}
}

// Two prompts: the second is refused while the first goes on, whose question stays where it is, and
// waits while the first is being cancelled.
func TestTwoPrompts(t *testing.T) {
	var effects counter
	e := connect(t, memGate(t, deploy(&effects, nil)), nil, caller(nil), plain)
	first := e.prompt(`deploy {"service":"api"}`)
	q := e.asked(permission)
	m, _ := e.response(e.prompt(`deploy {"service":"web"}`))
	if m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("the second prompt: %s", m.Text)
	}
	e.answer(q, selected("allow_once"))
	e.ends(first, "end_turn")
	effects.want(t, 1)
}

// Of two prompts that come at once the first is the one that goes on.
func TestTwoPromptsAtOnce(t *testing.T) {
	var effects counter
	e := connect(t, memGate(t, deploy(&effects, nil)), nil, callsAnew(), plain)
	for i := range 100 {
		first, one := e.line("session/prompt", promptOf(fmt.Sprintf(`deploy {"service":"%d"}`, i)))
		second, two := e.line("session/prompt", promptOf(`deploy {"service":"second"}`))
		e.write("%s\n%s", first, second)
		m, before := e.response(two)
		if m.Error == nil || m.Error.Code != -32600 {
			t.Fatalf("the second prompt: %s", m.Text)
		}
		i := slices.IndexFunc(before, func(m message) bool { return m.Method == permission })
		if i < 0 {
			before = []message{e.asked(permission)}
			i = 0
		}
		e.answer(before[i], selected("allow_once"))
		e.ends(one, "end_turn")
	}
	effects.want(t, 100)
}

func TestPromptBehindCancel(t *testing.T) {
	var effects counter
	e := connect(t, memGate(t, deploy(&effects, nil)), nil, &anAgent{prompt: func(ctx context.Context, turn *acpbridge.Turn, text string) error {
		_, err := turn.CallTool(ctx, acpbridge.Call{ID: acp.ToolCallId("c-" + text), Tool: "deploy", Arguments: []byte(`{"service":"` + text + `"}`)})
		if turn.Cancelled() {
			return err
		}
		return nil
	}}, plain)
	first := e.prompt("api")
	e.asked(permission)
	line, second := e.line("session/prompt", promptOf("web"))
	e.write("%s\n%s", cancelLine, line)
	for _, m := range e.ends(first, "cancelled") {
		if m.Method == permission {
			t.Errorf("asked before the response of the turn before: %s", m.Text)
		}
	}
	q := e.asked(permission)
	if !strings.Contains(q.Text, "Deploy web") {
		t.Errorf("asked %s", q.Text)
	}
	e.answer(q, selected("allow_once"))
	e.ends(second, "end_turn")
	effects.want(t, 1)
}

// A store that tells when a record is loaded.
type watchedStore struct {
	checkpoint.Store
	loaded func()
}

func (s watchedStore) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Record, error) {
	s.loaded()
	return s.Store.Load(ctx, id)
}

// A question whose turn is cancelled right before it is sent is not sent: an editor that cancelled
// may have nothing to withdraw it with.
func TestCancelledBeforeAsked(t *testing.T) {
	var effects counter
	var e *editor
	cancel := sync.OnceFunc(func() {
		e.write(cancelLine)
		e.write("") // it is read when the line before was noticed
	})
	store := watchedStore{memstore.New(), func() { cancel() }}
	e = connect(t, openGate(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}}), nil, caller(nil), plain)
	for _, m := range e.ends(e.prompt(`deploy {"service":"api"}`), "cancelled") {
		if m.Method == permission {
			t.Errorf("asked after the cancel: %s", m.Text)
		}
	}
	effects.want(t, 0)
}
