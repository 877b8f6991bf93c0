package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
)

// Two writers have read the same revision. One commits; the other is told that it came late, and
// nothing of its batch is written.
func ExampleStore() {
	ctx := context.Background()
	store := memstore.New()
	in := &checkpoint.Interaction{
		ID: checkpoint.ID{1}, Revision: 1, Status: checkpoint.Open, Created: time.UnixMilli(1),
		Updated: time.UnixMilli(1),
		Tool:    "deploy", Arguments: []byte(`{}`),
	}
	put := func(epoch uint64) error {
		record, err := checkpoint.Encode(in)
		if err != nil {
			return err
		}
		return store.Commit(ctx, &checkpoint.Batch{Puts: []checkpoint.Put{{Record: record, Epoch: epoch}}})
	}
	if err := put(0); err != nil {
		log.Fatal(err)
	}
	in.Revision, in.Status = 2, checkpoint.Answered
	fmt.Println("first:", put(0))
	err := put(0)
	var late *checkpoint.ConflictError
	fmt.Println("second:", errors.As(err, &late))
	// Output:
	// first: <nil>
	// second: true
}
