package bench_test

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

var large = flag.Bool("large", false, "let the ledger grow to a million open questions")

// pageSize is how many interactions a list page has, and fillBatch how many a batch that fills.
const (
	pageSize  = 100
	dueSize   = 16 // as a sweep's page
	fillBatch = 1000
)

// What a request costs while so many questions are open, beside what it costs bbolt alone; and what
// it costs after nine tenths of them were swept.
func BenchmarkGrowth(b *testing.B) {
	sizes := []int{1_000, 10_000}
	if *large {
		sizes = []int{1_000, 100_000, 1_000_000}
	}
	for _, n := range sizes {
		b.Run(fmt.Sprintf("store=bolt/open=%d", n), func(b *testing.B) { growth(b, n) })
		b.Run(fmt.Sprintf("store=raw/open=%d", n), func(b *testing.B) { rawGrowth(b, n) })
	}
}

func growth(b *testing.B, n int) {
	path := filepath.Join(b.TempDir(), "db")
	store := reopened(b, nil, path)
	defer func() { store.Close() }()
	g := openGate(b, store)
	var swept []checkpoint.Delete
	fill(b, g, store, n, func(r checkpoint.Record) {
		if len(swept) < n*9/10 {
			swept = append(swept, checkpoint.Delete{ID: r.ID, Revision: r.Revision})
		}
	})
	growthOf(b, g, store)
	b.Run("op=reopen", func(b *testing.B) {
		measureFew(b, func() { store = reopened(b, store, path) })
	})
	began := time.Now()
	for from := 0; from < len(swept); from += fillBatch {
		batch := &checkpoint.Batch{Time: time.Now(), Deletes: swept[from:min(from+fillBatch, len(swept))]}
		if err := store.Commit(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%d of %d were removed in %v", len(swept), n, time.Since(began))
	g = openGate(b, store)
	b.Run("op=raise-after-sweep", func(b *testing.B) {
		measure(b, 1, func(int64) error {
			_, err := raise(b.Context(), g, "deploy")
			return err
		})
	})
}

// growthOf measures what does not depend on the store.
func growthOf(b *testing.B, g *gate.Gate, store checkpoint.Store) {
	b.Run("op=raise", func(b *testing.B) {
		measure(b, 1, func(int64) error {
			_, err := raise(b.Context(), g, "deploy")
			return err
		})
	})
	b.Run("op=list", func(b *testing.B) {
		measure(b, 1, func(int64) error {
			page, err := g.List(b.Context(), gate.ListQuery{Scope: "ann", Limit: pageSize})
			if err == nil && len(page.Interactions) < pageSize {
				err = fmt.Errorf("a page has %d interactions", len(page.Interactions))
			}
			return err
		})
	})
	b.Run("op=due", func(b *testing.B) {
		measure(b, 1, func(int64) error {
			_, err := store.List(b.Context(), checkpoint.Query{DueBefore: time.Now().Add(48 * time.Hour), Limit: dueSize})
			return err
		})
	})
}

// measureFew is for what takes long where much is stored: a few times are enough to measure it.
func measureFew(b *testing.B, operation func()) {
	n := min(b.N, 3)
	began := time.Now()
	for range n {
		operation()
	}
	b.ReportMetric(float64(time.Since(began))/float64(n), "ns/op")
}

func reopened(b *testing.B, store *boltstore.Store, path string) *boltstore.Store {
	if store != nil {
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
	}
	store, err := boltstore.Open(path, nil)
	if err != nil {
		b.Fatal(err)
	}
	return store
}

// fill leaves n open interactions in the store, in batches: one of each scope is raised by the
// gate, and then copied.
func fill(b *testing.B, g *gate.Gate, store checkpoint.Store, n int, each func(checkpoint.Record)) {
	const perScope = 1000
	for i := range (n + perScope - 1) / perScope {
		call := newCall("deploy")
		if i > 0 {
			call.Scope = fmt.Sprintf("scope %d", i)
		}
		outcome, err := g.Invoke(b.Context(), call)
		if err != nil {
			b.Fatal(err)
		}
		record, err := store.Load(b.Context(), outcome.Prompt.Interaction)
		if err != nil {
			b.Fatal(err)
		}
		in, err := checkpoint.Decode(record)
		if err != nil {
			b.Fatal(err)
		}
		batch := &checkpoint.Batch{Time: in.Created}
		for range min(perScope, n-i*perScope) {
			put, audit := another(b, in)
			batch.Puts, batch.Audit = append(batch.Puts, put), append(batch.Audit, audit)
			each(put.Record)
		}
		if err := store.Commit(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

// another is the same open interaction under another id.
func another(b *testing.B, in *checkpoint.Interaction) (checkpoint.Put, []byte) {
	next := in.Clone()
	var err error
	if next.ID, err = checkpoint.NewID(time.Now(), rand.Reader); err != nil {
		b.Fatal(err)
	}
	next.Last().Questions = []checkpoint.Question{next.Last().Questions[0]}
	next.Last().Questions[0].ID = next.ID.String() + ".1.1"
	record, err := checkpoint.Encode(next)
	if err != nil {
		b.Fatal(err)
	}
	entry, err := checkpoint.EncodeEntry(&checkpoint.Entry{
		Time: next.Updated, Interaction: next.ID, Action: checkpoint.ActionAsked, Status: next.Status, Round: 1, Tool: next.Tool,
		Scope: next.Scope,
	})
	if err != nil {
		b.Fatal(err)
	}
	return checkpoint.Put{Record: record}, entry
}

// A raise in memory, while so many questions are open.
func BenchmarkGrowthInMemory(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		store := memstore.New()
		g := openGate(b, store)
		fill(b, g, store, n, func(checkpoint.Record) {})
		b.Run(fmt.Sprintf("open=%d", n), func(b *testing.B) {
			measure(b, 1, func(int64) error {
				_, err := raise(context.Background(), g, "deploy")
				return err
			})
		})
	}
}
