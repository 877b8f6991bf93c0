package acpbridge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R15, R16: what is no outcome is none. It is asked again, then the call fails, and the question is
// as it was.
func TestNoOutcome(t *testing.T) {
	for name, result := range map[string]string{
		"an option that was not offered":   selected("allow_always"),
		"no option":                        `{"outcome":{"outcome":"selected"}}`,
		"an empty option":                  selected(""),
		"an option that is no string":      `{"outcome":{"outcome":"selected","optionId":1}}`,
		"the option twice":                 `{"outcome":{"outcome":"selected","optionId":"reject_once","optionId":"allow_once"}}`,
		"the option in two cases":          `{"outcome":{"outcome":"selected","optionId":"allow_once","optionID":"reject_once"}}`,
		"the outcome twice":                `{"outcome":{"outcome":"cancelled"},"outcome":{"outcome":"selected","optionId":"allow_once"}}`,
		"an unknown outcome":               `{"outcome":{"outcome":"weird","optionId":"allow_once"}}`,
		"an outcome without a name":        `{"outcome":{}}`,
		"an outcome that is null":          `{"outcome":null}`,
		"an outcome that is a string":      `{"outcome":"selected","optionId":"allow_once"}`,
		"nothing":                          `{}`,
		"null":                             `null`,
		"a list":                           `[]`,
		"a string":                         `"allow_once"`,
		"an option's name for its id":      selected("Allow once"),
		"an elicitation's answer":          `{"action":"accept","content":{"decision":"allow_once"}}`,
		"a selection beside the cancelled": `{"outcome":{"outcome":["selected"],"optionId":"allow_once"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			var ended error
			g := memGate(t, deploy(&effects, nil))
			e := connect(t, g, nil, caller(func(_ string, err error) { ended = err }), plain)
			id := e.prompt(`deploy {"service":"api"}`)
			for i := range 3 {
				q := e.asked(permission)
				if again := strings.Contains(q.Text, "Not accepted: "); again != (i > 0) {
					t.Errorf("question %d: %s", i, q.Text)
				}
				e.answer(q, result)
			}
			if got := statuses("call-deploy", e.ends(id, "end_turn")); !slices.Equal(got, []string{"failed"}) {
				t.Errorf("statuses %v", got)
			}
			if !errors.Is(ended, gate.ErrInvalidAnswer) {
				t.Errorf("ended with %v", ended)
			}
			effects.want(t, 0)
			if s := recorded(t, g); s.Status != checkpoint.Open {
				t.Errorf("recorded as %v", s.Status)
			}
		})
	}
}

// R15, R16: a response that can be read in two ways is no answer, whatever the ways are. It is asked
// again, and the answer to that counts.
func TestTwoWays(t *testing.T) {
	page := page()
	for name, form := range map[string]string{
		"the result twice":                   `{"jsonrpc":"2.0","id":%[1]s,"result":%[2]s,"result":%[3]s}`,
		"the result in two cases":            `{"jsonrpc":"2.0","id":%[1]s,"result":%[2]s,"Result":%[3]s}`,
		"the result in two cases, the other": `{"jsonrpc":"2.0","id":%[1]s,"RESULT":%[2]s,"result":%[3]s}`,
		"the result in another case":         `{"jsonrpc":"2.0","id":%[1]s,"Result":%[3]s}`,
		"the id twice":                       `{"jsonrpc":"2.0","id":999,"id":%[1]s,"result":%[3]s}`,
		"the id in another case":             `{"jsonrpc":"2.0","Id":%[1]s,"result":%[3]s}`,
		"a result and an error":              `{"jsonrpc":"2.0","id":%[1]s,"error":{"code":-32603,"message":"no"},"result":%[3]s}`,
		"a result and an error, in a case":   `{"jsonrpc":"2.0","id":%[1]s,"Error":{"code":-32603,"message":"no"},"result":%[3]s}`,
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			e := connect(t, memGate(t, deploy(&effects, nil), page), nil, caller(nil), both)
			for _, round := range []struct{ prompt, method, no, yes string }{
				{`deploy {"service":"api"}`, permission, selected("reject_once"), selected("allow_once")},
				{page.Name(), elicit, `{"action":"decline"}`, `{"action":"accept"}`},
			} {
				id := e.prompt(round.prompt)
				e.write(form, e.asked(round.method).ID, round.no, round.yes)
				e.answer(e.asked(round.method), round.no)
				if got := statuses("call-"+strings.Fields(round.prompt)[0], e.ends(id, "end_turn")); !slices.Equal(got, []string{"failed"}) {
					t.Errorf("%s: statuses %v", round.prompt, got)
				}
			}
			effects.want(t, 0)
		})
	}
	// An error that is null is none: some clients write every member.
	var effects counter
	e := connect(t, memGate(t, deploy(&effects, nil)), nil, caller(nil), plain)
	id := e.prompt(`deploy {"service":"api"}`)
	e.write(`{"jsonrpc":"2.0","id":%s,"error":null,"result":%s}`, e.asked(permission).ID, selected("allow_once"))
	e.ends(id, "end_turn")
	effects.want(t, 1)
}

// An answer that comes after one that was none counts.
func TestAnsweredAgain(t *testing.T) {
	var effects counter
	e := connect(t, memGate(t, deploy(&effects, nil)), nil, caller(nil), plain)
	id := e.prompt(`deploy {"service":"api"}`)
	e.answer(e.asked(permission), selected(""))
	e.answer(e.asked(permission), `{"_meta":{"by":"x"},"outcome":{"outcome":"selected","optionId":"allow_once","_meta":{}}}`)
	e.ends(id, "end_turn")
	effects.want(t, 1)
}

// A client that fails brings no answer of anybody's, and the question waits.
func TestClientFails(t *testing.T) {
	for _, number := range []int{-32601, -32602, -32603, -32000, 0, 7} {
		var effects counter
		var ended error
		g := memGate(t, deploy(&effects, nil))
		e := connect(t, g, nil, caller(func(_ string, err error) { ended = err }), plain)
		id := e.prompt(`deploy {"service":"api"}`)
		e.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"my password is hunter2"}}`, e.asked(permission).ID, number)
		after := e.ends(id, "end_turn")
		if !errors.Is(ended, gate.ErrConfirmationRequired) {
			t.Errorf("%d: ended with %v", number, ended)
		}
		if s := recorded(t, g); s.Status != checkpoint.Open {
			t.Errorf("%d: recorded as %v", number, s.Status)
		}
		if text := fmt.Sprint(after); strings.Contains(text, "hunter2") {
			t.Errorf("%d: %s", number, text)
		}
		effects.want(t, 0)
	}
}

