package checkpointtest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/parley-go/parley/checkpoint"
)

var keeping = []promise{
	{"rows",
		"Rows returns the rows of a record in the order of the bytes of their names; a record without rows, or none " +
			"at all, has none.",
		func(t *testing.T, f *fixture) {
			a, b := record(1), record(2)
			f.wantRows(a.ID)
			f.put(a, b)
			f.wantRows(a.ID)
			f.rows(row(a, "b", "2"), row(a, "\xff", "4"), row(a, "a", "1"), row(a, "b\x00", "3"), row(b, "a", "other"))
			f.wantRows(a.ID, row(a, "a", "1"), row(a, "b", "2"), row(a, "b\x00", "3"), row(a, "\xff", "4"))
			f.wantRows(b.ID, row(b, "a", "other"))
			f.wantRows(idOf(3))
		}},
	{"rows from a name",
		"Rows returns the rows whose names are not before from, at most limit of them.",
		func(t *testing.T, f *fixture) {
			a := record(1)
			f.put(a, record(2))
			f.rows(row(a, "a", "1"), row(a, "b", "2"), row(a, "c", "3"), row(record(2), "a", "other"))
			for _, lazy := range []bool{false, true} {
				want := []checkpoint.Row{row(a, "a", "1"), row(a, "b", "2"), row(a, "c", "3")}
				if lazy { // one before, one between, one in the place of another
					f.commit(lazily(&checkpoint.Batch{Time: epoch, Rows: rowPuts(row(a, "A", "0"), row(a, "aa", "1"),
						row(a, "b", "two"))}))
					want = []checkpoint.Row{row(a, "A", "0"), row(a, "a", "1"), row(a, "aa", "1"), row(a, "b", "two"),
						row(a, "c", "3")}
				}
				for from := range want {
					for limit := 1; limit <= len(want)+1; limit++ {
						f.wantRowsFrom(a.ID, want[from].Name, limit, want[from:min(from+limit, len(want))]...)
					}
					f.wantRowsFrom(a.ID, want[from].Name+"\x00", 1000, want[from+1:]...)
				}
			}
		}},
	{"a page of rows is bounded",
		"A page of rows has no more than a few MiB, but at least one row where there is one.",
		func(t *testing.T, f *fixture) {
			a := record(1)
			f.put(a)
			const size, count = 3 << 20, 5
			for n := range count {
				f.rows(checkpoint.Row{ID: a.ID, Name: string(rune('a' + n)), Data: bytes.Repeat([]byte{byte(n)}, size)})
			}
			seen := 0
			for from := ""; seen < count; {
				page, err := f.store.Rows(t.Context(), a.ID, from, 1000)
				if err != nil || len(page) == 0 || len(page) == count {
					t.Fatalf("rows: %d of %d, error %v, want some", len(page), count, err)
				}
				for _, row := range page {
					if row.Name != string(rune('a'+seen)) || !bytes.Equal(row.Data, bytes.Repeat([]byte{byte(seen)}, size)) {
						t.Fatalf("rows: %q as number %d, or other data", row.Name, seen)
					}
					seen++
				}
				from = page[len(page)-1].Name + "\x00"
			}
		}},
	{"a row is written again",
		"A RowPut writes a row, or removes it where its Data is nil; data that is empty is data.",
		func(t *testing.T, f *fixture) {
			a := record(1)
			f.put(a)
			for _, lazy := range []bool{false, true} {
				apply := func(row checkpoint.Row) {
					f.commit(&checkpoint.Batch{Time: epoch, Lazy: lazy, Rows: rowPuts(row)})
				}
				for _, size := range []int{3, 100 << 10, 0, 70 << 10, 5} {
					r := checkpoint.Row{ID: a.ID, Name: "a", Data: bytes.Repeat([]byte("x"), size)}
					apply(r)
					f.wantRows(a.ID, r)
					if got, _ := f.store.Rows(t.Context(), a.ID, "", 1); len(got) != 1 || got[0].Data == nil {
						t.Fatal("rows: data of a row is nil")
					}
				}
				apply(checkpoint.Row{ID: a.ID, Name: "a"})
				f.wantRows(a.ID)
				apply(checkpoint.Row{ID: a.ID, Name: "a"})
			}
		}},
	{"a row needs its record",
		"When the puts of the batch are applied, the record of a row must be there and its claim at Epoch; else the " +
			"whole batch is a conflict.",
		func(t *testing.T, f *fixture) {
			a, b := record(1), record(2)
			a.Claim.Epoch = 4
			f.put(a)
			for _, lazy := range []bool{false, true} {
				f.wantConflict(&checkpoint.Batch{Lazy: lazy, Rows: rowPuts(row(b, "a", "1"))}, b.ID)
				for _, epoch := range []uint64{0, 3, 5} {
					bad := &checkpoint.Batch{Lazy: lazy, Puts: []checkpoint.Put{{Record: next(a), Epoch: 4}}}
					bad.Rows = rowPuts(row(a, "a", "1"))
					bad.Puts[0].Record.Claim.Epoch = 4
					bad.Rows[0].Epoch = epoch
					f.wantConflict(bad, a.ID)
					f.wantConflict(&checkpoint.Batch{Lazy: lazy, Rows: []checkpoint.RowPut{{Row: row(a, "a", "1"), Epoch: epoch}}}, a.ID)
					f.wantConflict(&checkpoint.Batch{Lazy: lazy, Rows: []checkpoint.RowPut{{Row: checkpoint.Row{ID: a.ID, Name: "a"},
						Epoch: epoch}}}, a.ID)
				}
				f.wantRecord(a)
				f.wantRows(a.ID)
				f.wantAudit(0)
			}
			// With its record, and at the epoch that the put leaves.
			claimed := next(a)
			claimed.Claim.Epoch = 5
			both := &checkpoint.Batch{Time: epoch, Puts: []checkpoint.Put{{Record: claimed, Epoch: 4}, {Record: b}},
				Rows: rowPuts(row(claimed, "a", "1"), row(b, "b", "2"))}
			both.Rows[0].Epoch = 4
			f.wantConflict(both, a.ID)
			both.Rows[0].Epoch = 5
			f.commit(both)
			f.wantRows(a.ID, row(a, "a", "1"))
			f.wantRows(b.ID, row(b, "b", "2"))
		}},
	{"rows go with their record",
		"A row is removed with its record; a record that is created again has none.",
		func(t *testing.T, f *fixture) {
			for n, lazy := range []bool{false, true} {
				a, b := record(10*n+1), record(10*n+2)
				f.put(a, b)
				for i := range 30 {
					f.rows(row(a, fmt.Sprint(i), "x"), row(b, fmt.Sprint(i), "y"))
				}
				f.rows(checkpoint.Row{ID: a.ID, Name: "large", Data: make([]byte, 100<<10)})
				f.commit(lazily(&checkpoint.Batch{Rows: rowPuts(row(a, "lazy", "z"))}))
				gone := deletes(a)
				gone.Lazy = lazy
				f.commit(gone)
				f.wantRows(a.ID)
				f.wantConflict(&checkpoint.Batch{Rows: rowPuts(row(a, "a", "1"))}, a.ID)
				f.put(a)
				f.wantRows(a.ID)
				if rows, err := f.store.Rows(t.Context(), b.ID, "", 1000); err != nil || len(rows) != 30 {
					t.Fatalf("rows of another record: %d, error %v, want 30", len(rows), err)
				}
			}
		}},
	{"lazy rows are visible",
		"A lazy Commit of rows returns when they are visible to every reader of this store.",
		func(t *testing.T, f *fixture) {
			a := record(1)
			f.put(a)
			f.rows(row(a, "a", "1"), row(a, "b", "2"))
			f.commit(lazily(&checkpoint.Batch{Rows: rowPuts(row(a, "b", "two"), checkpoint.Row{ID: a.ID, Name: "a"},
				row(a, "c", "3"))}))
			f.wantRows(a.ID, row(a, "b", "two"), row(a, "c", "3"))
			f.commit(lazily(&checkpoint.Batch{Rows: rowPuts(row(a, "a", "one"), checkpoint.Row{ID: a.ID, Name: "c"})}))
			f.wantRows(a.ID, row(a, "a", "one"), row(a, "b", "two"))
			f.put(record(2))
			f.wantRows(a.ID, row(a, "a", "one"), row(a, "b", "two"))
			f.crash()
			f.wantRows(a.ID, row(a, "a", "one"), row(a, "b", "two"))
		}},
	{"rows are durable",
		"A commit of rows that is not lazy is durable when it returns, and a lazy one when the store is closed.",
		func(t *testing.T, f *fixture) {
			a := record(1)
			f.put(a)
			f.rows(row(a, "a", "1"), row(a, "b", "2"))
			f.commit(lazily(&checkpoint.Batch{Rows: rowPuts(row(a, "b", "two"), row(a, "c", "3"))}))
			f.reopen()
			f.wantRows(a.ID, row(a, "a", "1"), row(a, "b", "two"), row(a, "c", "3"))
		}},
	{"data of rows is copied",
		"A store keeps nothing of a row that it was given, and the rows it returns are the caller's to keep.",
		func(t *testing.T, f *fixture) {
			a := record(1)
			f.put(a)
			for _, lazy := range []bool{false, true} {
				mine := row(a, "a", "data")
				f.commit(&checkpoint.Batch{Lazy: lazy, Rows: rowPuts(mine)})
				clear(mine.Data)
				for range 2 {
					f.wantRows(a.ID, row(a, "a", "data"))
					got, _ := f.store.Rows(t.Context(), a.ID, "", 1)
					clear(got[0].Data)
				}
			}
		}},
	{"the scope stays",
		"The stored record must be of the same scope as the put; else the whole batch is a conflict.",
		func(t *testing.T, f *fixture) {
			a, b := record(1), record(2)
			f.put(a)
			for _, lazy := range []bool{false, true} {
				for _, scope := range []checkpoint.Hash{hashOf(2), {}} {
					moved := next(a)
					moved.Scope = scope
					bad := puts(b, moved)
					bad.Lazy = lazy
					f.wantConflict(bad, a.ID)
				}
				f.wantRecord(a)
				f.wantAbsent(b.ID)
			}
		}},
	{"malformed rows",
		"A row appears in a batch at most once, has an id and a name of 1 to 255 bytes, at most 16 MiB of data, and no " +
			"record that the batch deletes; anything else is refused, and nothing of it written.",
		func(t *testing.T, f *fixture) {
			a := record(1)
			f.put(a)
			gone := deletes(a)
			gone.Rows = rowPuts(row(a, "a", "1"))
			for name, b := range map[string]*checkpoint.Batch{
				"zero id":          {Rows: rowPuts(checkpoint.Row{Name: "a", Data: []byte("1")})},
				"no name":          {Rows: rowPuts(row(a, "", "1"))},
				"long name":        {Rows: rowPuts(row(a, string(make([]byte, 256)), "1"))},
				"twice":            {Rows: rowPuts(row(a, "a", "1"), row(a, "a", "2"))},
				"written, removed": {Rows: rowPuts(row(a, "a", "1"), checkpoint.Row{ID: a.ID, Name: "a"})},
				"of a delete":      gone,
				"too much data":    {Rows: rowPuts(checkpoint.Row{ID: a.ID, Name: "a", Data: make([]byte, 16<<20+1)})},
			} {
				for _, lazy := range []bool{false, true} {
					b.Lazy = lazy
					t.Log(name)
					f.wantRefused(b)
				}
			}
			f.wantRecord(a)
			f.wantRows(a.ID)
			long := row(a, string(bytes.Repeat([]byte{0xff}, 255)), "1")
			f.rows(long)
			f.wantRows(a.ID, long)
			for _, limit := range []int{-1, 0, 1001} {
				if _, err := f.store.Rows(t.Context(), a.ID, "", limit); !errors.Is(err, checkpoint.ErrInvalidQuery) {
					t.Errorf("rows, limit %d: got %v, want ErrInvalidQuery", limit, err)
				}
			}
		}},
}

