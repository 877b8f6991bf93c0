package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

func newTools(j journal) []*gate.Tool {
	described := func(text string) *gate.ToolOptions { return &gate.ToolOptions{Description: text} }
	onboarding := described("Takes a new colleague on, in four rounds.")
	onboarding.Replay = gate.Repeatable // its one effect is a step
	return []*gate.Tool{
		gate.NewTool("deploy", j.deploy, described("Deploys a service to production, after a person allowed it.")),
		gate.NewTool("pick_region", pickRegion, described("Lets a person choose a region.")),
		gate.NewTool("create_ticket", createTicket, described("Lets a person fill in a ticket.")),
		gate.NewTool("connect_account", connectAccount, described("Sends a person to a page to connect an account.")),
		gate.NewTool("onboard", j.onboard, onboarding),
		gate.NewTool("slow_report", slowReport, described("Takes a while, and tells how far it is.")),
	}
}

// looks are what MCP is told of a tool beside what the gate knows.
var looks = map[string]*mcpbridge.ToolOptions{
	"deploy":      {Annotations: &mcp.ToolAnnotations{DestructiveHint: new(true)}},
	"slow_report": {Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
}

type service struct {
	Service string `json:"service" jsonschema:"the service to deploy"`
	Version string `json:"version" jsonschema:"the version to deploy"`
}

type deployed struct {
	URL string `json:"url"`
}

func (j journal) deploy(ctx context.Context, in service) (deployed, error) {
	if err := j.runs(ctx, "deploy", in.Service); err != nil {
		return deployed{}, err
	}
	ask := interrupt.ToolPermission("deploy", "Deploy "+in.Service+" "+in.Version+" to production")
	if _, err := interrupt.Ask(ctx, ask); err != nil {
		return deployed{}, err
	}
	return deployed{URL: "https://" + in.Service + ".example.com"}, j.add("deployed", in.Service)
}

func pickRegion(ctx context.Context, _ struct{}) (string, error) {
	answered, err := interrupt.Ask(ctx, interrupt.UserSelection(
		interrupt.UserChoice{Title: "eu-west", Description: "close to most customers", IsRecommended: true},
		interrupt.UserChoice{Title: "us-east", Description: "cheapest"},
		interrupt.UserChoice{Title: "ap-south"},
	))
	if err != nil {
		return "", err
	}
	return answered.ConfirmedChoice.Title, nil
}

// connectAccount gets the consent to open a page, and no more: whether an account was connected
// there, the account service would know.
func connectAccount(ctx context.Context, _ struct{}) (string, error) {
	if _, err := interrupt.Ask(ctx, interrupt.URL("Connect your account.", "https://example.com/connect")); err != nil {
		return "", err
	}
	return "the page may be opened; ask the account service whether it was", nil
}
