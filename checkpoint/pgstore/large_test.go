package pgstore_test

import (
	"bytes"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// Data of a record and of a row may be as large as a batch lets it, over ten MiB, also where others
// commit at the same time.
func TestLargeData(t *testing.T) {
	url := pgtest.URL(t)
	for _, pooler := range []bool{false, true} {
		s := open(t, url, &pgstore.Options{Schema: migrated(t, url), Pooler: pooler, Quiet: true})
		r := record(1)
		r.Data = bytes.Repeat([]byte{0, 'a', 0xff}, checkpoint.MaxData/3)
		b := puts(r)
		for _, name := range []string{"a", "b"} {
			b.Rows = append(b.Rows, checkpoint.RowPut{Row: checkpoint.Row{ID: r.ID, Name: name, Data: r.Data}})
		}
		small := make(chan error, 1)
		go func() { small <- s.Commit(t.Context(), puts(record(2))) }()
		commit(t, s, b)
		if err := <-small; err != nil {
			t.Errorf("beside it: %v", err)
		}
		if got, err := s.Load(t.Context(), r.ID); err != nil || !bytes.Equal(got.Data, r.Data) {
			t.Errorf("%d bytes of the record, want %d: %v", len(got.Data), len(r.Data), err)
		}
		for _, name := range []string{"a", "b"} { // each is a page
			page, err := s.Rows(t.Context(), r.ID, name, 10)
			if err != nil || len(page) != 1 || page[0].Name != name || !bytes.Equal(page[0].Data, r.Data) {
				t.Errorf("row %q: a page of %d, %v", name, len(page), err)
			}
		}
	}
}
