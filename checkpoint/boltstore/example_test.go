package boltstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "ledger.db")

	store, err := boltstore.Open(path, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	open := checkpoint.Record{ID: checkpoint.ID{1}, Revision: 1, Status: checkpoint.Open}
	fmt.Println("create:", store.Commit(ctx, &checkpoint.Batch{Puts: []checkpoint.Put{{Record: open}}}))
	fmt.Println("close:", store.Close())

	// The next process finds what this one left.
	store, err = boltstore.Open(path, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	found, err := store.Load(ctx, open.ID)
	fmt.Println("load:", found.Status, err)
	// Output:
	// create: <nil>
	// close: <nil>
	// load: open <nil>
}
