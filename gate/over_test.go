package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R17: a caller who broke off has that recorded, and the tool is told with a cancelled context.
func TestOver(t *testing.T) {
	over := make(chan struct{})
	var heard []error
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		_, err := interrupt.Ask(ctx, choose("a", "b"))
		heard = append(heard, ctx.Err())
		return nil, err
	}, nil))
	c := call("tool", `{}`)
	c.Over = over
	p := mustAsk(t, g, c)
	close(over)
	_, err := g.Invoke(t.Context(), with(c, p, `{"action":"cancel"}`))
	if !errors.Is(err, gate.ErrCancelled) {
		t.Errorf("have %v, want cancelled", err)
	}
	if len(heard) != 2 || heard[0] != nil || !errors.Is(heard[1], context.Canceled) {
		t.Errorf("contexts ended with %v, want only the second, cancelled", heard)
	}
	if s, err := g.InspectID(t.Context(), "ann", p.Interaction); err != nil || s.Code != gate.ErrCancelled {
		t.Errorf("recorded %v, %v", s.Code, err)
	}
}

// A handler that runs when its caller has enough is told.
func TestOverWhileItRuns(t *testing.T) {
	over := make(chan struct{})
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		close(over)
		<-ctx.Done()
		return "stopped", nil
	}, nil))
	c := call("tool", `{}`)
	c.Over = over
	mustFinish(t, g, c, `"stopped"`)
}

// R9: a face shows a call before it asks as a prompt would show it.
func TestShown(t *testing.T) {
	g := openMem(t, gate.NewRawTool("pay", func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil },
		&gate.ToolOptions{Title: "Pay", Mask: []string{"card"}}))
	title, shown, err := g.Shown("pay", json.RawMessage(`{"card": "4111", "amount": 1.0}`))
	if err != nil || title != "Pay" || string(shown) != `{"amount":1,"card":"[hidden]"}` {
		t.Errorf("have %q, %s, %v", title, shown, err)
	}
	if _, _, err := g.Shown("steal", json.RawMessage(`{}`)); !errors.Is(err, gate.ErrUnknownTool) {
		t.Errorf("unknown tool: %v", err)
	}
	if _, _, err := g.Shown("pay", json.RawMessage(`{"card":1,"card":2}`)); !errors.Is(err, gate.ErrInvalidArguments) {
		t.Errorf("twice: %v", err)
	}
}
