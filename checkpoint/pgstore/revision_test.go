package pgstore_test

import (
	"errors"
	"math"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// A revision or an epoch that the server's numbers do not reach is a conflict like any other, and no
// error that takes the group along.
func TestLargestRevisions(t *testing.T) {
	url := pgtest.URL(t)
	s := open(t, url, &pgstore.Options{Schema: migrated(t, url)})
	commit(t, s, puts(record(1)))
	for _, n := range []uint64{math.MaxInt64, 1 << 63, 1<<63 + 1, math.MaxUint64} {
		far, claimed := puts(record(1)), puts(next(record(1)))
		far.Puts[0].Record.Revision, claimed.Puts[0].Epoch = n, n
		gone := &checkpoint.Batch{Deletes: []checkpoint.Delete{{ID: idOf(1), Revision: n}}}
		for _, b := range []*checkpoint.Batch{far, claimed, gone} {
			if _, conflict := errors.AsType[*checkpoint.ConflictError](s.Commit(t.Context(), b)); !conflict {
				t.Errorf("%d: no conflict: %+v", n, b)
			}
		}
	}
}
