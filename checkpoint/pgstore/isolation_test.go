package pgstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// Where transactions are serializable by default, or repeatable reads, two processes that write at
// once fail no more often than else: never. Through a pooler the store cannot ask for another
// default, and what was aborted, so that nothing of it was executed, is made again.
func TestIsolation(t *testing.T) {
	url := pgtest.URL(t)
	for _, level := range []string{"serializable", "repeatable read"} {
		for _, pooler := range []bool{false, true} {
			o := &pgstore.Options{Schema: migrated(t, url), Pooler: pooler, Quiet: true, Connections: 6}
			address := with(t, url, "default_transaction_isolation", level)
			stores := []*pgstore.Store{open(t, address, o), open(t, address, o)}
			var together sync.WaitGroup
			for w := range 8 {
				together.Go(func() { writeSome(t, stores[w%2], w) })
			}
			together.Wait()
			checkUsage(t, url, o.Schema)
		}
	}
}

func writeSome(t *testing.T, s *pgstore.Store, w int) {
	_, m, err := s.Join(context.Background(), checkpoint.Ledger{ID: [16]byte{1}})
	if err != nil {
		t.Error(err)
		return
	}
	for n := range 30 {
		r := record(w<<16 | n)
		for ; r.Revision <= 3; r = next(r) {
			b := puts(r)
			b.Owner, b.Audit, b.Lazy = m.Owner(), [][]byte{[]byte("a")}, r.Revision == 3
			if err := s.Commit(context.Background(), b); err != nil {
				t.Errorf("revision %d: %v", r.Revision, err)
			}
			if got, err := s.Load(context.Background(), r.ID); err != nil || got.Revision != r.Revision {
				t.Errorf("load: revision %d, want %d: %v", got.Revision, r.Revision, err)
			}
		}
		if _, err := s.List(context.Background(), checkpoint.Query{DueBefore: time.Now()}); err != nil {
			t.Error(err)
		}
	}
	if err := m.Leave(); err != nil {
		t.Error(err)
	}
}
