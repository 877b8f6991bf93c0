package main

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

type service struct {
	Service string `json:"service"`
}

// changes is a tool that does not ask.
func changes() *gate.Tool {
	look := func(context.Context, service) (string, error) { return "3 changes, one of them to the database", nil }
	return gate.NewTool("changes", look, &gate.ToolOptions{
		Description: "Lists what changed in a service.", NeverAsks: true, Replay: gate.Repeatable, KeepResult: true,
	})
}

// migrate may run again: after a crash in the middle it does.
func migrate(pace time.Duration) *gate.Tool {
	return gate.NewTool("migrate", asking("migrate", "Migrate the database of", "migrated", pace), &gate.ToolOptions{
		Description: "Migrates the database of a service.", Replay: gate.Repeatable, KeepResult: true,
	})
}

// deploy may not: after a crash in the middle the model is told that nobody knows.
func deploy(pace time.Duration) *gate.Tool {
	return gate.NewTool("deploy", asking("deploy", "Deploy", "deployed", pace), &gate.ToolOptions{
		Description: "Deploys a service.", KeepResult: true,
	})
}

// asking makes a handler that does something only when a person allows it.
func asking(name, title, done string, pace time.Duration) func(context.Context, service) (string, error) {
	return func(ctx context.Context, in service) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission(name, title+" "+in.Service)); err != nil {
			return "", err
		}
		const steps = 3.0
		for step := 1.0; step <= steps; step++ { // what a real tool would do here
			select {
			case <-time.After(pace):
			case <-ctx.Done():
				return "", ctx.Err()
			}
			total := steps
			_ = interrupt.Progress(ctx, interrupt.Update{Completed: step, Total: &total}) // nothing hangs on it
		}
		return fmt.Sprintf("%s %s", in.Service, done), nil
	}
}
