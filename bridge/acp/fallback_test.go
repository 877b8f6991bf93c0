package acpbridge_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R24, R27: that an answer was given to a fallback is known of an earlier round, and by another
// process that goes on after a crash, whose client is asked nothing as a fallback.
func TestFallbackIsRecorded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	var crash func() error
	var fallbacks []bool
	tool := raw("region", func(ctx context.Context) (any, error) {
		fallbacks = append(fallbacks, acpbridge.AskedAsFallback(ctx))
		if _, err := interrupt.Ask(ctx, choice()); err != nil {
			return nil, err
		}
		if crash != nil { // how this ends is recorded nowhere
			return nil, crash()
		}
		if _, err := interrupt.Ask(ctx, interrupt.URL("Sign in", "https://example.com/in")); err != nil {
			return nil, err
		}
		return acpbridge.AskedAsFallback(ctx), nil
	}, &gate.ToolOptions{Replay: gate.Repeatable})
	process := func(t *testing.T, crashes bool) *gate.Gate {
		store, err := boltstore.Open(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		crash = nil
		if crashes {
			crash = store.Close
		}
		return openGate(t, store, gate.Options{Tools: []*gate.Tool{tool}})
	}
	t.Run("before", func(t *testing.T) {
		opts := &acpbridge.Options{Fallback: acpbridge.Fallbacks{Selection: true, URL: true}}
		e := connect(t, process(t, true), opts, caller(nil), plain)
		id := e.prompt("region")
		e.answer(e.asked(permission), selected("1"))
		e.ends(id, "end_turn")
	})
	t.Run("after", func(t *testing.T) {
		var result string
		e := connect(t, process(t, false), nil, caller(func(r string, _ error) { result = r }), both)
		id := e.prompt("region")
		e.answer(e.asked(elicit), `{"action":"accept"}`)
		e.ends(id, "end_turn")
		if result != "true" {
			t.Errorf("result %s", result)
		}
	})
	if want := []bool{false, true, true, true}; !slices.Equal(fallbacks, want) {
		t.Errorf("fallbacks %v, want %v", fallbacks, want)
	}
}

// What a handler calls does not inherit that its own answer was given to a fallback.
func TestFallbackIsNotInherited(t *testing.T) {
	var g *gate.Gate
	inner := asks("inner", interrupt.ToolPermission("inner", "Do it"), func(ctx context.Context, _ *interrupt.ToolPermissionInterrupt) any {
		return acpbridge.AskedAsFallback(ctx)
	})
	outer := asks("outer", choice(), func(ctx context.Context, _ *interrupt.UserSelectionInterrupt) any {
		c := gate.Call{
			Tool: "inner", Arguments: json.RawMessage(`{}`), Scope: "ann", Session: "s",
			Facilities: []interrupt.Facility{interrupt.FacilityPermission},
		}
		outcome, err := g.Invoke(ctx, c)
		if err != nil {
			return err.Error()
		}
		c.Token = outcome.Prompt.Token
		c.Answers = gate.Answers{outcome.Prompt.Questions[0].ID: json.RawMessage(`{"optionId":"allow_once"}`)}
		if outcome, err = g.Invoke(ctx, c); err != nil {
			return err.Error()
		}
		return map[string]any{"outer": acpbridge.AskedAsFallback(ctx), "inner": outcome.Result}
	})
	g = memGate(t, inner, outer)
	var result string
	opts := &acpbridge.Options{Fallback: acpbridge.Fallbacks{Selection: true}}
	e := connect(t, g, opts, caller(func(r string, _ error) { result = r }), plain)
	id := e.prompt("outer")
	e.answer(e.asked(permission), selected("1"))
	e.ends(id, "end_turn")
	if result != `{"inner":false,"outer":true}` {
		t.Errorf("result %s", result)
	}
}
