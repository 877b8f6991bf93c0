package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-go/parley/checkpoint"
)

// maxRowBytes ends a page of rows.
const maxRowBytes = 4 << 20

// Rows implements [checkpoint.Store].
func (s *Store) Rows(ctx context.Context, id checkpoint.ID, from string, limit int) ([]checkpoint.Row, error) {
	if err := checkpoint.CheckLimit(limit); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout) // for both requests
	defer cancel()
	if err := s.overcome(ctx); err != nil {
		return nil, fmt.Errorf("list rows of record %s: %w", id, err)
	}
	var page []checkpoint.Row
	err := s.read(ctx, func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, err := pool.Query(ctx, s.sql.rows, id[:], []byte(from), limit, maxRowBytes)
		if err != nil {
			return err
		}
		page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (checkpoint.Row, error) {
			var name []byte
			r := checkpoint.Row{ID: id}
			err := row.Scan(&name, &r.Data)
			r.Name = string(name)
			return r, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list rows of record %s: %w", id, err)
	}
	return page, nil
}
