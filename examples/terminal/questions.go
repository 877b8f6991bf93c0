package main

import (
	"encoding/json"
	"net/url"

	"github.com/parley-go/parley/interrupt"
)

// mayRelease asks for permission. The gate shows the arguments beside it, and runs with no others.
func mayRelease(r release) *interrupt.ToolPermissionInterrupt {
	return interrupt.ToolPermission("release", "Release "+r.Service+" "+r.Version+" to production")
}

func whereTo() *interrupt.UserSelectionInterrupt {
	return interrupt.UserSelection(
		interrupt.UserChoice{Title: "canary", Description: "five per cent of the traffic, for an hour", IsRecommended: true},
		interrupt.UserChoice{Title: "one region", Description: "everybody in eu-west, nobody elsewhere"},
		interrupt.UserChoice{Title: "everywhere", Description: "all regions at once"},
	)
}

// notes is what the form of [releaseNotes] brings.
type notes struct {
	Notes     string `json:"notes"`
	Instances int    `json:"instances"`
	Notify    bool   `json:"notify"`
	Channel   string `json:"channel,omitempty"`
}

func releaseNotes(r release) *interrupt.FormInterrupt {
	return interrupt.Form("What should be known about "+r.Service+" "+r.Version+"?", json.RawMessage(`{
		"type": "object",
		"properties": {
			"notes": {"type": "string", "title": "Release notes", "minLength": 1, "maxLength": 200},
			"instances": {"type": "integer", "title": "Instances", "minimum": 1, "maximum": 20, "default": 2},
			"notify": {"type": "boolean", "title": "Notify", "description": "tell the people on call"},
			"channel": {"type": "string", "title": "Channel", "oneOf": [
				{"const": "stable", "title": "Stable"}, {"const": "beta", "title": "Beta"}, {"const": "nightly", "title": "Nightly"}]}
		},
		"required": ["notes", "instances", "notify"]
	}`))
}

// statusPage asks for consent to open a page. A yes is that consent and nothing more; nobody opens
// it here.
func statusPage(r release) *interrupt.URLInterrupt {
	address := "https://status.example.com/announce?" + url.Values{"service": {r.Service}, "version": {r.Version}}.Encode()
	return interrupt.URL("Announce the release on the status page.", address)
}
