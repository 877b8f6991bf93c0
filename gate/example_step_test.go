package gate_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// The handler runs twice, first to ask and then with the answer. The quote that it asks about was
// fetched once: what the person accepted is what is ordered.
func Example_steps() {
	fetch := func(context.Context, string) (int, error) {
		fmt.Println("fetching a quote")
		return 240, nil
	}
	order := func(ctx context.Context, in struct {
		Item string `json:"item"`
	}) (string, error) {
		price, err := interrupt.Once(ctx, "quote", fetch, &interrupt.OnceOptions[int]{Idempotent: true})
		if err != nil {
			return "", err
		}
		question := interrupt.ToolPermission("order", fmt.Sprintf("Order %s for %d", in.Item, price))
		if _, err := interrupt.Ask(ctx, question); err != nil {
			return "", err
		}
		// No mark and no result: it was never begun. A mark alone: interrupt.ErrOutcomeUnknown.
		return interrupt.Once(ctx, "order", func(_ context.Context, stepID string) (string, error) {
			fmt.Printf("ordering, with an idempotency key of %d characters\n", len(stepID))
			return "order 7", nil
		}, nil)
	}

	ctx := context.Background()
	g, err := gate.Open(ctx, memstore.New(), &gate.Options{
		Tools: []*gate.Tool{gate.NewTool("order", order, nil)}, Keys: [][]byte{gate.NewKey()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close(ctx)
	call := gate.Call{
		Tool: "order", Arguments: json.RawMessage(`{"item":"lamp"}`), Scope: "ann", Session: "window 1",
		Facilities: []interrupt.Facility{interrupt.FacilityPermission},
	}
	outcome, err := g.Invoke(ctx, call)
	if err != nil {
		fmt.Println(err)
		return
	}
	call.Token = outcome.Prompt.Token
	call.Answers = gate.Answers{outcome.Prompt.Questions[0].ID: json.RawMessage(`{"optionId":"allow_once"}`)}
	outcome, err = g.Invoke(ctx, call)
	fmt.Printf("%s %v\n", outcome.Result, err)
	// Output:
	// fetching a quote
	// ordering, with an idempotency key of 32 characters
	// "order 7" <nil>
}
