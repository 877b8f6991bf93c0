package main

import (
	"context"

	"github.com/parley-go/parley/interrupt"
)

type person struct {
	Name string `json:"name" jsonschema:"the new colleague"`
}

type colleague struct {
	Name  string   `json:"name"`
	Team  string   `json:"team"`
	Desk  int      `json:"desk"`
	Tools []string `json:"tools"`
}

type desk struct {
	Desk int `json:"desk" title:"Desk" minimum:"1" maximum:"400"`
}

type kit struct {
	Tools []string `json:"tools" title:"Tools" enum:"laptop,phone,badge" minItems:"1"`
}

// onboard asks in four rounds, the second of which has two questions. It runs from the top for each
// answer, and each Ask returns what was answered before. The account is made once, however often it
// runs: where a process died between the account and its record, the journal knows.
func (j journal) onboard(ctx context.Context, in person) (colleague, error) {
	if err := j.runs(ctx, "onboard", in.Name); err != nil {
		return colleague{}, err
	}
	if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("onboard", "Take "+in.Name+" on")); err != nil {
		return colleague{}, err
	}
	both, err := interrupt.AskAll(ctx,
		interrupt.UserSelection(interrupt.UserChoice{Title: "platform"}, interrupt.UserChoice{Title: "product"}),
		interrupt.FormFor[desk]("Where does "+in.Name+" sit?"))
	if err != nil {
		return colleague{}, err
	}
	team := both[0].(*interrupt.UserSelectionInterrupt).ConfirmedChoice.Title
	tools, err := interrupt.Ask(ctx, interrupt.FormFor[kit]("What does "+in.Name+" need?"))
	if err != nil {
		return colleague{}, err
	}
	if _, err := interrupt.Ask(ctx, interrupt.URL("Sign the contract of "+in.Name+".", "https://example.com/contracts")); err != nil {
		return colleague{}, err
	}
	at, err := both[1].(*interrupt.FormOf[desk]).Value()
	if err != nil {
		return colleague{}, err
	}
	needs, err := tools.Value()
	if err != nil {
		return colleague{}, err
	}
	create := func(_ context.Context, stepID string) (string, error) {
		return in.Name, j.add("onboarded", in.Name, stepID)
	}
	created := func(_ context.Context, stepID string) (string, bool, error) {
		done, err := j.has("onboarded", in.Name, stepID)
		return in.Name, done, err
	}
	_, err = interrupt.Once(ctx, "account", create, &interrupt.OnceOptions[string]{Check: created})
	return colleague{Name: in.Name, Team: team, Desk: at.Desk, Tools: needs.Tools}, err
}