// row is a row under the record.
func row(r checkpoint.Record, name, data string) checkpoint.Row {
	return checkpoint.Row{ID: r.ID, Name: name, Data: []byte(data)}
}

// rowPuts are rows, each at epoch 0.
func rowPuts(rows ...checkpoint.Row) (puts []checkpoint.RowPut) {
	for _, r := range rows {
		puts = append(puts, checkpoint.RowPut{Row: r})
	}
	return puts
}

// rows commits rows, each at epoch 0.
func (f *fixture) rows(rows ...checkpoint.Row) {
	f.t.Helper()
	f.commit(&checkpoint.Batch{Time: epoch, Rows: rowPuts(rows...)})
}

func (f *fixture) wantRows(id checkpoint.ID, want ...checkpoint.Row) {
	f.t.Helper()
	f.wantRowsFrom(id, "", 1000, want...)
}

func (f *fixture) wantRowsFrom(id checkpoint.ID, from string, limit int, want ...checkpoint.Row) {
	f.t.Helper()
	got, err := f.store.Rows(f.t.Context(), id, from, limit)
	if err != nil {
		f.t.Fatalf("rows of %s: %v", id, err)
	}
	if d := diff(append([]checkpoint.Row{}, want...), append([]checkpoint.Row{}, got...)); d != "" {
		f.t.Fatalf("rows of %s from %q, limit %d (-want +got):\n%s", id, from, limit, d)
	}
}
