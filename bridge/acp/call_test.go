package acpbridge_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/parley-go/parley/gate"
)

// R9, R25: a permission reaches the editor with all that it is about, after its tool call, and the
// tool runs once, when the person allowed it.
func TestPermission(t *testing.T) {
	var effects counter
	var result string
	g := memGate(t, deploy(&effects, &gate.ToolOptions{Mask: []string{"token"}}))
	e := connect(t, g, nil, caller(func(r string, err error) {
		if result = r; err != nil {
			t.Error(err)
		}
	}), plain)
	id := e.prompt(`deploy {"token":"hush","service":"api"}`)
	var before []message
	q := e.asked(permission, &before)
	if got := statuses("call-deploy", before); !slices.Equal(got, []string{"pending"}) {
		t.Errorf("before the question: %v", got)
	}
	var p struct {
		SessionID string `json:"sessionId"`
		ToolCall  struct {
			ToolCallID, Title, Kind, Status string
			RawInput                        json.RawMessage
		}
		Options []struct{ OptionID, Kind string }
	}
	if err := json.Unmarshal(q.Params, &p); err != nil {
		t.Fatal(err)
	}
	if c := p.ToolCall; c.ToolCallID != "call-deploy" || c.Title != "Deploy api to production" || c.Kind != "other" || c.Status != "pending" ||
		string(c.RawInput) != `{"service":"api","token":"[hidden]"}` {
		t.Errorf("tool call: %s", q.Params)
	}
	if o := p.Options; len(o) != 2 || o[0].OptionID != "allow_once" || o[1].OptionID != "reject_once" || o[0].Kind != o[0].OptionID {
		t.Errorf("options: %s", q.Params)
	}
	effects.want(t, 0)
	e.answer(q, selected("allow_once"))
	after := e.ends(id, "end_turn")
	if got := statuses("call-deploy", after); !slices.Equal(got, []string{"in_progress", "completed"}) {
		t.Errorf("after the answer: %v", got)
	}
	if result != `"deployed api"` {
		t.Errorf("result %s", result)
	}
	effects.want(t, 1)
	for _, m := range slices.Concat(before, after, []message{q}) {
		if strings.Contains(m.Text, "hush") {
			t.Errorf("a masked argument is on the wire: %s", m.Text)
		}
	}
}

// A rejection ends the call and not the turn.
func TestRejected(t *testing.T) {
	var effects counter
	var ended error
	e := connect(t, memGate(t, deploy(&effects, nil)), nil, caller(func(_ string, err error) { ended = err }), plain)
	id := e.prompt(`deploy {"service":"api"}`)
	e.answer(e.asked(permission), selected("reject_once"))
	after := e.ends(id, "end_turn")
	if got := statuses("call-deploy", after); !slices.Equal(got, []string{"failed"}) {
		t.Errorf("after the answer: %v", got)
	}
	if !errors.Is(ended, gate.ErrRejected) {
		t.Errorf("have %v", ended)
	}
	effects.want(t, 0)
}
