package pgstore

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-go/parley/checkpoint"
)

// List implements [checkpoint.Store]. What a page costs depends on its limit, not on how many
// records there are: an index leads to what is on it. Of a query by Due that selects scopes or
// statuses besides, a few thousand records are passed over at most, so that a page may be shorter
// than its limit, even empty, and yet have a Next.
func (s *Store) List(ctx context.Context, q checkpoint.Query) (checkpoint.Page, error) {
	if err := s.ready(ctx); err != nil {
		return checkpoint.Page{}, err
	}
	after, err := q.Position()
	if err != nil {
		return checkpoint.Page{}, err
	}
	var page checkpoint.Page
	err = s.read(ctx, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		if q.ByDue() {
			page, err = s.listDue(ctx, pool, &q, after)
		} else {
			page, err = s.listPlace(ctx, pool, &q, after)
		}
		return err
	})
	return page, err
}

func (s *Store) listPlace(ctx context.Context, pool *pgxpool.Pool, q *checkpoint.Query, after *checkpoint.Record) (checkpoint.Page, error) {
	statuses := slices.Clone(q.Statuses)
	if len(statuses) == 0 {
		for status := range checkpoint.Status(255) {
			if status.Valid() {
				statuses = append(statuses, status)
			}
		}
	}
	numbers := make([]int16, len(statuses))
	for i, status := range statuses {
		numbers[i] = int16(status)
	}
	if after == nil {
		after = &checkpoint.Record{Scope: q.Scope} // no record has the zero ID
	}
	last := q.Scope[:]
	if q.Scope.IsZero() {
		last = bytes.Repeat([]byte{0xff}, len(q.Scope))
	}
	slices.Sort(numbers)
	rows, err := pool.Query(ctx, s.sql.list, slices.Compact(numbers), after.Scope[:], after.ID[:], last, q.PageLimit()+1)
	if err != nil {
		return checkpoint.Page{}, err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (checkpoint.Record, error) { return scanRecord(row) })
	if err != nil {
		return checkpoint.Page{}, err
	}
	return q.Page(found, nil), nil // one more than the limit, where there are more: Page sees it
}

func (s *Store) listDue(ctx context.Context, pool *pgxpool.Pool, q *checkpoint.Query, after *checkpoint.Record) (checkpoint.Page, error) {
	var from int64
	if after == nil {
		after = &checkpoint.Record{}
	} else {
		from = after.Due.UnixMilli()
	}
	most := q.PageLimit() + 1
	if !q.Scope.IsZero() || len(q.Statuses) > 0 {
		most += checkpoint.MaxPassed
	}
	rows, err := pool.Query(ctx, s.sql.due, q.DueBefore.UnixMilli(), from, after.ID[:], most)
	if err != nil {
		return checkpoint.Page{}, err
	}
	looked, err := pgx.CollectRows(rows, scanPlace)
	if err != nil {
		return checkpoint.Page{}, err
	}
	var reached *checkpoint.Record
	if len(looked) == most {
		reached = &looked[most-1]
	}
	var ids [][]byte
	for i := range looked {
		if !q.Matches(&looked[i]) {
			continue
		}
		if len(ids) == q.PageLimit() { // there is more, and the page ends here
			break
		}
		ids = append(ids, looked[i].ID[:])
		if len(ids) == q.PageLimit() && i < len(looked)-1 {
			reached = &looked[i]
		}
	}
	if len(ids) == 0 {
		return q.Page(nil, reached), nil
	}
	rows, err = pool.Query(ctx, s.sql.byID, ids)
	if err != nil {
		return checkpoint.Page{}, err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (checkpoint.Record, error) { return scanRecord(row) })
	if err != nil {
		return checkpoint.Page{}, err
	}
	// What was written since it was looked at is on this page only where it stands on it still.
	found = slices.DeleteFunc(found, func(r checkpoint.Record) bool {
		return !q.Matches(&r) || reached != nil && q.Compare(&r, reached) > 0
	})
	return q.Page(found, reached), nil
}

// scanPlace reads what of a record a query by Due looks at.
func scanPlace(row pgx.CollectableRow) (r checkpoint.Record, err error) {
	var id, scope []byte
	var status int16
	var due int64
	err = row.Scan(&id, &status, &scope, &due)
	copy(r.ID[:], id)
	copy(r.Scope[:], scope)
	r.Status, r.Due = checkpoint.Status(status), time.UnixMilli(due).UTC()
	return r, err
}
