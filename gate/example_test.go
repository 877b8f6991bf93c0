package gate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

type DeployInput struct {
	Service string `json:"service"`
}

type DeployOutput struct {
	URL string `json:"url"`
}

// What the README shows is this code; a test compares them.
func Example() {
	ship := func(_ context.Context, in DeployInput) (DeployOutput, error) {
		fmt.Println("shipping", in.Service)
		return DeployOutput{URL: "https://" + in.Service + ".example.com"}, nil
	}

	deploy := func(ctx context.Context, in DeployInput) (DeployOutput, error) {
		ask := interrupt.ToolPermission("deploy", "Deploy "+in.Service+" to production")
		if _, err := interrupt.Ask(ctx, ask); err != nil {
			return DeployOutput{}, err // first run: the question itself; later: rejected, declined or cancelled
		}
		return ship(ctx, in) // reached only after a person allowed exactly this call
	}

	run := func(ctx context.Context, file, keyFile string) error {
		store, err := boltstore.Open(file, nil)
		if err != nil {
			return err
		}
		defer store.Close()
		keys, err := gate.KeyFile(keyFile) // made by the first run; not beside the data
		if err != nil {
			return err
		}
		tools := []*gate.Tool{gate.NewTool("deploy", deploy, nil)}
		g, err := gate.Open(ctx, store, &gate.Options{Tools: tools, Keys: keys})
		if err != nil {
			return err
		}
		defer g.Close(ctx)

		call := gate.Call{
			Tool:       "deploy",
			Arguments:  json.RawMessage(`{"service":"api"}`),
			Scope:      "ann",      // who asks, as the host authenticated them
			Session:    "window 1", // the conversation
			Facilities: []interrupt.Facility{interrupt.FacilityPermission},
		}
		outcome, err := g.Invoke(ctx, call) // the handler runs and asks; its question is on the disk
		if err != nil {
			return err
		}
		question := outcome.Prompt.Questions[0]
		fmt.Printf("may I, with %s?\n%s\n", outcome.Prompt.Arguments, question.Body)

		// The same call with the token and what the person chose, now or after a restart.
		call.Token = outcome.Prompt.Token
		call.Answers = gate.Answers{question.ID: json.RawMessage(`{"optionId":"allow_once"}`)}
		outcome, err = g.Invoke(ctx, call) // the answer is on the disk; the handler runs again and ships
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", outcome.Result)
		return nil
	}

	dir, err := os.MkdirTemp("", "parley")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := run(context.Background(), filepath.Join(dir, "ledger.db"), filepath.Join(dir, "keys", "example.key")); err != nil {
		fmt.Println(err)
	}
	// Output:
	// may I, with {"service":"api"}?
	// {"toolName":"deploy","title":"Deploy api to production","options":[{"optionId":"allow_once","name":"Allow once","kind":"allow_once"},{"optionId":"reject_once","name":"Reject","kind":"reject_once"}]}
	// shipping api
	// {"url":"https://api.example.com"}
}
