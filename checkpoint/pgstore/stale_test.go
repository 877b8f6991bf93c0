package pgstore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/pgtest"
)

// Statements that are stale on every connection are prepared anew, and no request fails for that:
// those of sessions that were reset, and those that read columns whose type was changed. The test is
// inside the package, since nobody else gets at a session.
func TestStaleStatements(t *testing.T) {
	ctx := context.Background()
	url := pgtest.URL(t)
	o := &Options{Schema: pgtest.Schema()}
	if err := Migrate(ctx, url, o); err != nil {
		t.Fatal(err)
	}
	s, err := Open(ctx, url, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	defer s.pool.Exec(ctx, "DROP SCHEMA "+o.Schema+" CASCADE")
	r := checkpoint.Record{ID: checkpoint.ID{1}, Status: checkpoint.Open, Scope: checkpoint.Hash{1}, Data: []byte("a")}
	use := func(t *testing.T) {
		t.Helper()
		r.Revision++
		b := &checkpoint.Batch{Puts: []checkpoint.Put{{Record: r}}}
		if err := s.Commit(ctx, b); err != nil {
			t.Fatalf("commit: %v", err)
		}
		if _, is := errors.AsType[*checkpoint.ConflictError](s.Commit(ctx, b)); !is {
			t.Error("the same again is no conflict")
		}
		if got, err := s.Load(ctx, r.ID); err != nil || got.Revision != r.Revision {
			t.Errorf("load: revision %d, want %d: %v", got.Revision, r.Revision, err)
		}
		if page, err := s.List(ctx, checkpoint.Query{}); err != nil || len(page.Records) != 1 {
			t.Errorf("list: %d records, %v", len(page.Records), err)
		}
		if err := s.beat(); err != nil {
			t.Errorf("sign of life: %v", err)
		}
	}
	each := func(t *testing.T, sql string) {
		t.Helper()
		for _, conn := range s.pool.AcquireAllIdle(ctx) {
			if _, err := conn.Conn().PgConn().Exec(ctx, sql).ReadAll(); err != nil {
				t.Fatal(err)
			}
			conn.Release()
		}
	}
	use(t)
	for _, sql := range []string{"DEALLOCATE ALL", "DISCARD ALL"} {
		each(t, sql)
		use(t)
	}
	if _, err := s.pool.Exec(ctx, "ALTER TABLE "+o.Schema+".record ALTER COLUMN attempt TYPE int"); err != nil {
		t.Fatal(err)
	}
	use(t)
}

// Where a statement is not where it was prepared there is a pooler, as a rule.
func TestStaleHelp(t *testing.T) {
	for _, code := range []string{noStatement, twoStatements} {
		if err := explain(t.Context(), &pgconn.PgError{Code: code}); !strings.Contains(err.Error(), "set Options.Pooler") {
			t.Error(err)
		}
	}
}