// R19: the always kinds are offered where decisions are remembered, with what they are for, in an
// order in which the first of a kind lasts the least; and they are remembered.
func TestAlways(t *testing.T) {
	var effects counter
	e := connect(t, memGate(t, deploy(&effects, &gate.ToolOptions{Remember: &gate.RememberOptions{Lifetime: time.Hour}})), nil, callsAnew(), plain)
	id := e.prompt(`deploy {"service":"api"}`)
	q := e.asked(permission)
	at := -1
	for _, kind := range []string{`"allow_once"`, `"allow_always"`, `"reject_once"`, `"reject_always"`} {
		i := strings.Index(q.Text, `"optionId":`+kind)
		if i <= at {
			t.Fatalf("%s is not in its place: %s", kind, q.Text)
		}
		at = i
	}
	if !strings.Contains(q.Text, "(with exactly these arguments, for 1 hour)") {
		t.Errorf("what is remembered is not said: %s", q.Text)
	}
	e.answer(q, selected("allow_always"))
	e.ends(id, "end_turn")
	for _, m := range e.ends(e.prompt(`deploy {"service":"api"}`), "end_turn") {
		if m.Method == permission {
			t.Error("asked again")
		}
	}
	effects.want(t, 2)
}

// R19: where only remembering is refused, the person is asked again, and may allow it for this
// once.
func TestNotRemembered(t *testing.T) {
	var effects counter
	g := openGate(t, memstore.New(), gate.Options{
		Tools:             []*gate.Tool{deploy(&effects, &gate.ToolOptions{Remember: &gate.RememberOptions{}})},
		AuthorizeRemember: func(context.Context, gate.Remembering) error { return errors.New("nothing lasts") },
	})
	e := connect(t, g, nil, caller(nil), plain)
	id := e.prompt(`deploy {"service":"api"}`)
	e.answer(e.asked(permission), selected("allow_always"))
	q := e.askedAt(permission)
	if !strings.Contains(q.Text, "Not accepted: ") || strings.Contains(q.Text, "nothing lasts") {
		t.Errorf("asked again: %s", q.Text)
	}
	e.answer(q, selected("allow_once"))
	e.ends(id, "end_turn")
	effects.want(t, 1)
}

