package gate_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A tool lets its permissions be remembered, here for all services of one region. The person's
// "always" answers later calls, until it is revoked or expires.
func ExampleRememberOptions() {
	type input struct {
		Region  string `json:"region"`
		Service string `json:"service"`
	}
	restart := gate.NewTool("restart", func(ctx context.Context, in input) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("restart", "Restart "+in.Service)); err != nil {
			return "", err
		}
		return "restarted " + in.Service, nil
	}, &gate.ToolOptions{Remember: &gate.RememberOptions{Arguments: []string{"region"}}})

	ctx := context.Background()
	g, err := gate.Open(ctx, memstore.New(), &gate.Options{Tools: []*gate.Tool{restart}, Keys: [][]byte{gate.NewKey()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close(ctx)
	invoke := func(service string) *gate.Prompt {
		outcome, err := g.Invoke(ctx, gate.Call{
			Tool: "restart", Arguments: fmt.Appendf(nil, `{"region":"eu","service":%q}`, service),
			Scope: "ann", Session: "window 1", Facilities: []interrupt.Facility{interrupt.FacilityPermission},
		})
		switch {
		case err != nil:
			fmt.Println(err)
		case outcome.Prompt == nil:
			fmt.Printf("%s\n", outcome.Result)
		default:
			fmt.Println("may I restart", service)
		}
		return outcome.Prompt
	}

	p := invoke("api")
	remember := p.Questions[0].Remember
	fmt.Println("always: for calls with the same", remember.Arguments, "for", remember.Seconds/3600, "hours")
	err = g.Answer(ctx, gate.AnswerRequest{
		Interaction: p.Interaction, Round: p.Round, Scope: "ann", By: "ann@example.com",
		Answers: gate.Answers{p.Questions[0].ID: json.RawMessage(`{"optionId":"allow_always"}`)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	invoke("web")

	page, err := g.Decisions(ctx, gate.DecisionQuery{Scope: "ann"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range page.Decisions {
		fmt.Printf("%s by %s: %s, %s\n", d.Kind, d.By, d.Tool, d.Arguments)
		if err := g.Revoke(ctx, "ann", d.ID); err != nil {
			fmt.Println(err)
		}
	}
	invoke("web")
	// Output:
	// may I restart api
	// always: for calls with the same [region] for 24 hours
	// "restarted web"
	// allow_always by ann@example.com: restart, {"region":"eu"}
	// may I restart web
}
