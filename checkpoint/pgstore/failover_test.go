package pgstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// A standby is refused, to read too. After a failover the store finds the new primary by itself, and
// with a synchronous standby nothing that was acknowledged is lost (R25).
func TestFailover(t *testing.T) {
	first := pgtest.Private(t)
	schema := migrated(t, first.URL())
	second, err := first.Standby()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, readOnly := range []bool{false, true} {
		for _, url := range []string{second.URL(), with(t, second.URL(), "target_session_attrs", "standby")} {
			_, err := pgstore.Open(t.Context(), url, &pgstore.Options{Schema: schema, ReadOnly: readOnly})
			wantReason(t, err, pgstore.Standby)
		}
	}
	// Of several servers the primary is taken, by everything that opens a connection.
	standbyFirst := fmt.Sprintf("user=parley dbname=postgres host=%s,%s", second.Dir(), first.Dir())
	if err := pgstore.Migrate(t.Context(), standbyFirst, &pgstore.Options{Schema: pgtest.Schema()}); err != nil {
		t.Error(err)
	}
	execute(t, first.URL(), "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'", "SELECT pg_reload_conf()")
	both := fmt.Sprintf("user=parley dbname=postgres host=%s,%s", first.Dir(), second.Dir())
	s := open(t, both, &pgstore.Options{Schema: schema, Logger: quiet, Timeout: 2 * time.Second})
	m := join(t, s)
	listening(t, open(t, standbyFirst, &pgstore.Options{Schema: schema, Logger: quiet}), s)

	var acknowledged sync.Map
	var count atomic.Int32
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := 0; ; n++ {
				b := puts(record(w<<16 | n))
				b.Owner = m.Owner()
				if s.Commit(context.Background(), b) != nil {
					return
				}
				acknowledged.Store(b.Puts[0].Record.ID, true)
				count.Add(1)
			}
		})
	}
	eventually(t, "there are enough commits", func() bool { return count.Load() > 100 })
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	writers.Wait()
	_, err = s.Load(t.Context(), idOf(1))
	wantReason(t, err, pgstore.Standby) // the only one that is left
	if err := second.Promote(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new primary is found", func() bool { _, err := s.Load(t.Context(), idOf(0)); return err == nil })
	acknowledged.Range(func(id, _ any) bool {
		_, err := s.Load(t.Context(), id.(checkpoint.ID))
		if err != nil {
			t.Errorf("acknowledged record %s: %v", id, err)
		}
		return err == nil
	})
	execute(t, second.URL(), "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
	b := puts(record(1 << 30))
	b.Owner = m.Owner() // the membership outlived the failover
	commit(t, s, b)
}
