package pgstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// lockTable keeps everybody else from a table until the test ends: statements that need it wait.
func lockTable(t *testing.T, url, table string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(ctx) })
	if _, err := conn.Exec(ctx, "BEGIN; LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
}

// Callers that read lists, however many they are and however long their reads take, hold up neither
// commits nor what reads one record nor the signs of life.
func TestManyLists(t *testing.T) {
	url := pgtest.URL(t)
	o := &pgstore.Options{Schema: migrated(t, url), Logger: quiet, Connections: 6, Timeout: 3 * time.Second, Lapse: 4 * time.Second}
	s := open(t, url, o)
	m := join(t, s)
	r := record(1)
	id := r.ID
	commit(t, s, puts(r))
	lockTable(t, url, o.Schema+".record_row")
	ctx, cancel := context.WithCancel(t.Context())
	var lists sync.WaitGroup
	defer lists.Wait()
	defer cancel()
	for range 40 {
		lists.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.Rows(ctx, id, "", 1); err == nil {
					t.Error("rows were read while nobody gets at them")
				}
			}
		})
	}
	began := m.Now(time.Time{})
	eventually(t, "one and a half times the lapse passes", func() bool {
		r = next(r)
		commit(t, s, puts(r))
		if _, err := s.Load(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
		select {
		case <-m.(checkpoint.Lapser).Lapsed():
			t.Fatal("the process lapsed")
		default:
		}
		return m.Now(time.Time{}).Sub(began) > 6*time.Second
	})
}

// Options.Timeout bounds each read of one row from the time that it is asked for, also where many
// that are asked for at once are not answered.
func TestManyQuestions(t *testing.T) {
	url := pgtest.URL(t)
	o := &pgstore.Options{Schema: migrated(t, url), Logger: quiet, Timeout: time.Second}
	s := open(t, url, o)
	r := record(1)
	commit(t, s, puts(r))
	lockTable(t, url, o.Schema+".usage")
	began := time.Now()
	var questions sync.WaitGroup
	errs := make([]error, 50)
	for i := range errs {
		questions.Go(func() { _, errs[i] = s.Usage(context.Background(), r.Scope) })
	}
	questions.Wait()
	for _, err := range errs {
		wantReason(t, err, pgstore.Slow)
	}
	if took := time.Since(began); took > 10*time.Second { // one after the other they would take 25
		t.Errorf("all together took %v", took)
	}
	eventually(t, "other questions are answered again", func() bool { _, err := s.Load(t.Context(), r.ID); return err == nil })
}
