package pgstore

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-go/parley/checkpoint"
)

// Audit implements [checkpoint.Store]. Numbers are given while the one row is locked that every
// commit updates, so that an entry is never seen before one with a lower number: sequences would
// be faster, and let a reader that goes on behind the last one it saw miss some.
func (s *Store) Audit(ctx context.Context, after uint64, limit int) ([]checkpoint.AuditEntry, error) {
	if err := checkpoint.CheckLimit(limit); err != nil {
		return nil, err
	}
	var page []checkpoint.AuditEntry
	err := s.read(ctx, func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, err := pool.Query(ctx, s.sql.audit, int64(min(after, math.MaxInt64)), limit)
		if err != nil {
			return err
		}
		page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e checkpoint.AuditEntry, err error) {
			var seq int64
			err = row.Scan(&seq, &e.Data)
			e.Seq = uint64(seq)
			return e, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read audit trail: %w", err)
	}
	return page, nil
}
