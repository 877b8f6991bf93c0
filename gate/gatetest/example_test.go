package gatetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/gate/gatetest"
	"github.com/parley-go/parley/interrupt"
)

// A tool's test is a script, and a look at the world around the tool.
func Example() {
	var t testing.TB = printer{} // in a test it is the test's own

	type input struct {
		Service string `json:"service"`
	}
	var shipped []string // the world
	newTool := func() *gate.Tool {
		return gate.NewTool("deploy", func(ctx context.Context, in input) (string, error) {
			ask := interrupt.ToolPermission("deploy", "Deploy "+in.Service+" to production")
			if _, err := interrupt.Ask(ctx, ask); err != nil {
				return "", err
			}
			shipped = append(shipped, in.Service)
			return "shipped " + in.Service, nil
		}, nil)
	}

	story := gatetest.Run(t, newTool, gatetest.Script{
		Arguments: `{"service":"api"}`,
		Answers:   []gatetest.Answer{gatetest.Allow()},
		Result:    `"shipped api"`,
		Before:    func() { shipped = nil },
		After: func(*gatetest.Story) error {
			if len(shipped) > 1 {
				return errors.New("it was shipped twice")
			}
			return nil
		},
	})
	fmt.Println("asked:", story.Asked[0][0].(*interrupt.ToolPermissionInterrupt).Title)
	fmt.Printf("result: %s\n", story.Result)
	fmt.Println("runs of the handler:", story.Runs)

	// Whoever declares this tool Repeatable did not think of a crash when it has shipped.
	newTool = func() *gate.Tool {
		return gate.NewTool("deploy", func(ctx context.Context, in input) (string, error) {
			if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service)); err != nil {
				return "", err
			}
			shipped = append(shipped, in.Service)
			return "shipped " + in.Service, nil
		}, &gate.ToolOptions{Replay: gate.Repeatable})
	}
	gatetest.Run(t, newTool, gatetest.Script{
		Arguments: `{"service":"api"}`,
		Answers:   []gatetest.Answer{gatetest.Allow()},
		Before:    func() { shipped = nil },
		After: func(*gatetest.Story) error {
			if len(shipped) > 1 {
				return errors.New("it was shipped twice")
			}
			return nil
		},
	})
	// Output:
	// asked: Deploy api to production
	// result: "shipped api"
	// runs of the handler: 2
	// gatetest: a crash right before the end was recorded, when the handler had returned: after the story: it was shipped twice
}

// A printer prints what a test would report.
type printer struct{ testing.TB }

func (printer) Helper()                           {}
func (printer) Context() context.Context          { return context.Background() }
func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
