package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

func raw(name string, h func(ctx context.Context) (any, error), opts *gate.ToolOptions) *gate.Tool {
	return gate.NewRawTool(name, func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		result, err := h(ctx)
		if err != nil {
			return nil, err
		}
		return json.Marshal(result)
	}, opts)
}

type deployInput struct {
	Service string  `json:"service"`
	N       float64 `json:"n,omitempty"`
}

// deploy asks for a permission and then does what effects counts.
func deploy(effects *counter, opts *gate.ToolOptions) *gate.Tool {
	return gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service+" to production")); err != nil {
			return "", err
		}
		effects.add()
		return "deployed " + in.Service, nil
	}, opts)
}

// everyKind asks one question of each kind, in as many rounds.
func everyKind() *gate.Tool {
	return raw("every_kind", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("every_kind", "Go on?")); err != nil {
			return nil, err
		}
		choice, err := interrupt.Ask(ctx, interrupt.UserSelection(
			interrupt.UserChoice{Title: "north", Description: "cold", IsRecommended: true}, interrupt.UserChoice{Title: "south"}))
		if err != nil {
			return nil, err
		}
		form, err := interrupt.Ask(ctx, interrupt.Form("Who?", json.RawMessage(ticketSchema)))
		if err != nil {
			return nil, err
		}
		if _, err := interrupt.Ask(ctx, interrupt.URL("Connect your account", "https://example.com/connect")); err != nil {
			return nil, err
		}
		return map[string]any{"choice": choice.ConfirmedChoice.Title, "form": form.Content}, nil
	}, nil)
}

const ticketSchema = `{"type":"object","properties":{
	"name":{"type":"string","minLength":2},
	"count":{"type":"integer","minimum":1,"maximum":9},
	"sure":{"type":"boolean"},
	"level":{"type":"string","oneOf":[{"const":"lo","title":"Low"},{"const":"hi","title":"High"}],"default":"lo"},
	"tags":{"type":"array","maxItems":2,"items":{"type":"string","enum":["a","b","c"]}}
},"required":["name","sure"]}`

// twoAtOnce asks two questions in one round.
func twoAtOnce() *gate.Tool {
	return raw("two_at_once", func(ctx context.Context) (any, error) {
		answered, err := interrupt.AskAll(ctx,
			interrupt.UserSelection(interrupt.UserChoice{Title: "a"}, interrupt.UserChoice{Title: "b"}),
			interrupt.Form("Why?", json.RawMessage(`{"type":"object","properties":{"why":{"type":"string","minLength":3}},"required":["why"]}`)))
		if err != nil {
			return nil, err
		}
		form := answered[1].(*interrupt.FormInterrupt)
		return answered[0].(*interrupt.UserSelectionInterrupt).ConfirmedChoice.Title + " " + string(form.Content), nil
	}, nil)
}

// rounds asks n selections, one after the other.
func rounds(n int) *gate.Tool {
	return raw("rounds", func(ctx context.Context) (any, error) {
		for i := range n {
			choice := interrupt.UserSelection(interrupt.UserChoice{Title: "a"}, interrupt.UserChoice{Title: "b"})
			choice.Key = fmt.Sprint(i)
			if _, err := interrupt.Ask(ctx, choice); err != nil {
				return nil, err
			}
		}
		return "done", nil
	}, nil)
}

// form asks one form.
func form(schema string) *gate.Tool {
	return raw("form", func(ctx context.Context) (any, error) {
		f, err := interrupt.Ask(ctx, interrupt.Form("Please", json.RawMessage(schema)))
		if err != nil {
			return nil, err
		}
		return string(f.Content), nil
	}, nil)
}
