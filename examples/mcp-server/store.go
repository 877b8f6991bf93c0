package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/gate"
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
	return pgstore.Open(ctx, o.postgres, &pgstore.Options{Lapse: o.lapse})
}

// migrate makes the tables of the database, as their owner: no process that serves needs that
// right.
func migrate(ctx context.Context, o options) error {
	if o.postgres == "" {
		return errors.New("-migrate: PARLEY_POSTGRES names no database")
	}
	return pgstore.Migrate(ctx, o.postgres, nil)
}

// readKeys reads the keys of the tokens. A process that is alone makes them. One of several would
// make its own, and refuse the tokens of the others.
func readKeys(o options) (_ [][]byte, err error) {
	if o.key == "" {
		if o.key, err = gate.DefaultKeyFile("mcp-server"); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(o.key); o.postgres != "" && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no key file %q: copy the one that all processes of this database have (docs/scaling.md)", o.key)
	}
	return gate.KeyFile(o.key)
}
