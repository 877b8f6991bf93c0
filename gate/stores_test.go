package gate_test

import (
	"path/filepath"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// onEveryStore runs a test on a new store of each kind. process opens it as one more process does;
// where only one process can have it, it is the same again. The gates' clock is the time of all.
func onEveryStore(t *testing.T, test func(t *testing.T, process func() checkpoint.Store)) {
	t.Helper()
	t.Run("memstore", func(t *testing.T) {
		s := memstore.New()
		test(t, func() checkpoint.Store { return s })
	})
	t.Run("boltstore", func(t *testing.T) {
		s, err := boltstore.Open(filepath.Join(t.TempDir(), "parley.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("close store: %v", err)
			}
		})
		test(t, func() checkpoint.Store { return s })
	})
	t.Run("pgstore", func(t *testing.T) {
		url := pgtest.URL(t)
		schema := newSchema(t, url)
		test(t, func() checkpoint.Store { return timeless{openPostgres(t, url, schema)} })
	})
}

// onNewStores runs a test that takes many stores, in memory and on a server.
func onNewStores(t *testing.T, name string, test func(t *testing.T, newStore func() checkpoint.Store)) {
	t.Helper()
	t.Run(name+"/memstore", func(t *testing.T) {
		test(t, func() checkpoint.Store { return memstore.New() })
	})
	t.Run(name+"/pgstore", func(t *testing.T) {
		url := pgtest.URL(t)
		test(t, func() checkpoint.Store { return timeless{openPostgres(t, url, newSchema(t, url))} })
	})
}
