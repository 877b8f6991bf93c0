package gate_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A handler tells how far it is. The host shows it, and learns afterwards what was wrong with it.
func ExampleProgress() {
	copyFiles := func(ctx context.Context, in struct{ Files []string }) (string, error) {
		total := float64(len(in.Files))
		for n, file := range in.Files {
			// These come within 100 ms of each other, so that only the first is delivered.
			_ = interrupt.Progress(ctx, interrupt.Update{Completed: float64(n), Total: &total, Message: "copying " + file})
		}
		_ = interrupt.Progress(ctx, interrupt.Update{Completed: -1}) // a mistake, and the files are copied all the same
		return "copied", nil
	}
	now := time.Now() // the example's clock stands still
	ctx := context.Background()
	g, err := gate.Open(ctx, memstore.New(), &gate.Options{
		Tools: []*gate.Tool{gate.NewTool("copy", copyFiles, nil)},
		Keys:  [][]byte{[]byte(rand.Text() + rand.Text())},
		Now:   func() time.Time { return now },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close(ctx)

	progress := &gate.Progress{Sink: func(_ context.Context, u interrupt.Update) error {
		fmt.Printf("%v of %v: %s\n", u.Completed, *u.Total, u.Message)
		return nil
	}}
	outcome, err := g.Invoke(ctx, gate.Call{
		Tool: "copy", Arguments: json.RawMessage(`{"Files":["a","b","c"]}`), Scope: "ann", Session: "window 1", Progress: progress,
	})
	fmt.Println(string(outcome.Result), err)
	for _, err := range progress.Errors() {
		fmt.Println(errors.Is(err, interrupt.ErrInvalidUpdate), err)
	}
	// Output:
	// 0 of 3: copying a
	// "copied" <nil>
	// true progress update: completed: is negative
}
