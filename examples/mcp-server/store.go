package main

import (
	"context"
	"io"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/pgstore"
)

type store interface {
	checkpoint.Store
	io.Closer
}

// openStore opens where questions are kept: a file, which belongs to one process, or a database,
// which any number of them share.
func openStore(ctx context.Context, o options) (store, error) {
	if o.postgres == "" {
		return boltstore.Open(o.db, nil)
	}
	if o.migrate {
		if err := pgstore.Migrate(ctx, o.postgres, nil); err != nil {
			return nil, err
		}
	}
	return pgstore.Open(ctx, o.postgres, &pgstore.Options{Lapse: o.lapse})
}
