package main

import (
	"context"
	"strings"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

type service struct {
	Service string `json:"service"`
}

// asking makes a tool that does something only when a person allows it.
func asking(name, title, done string) *gate.Tool {
	return gate.NewTool(name, func(ctx context.Context, in service) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission(name, title+" "+in.Service)); err != nil {
			return "", err
		}
		return in.Service + " " + done, nil
	}, &gate.ToolOptions{Description: title + ".", KeepResult: true})
}

// changes is a tool that does not ask.
func changes() *gate.Tool {
	look := func(context.Context, service) (string, error) { return "3 changes", nil }
	return gate.NewTool("changes", look, &gate.ToolOptions{Description: "Lists what changed.", KeepResult: true})
}

// script is the model: it looks, asks for both steps in one turn, and sums up.
func script(input []*schema.Message) (*schema.Message, error) {
	var told []string
	for _, m := range input {
		if m.Role == schema.Tool {
			told = append(told, m.Content)
		}
	}
	api := service{"api"}
	switch len(told) {
	case 0:
		return scripted.Do(scripted.Call{ID: "1", Tool: "changes", Arguments: api}), nil
	case 1:
		migrate, deploy := scripted.Call{ID: "2", Tool: "migrate", Arguments: api}, scripted.Call{ID: "3", Tool: "deploy", Arguments: api}
		return scripted.Do(migrate, deploy), nil
	}
	return scripted.Say("The release: " + strings.Join(told[1:], "; ")), nil
}
