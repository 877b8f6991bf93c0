package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/parley-go/parley/checkpoint/pgstore"
)

// Callers branch on the reason of an error: what can be tried again later, and what somebody has to
// look into. There is no server at this address.
func Example() {
	_, err := pgstore.Open(context.Background(), "postgres://parley@127.0.0.1:1/parley", nil)
	var e *pgstore.ServerError
	if errors.As(err, &e) {
		fmt.Println("PostgreSQL:", e.Reason)
	}
	// Output:
	// PostgreSQL: not reached
}

// One of the releases makes the tables, with a role that may; then every replica opens the store.
// This needs a server, so that it is compiled here and not run.
func ExampleMigrate() {
	ctx := context.Background()
	if err := pgstore.Migrate(ctx, os.Getenv("PARLEY_ADMIN_URL"), nil); err != nil {
		fmt.Println(err)
		return
	}
	store, err := pgstore.Open(ctx, os.Getenv("PARLEY_URL"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	// Now gate.Open(ctx, store, …), with the same keys on every replica.
}
