package memstore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
)

func Example() {
	ctx := context.Background()
	store := memstore.New()
	open := checkpoint.Record{ID: checkpoint.ID{1}, Revision: 1, Status: checkpoint.Open}
	fmt.Println("create:", store.Commit(ctx, &checkpoint.Batch{Puts: []checkpoint.Put{{Record: open}}}))

	// Two callers read revision 1; the second one to write it is told so.
	answered := checkpoint.Record{ID: open.ID, Revision: 2, Status: checkpoint.Answered}
	fmt.Println("answer:", store.Commit(ctx, &checkpoint.Batch{Puts: []checkpoint.Put{{Record: answered}}}))
	err := store.Commit(ctx, &checkpoint.Batch{Puts: []checkpoint.Put{{Record: answered}}})
	_, conflict := errors.AsType[*checkpoint.ConflictError](err)
	fmt.Println("answer again: conflict", conflict)
	// Output:
	// create: <nil>
	// answer: <nil>
	// answer again: conflict true
}
