package boltstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// BenchmarkCommit creates records of a kibibyte with a due time, from so many callers at once.
func BenchmarkCommit(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := open(b, newPath(b), nil)
			var next atomic.Int64
			b.ResetTimer()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for {
						n := next.Add(1)
						if n > int64(b.N) {
							return
						}
						r := record(int(n), 1)
						r.Due, r.Scope, r.Data = time.UnixMilli(n), checkpoint.Hash{byte(n)}, make([]byte, 1024)
						if err := s.Commit(context.Background(), put(r)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
