package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A release is the arguments of the tool.
type release struct {
	Service string `json:"service"`
	Version string `json:"version"`
}

// The arguments become the name of a file: the schema lets nothing through that could leave the
// directory.
const releaseSchema = `{
	"type": "object",
	"properties": {
		"service": {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,39}$"},
		"version": {"type": "string", "pattern": "^[0-9]{1,9}\\.[0-9]{1,9}\\.[0-9]{1,9}$"}
	},
	"required": ["service", "version"],
	"additionalProperties": false
}`

// A report is what was decided and done: the tool's result, and its one effect.
type report struct {
	release
	Rollout string `json:"rollout"`
	notes
	StatusPage string `json:"statusPage"`
}

// releaseTool returns the tool, which writes into that directory.
func releaseTool(dir string) *gate.Tool {
	return gate.NewTool("release", handler(dir), &gate.ToolOptions{
		Title:       "Release a service",
		Description: "Rolls out a version of a service, after a person decided where and how.",
		Schema:      json.RawMessage(releaseSchema),
		// A process can be killed after it wrote the file and before that was recorded. Running
		// again is safe here: what is written depends on nothing but the arguments and the recorded
		// answers (no time, no randomness), and replaces the same file by the same content. A tool
		// that sends a mail would choose otherwise; see gate.Replay.
		Replay:     gate.Repeatable,
		KeepResult: true,
	})
}

// handler asks, and then acts. It runs from the top after every answer: each Ask returns at once
// where its answer is recorded, and what it returns as an error is either the next question or the
// person's no.
func handler(dir string) func(context.Context, release) (report, error) {
	return func(ctx context.Context, r release) (report, error) {
		if _, err := interrupt.Ask(ctx, mayRelease(r)); err != nil {
			return report{}, err
		}
		where, err := interrupt.Ask(ctx, whereTo())
		if err != nil {
			return report{}, err
		}
		form, err := interrupt.Ask(ctx, releaseNotes(r))
		if err != nil {
			return report{}, err
		}
		page, err := interrupt.Ask(ctx, statusPage(r))
		if err != nil {
			return report{}, err
		}
		done := report{release: r, Rollout: where.ConfirmedChoice.Title, StatusPage: page.URL}
		if err := json.Unmarshal(form.Content, &done.notes); err != nil {
			return report{}, fmt.Errorf("read form: %w", err)
		}
		if err := done.write(dir); err != nil {
			return report{}, &interrupt.Failure{
				Text: "the report could not be written; run it again to go on with the same answers", Err: err,
			}
		}
		return done, nil
	}
}
