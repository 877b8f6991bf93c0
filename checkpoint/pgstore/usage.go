package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-go/parley/checkpoint"
)

// Usage implements [checkpoint.Store].
func (s *Store) Usage(ctx context.Context, scope checkpoint.Hash) (checkpoint.Usage, error) {
	var u checkpoint.Usage
	err := s.read(ctx, func(ctx context.Context, pool *pgxpool.Pool) error {
		return pool.QueryRow(ctx, s.sql.usage, scope[:]).Scan(&u.Active, &u.Bytes)
	})
	switch {
	case errors.Is(err, checkpoint.ErrNotFound): // nothing was ever held
		return checkpoint.Usage{}, nil
	case err != nil:
		return checkpoint.Usage{}, fmt.Errorf("read usage: %w", err)
	}
	return u, nil
}
