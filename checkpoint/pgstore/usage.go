package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-go/parley/checkpoint"
)

// Usage implements [checkpoint.Store].
func (s *Store) Usage(ctx context.Context, scope checkpoint.Hash) (checkpoint.Usage, error) {
	var u checkpoint.Usage
	err := s.ask(ctx, s.sql.usage, scope[:], func(row pgx.Row) error { return row.Scan(&u.Active, &u.Bytes) })
	switch {
	case errors.Is(err, checkpoint.ErrNotFound): // nothing was ever held
		return checkpoint.Usage{}, nil
	case err != nil:
		return checkpoint.Usage{}, fmt.Errorf("read usage: %w", err)
	}
	return u, nil
}