// R34: an answer that is too large is asked again.
func TestTooLarge(t *testing.T) {
	var result string
	g := openGate(t, memstore.New(), gate.Options{
		Tools:  []*gate.Tool{form(`{"type":"object","properties":{"why":{"type":"string"}},"required":["why"]}`)},
		Limits: gate.Limits{Answer: 200},
	})
	e := connect(t, g, nil, caller(func(r string, _ error) { result = r }), both)
	id := e.prompt("form")
	e.answer(e.asked(elicit), `{"action":"accept","content":{"why":"`+strings.Repeat("so ", 100)+`"}}`)
	e.answer(e.askedAt(elicit), `{"action":"accept","content":{"why":"so"}}`)
	e.ends(id, "end_turn")
	if result != `{"why":"so"}` {
		t.Errorf("result %s", result)
	}
}

// R34, R27: a next question that is too large is how the call ended, and not the fault of the answer
// before it: the person is not asked again, and the handler does not run again.
func TestNextQuestionIsTooLarge(t *testing.T) {
	for _, replay := range []gate.Replay{0, gate.Recover, gate.Repeatable} {
		var runs counter
		var ended error
		tool := raw("tool", func(ctx context.Context) (any, error) {
			runs.add()
			if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "Go on?")); err != nil {
				return nil, err
			}
			_, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", strings.Repeat("x", 2<<20)))
			return nil, err
		}, &gate.ToolOptions{Replay: replay})
		e := connect(t, memGate(t, tool), nil, caller(func(_ string, err error) { ended = err }), plain)
		id := e.prompt("tool")
		e.answer(e.asked(permission), selected("allow_once"))
		for _, m := range e.ends(id, "end_turn") {
			if m.Method == permission {
				t.Error("asked again")
			}
		}
		if !errors.Is(ended, gate.ErrTooLarge) {
			t.Errorf("ended with %v", ended)
		}
		runs.want(t, 2)
	}
}

// One option for each kind, under the kind's name, whatever ids the tool gave them; two of one kind
// cannot be told apart by clients and are not asked.
func TestOptionsOfATool(t *testing.T) {
	options := []interrupt.PermissionOption{{OptionID: "n", Name: "No", Kind: "reject_once"}, {OptionID: "y", Name: "Yes", Kind: "allow_once"}}
	one := asks("one", interrupt.ToolPermission("one", "Sure?", options...), func(_ context.Context, q *interrupt.ToolPermissionInterrupt) any { return q.SelectedOptionID })
	two := asks("two", interrupt.ToolPermission("two", "Sure?", append(options, interrupt.PermissionOption{OptionID: "z", Name: "Yo", Kind: "allow_once"})...),
		func(_ context.Context, q *interrupt.ToolPermissionInterrupt) any { return q.SelectedOptionID })
	var result string
	var ended error
	e := connect(t, openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{one, two}}), nil,
		caller(func(r string, err error) { result, ended = r, err }), plain)
	id := e.prompt("one")
	e.answer(e.asked(permission), selected("allow_once"))
	e.ends(id, "end_turn")
	if result != `"y"` {
		t.Errorf("answered with %s", result)
	}
	e.ends(e.prompt("two"), "end_turn")
	if !errors.Is(ended, gate.ErrConfirmationRequired) {
		t.Errorf("two of a kind: %v", ended)
	}
}
