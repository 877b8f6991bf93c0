package bench_test

import (
	"fmt"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/pgtest"
)

// BenchmarkGrowth on PostgreSQL: what a request costs while so many questions are open.
func BenchmarkPostgresGrowth(b *testing.B) {
	url := pgtest.URL(b)
	sizes := []int{1_000, 10_000, 100_000}
	if *large {
		sizes = append(sizes, 1_000_000)
	}
	for _, n := range sizes {
		b.Run(fmt.Sprintf("open=%d", n), func(b *testing.B) {
			store := openPostgres(b, url)
			g := openGate(b, store)
			fill(b, g, store, n, func(checkpoint.Record) {})
			growthOf(b, g, store)
			b.Run("op=interaction", func(b *testing.B) { interactions(b, g, "deploy", 1) })
		})
	}
}
