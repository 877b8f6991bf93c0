package checkpointtest

import (
	"testing"

	"github.com/parley-go/parley/checkpoint"
)

var counting = []promise{
	{"usage",
		"Usage returns what is held of the scope; of the zero scope: in all. Bytes are the data of records and rows, " +
			"with Charge for each of them.",
		func(t *testing.T, f *fixture) {
			f.wantUsed(0, 0, 0)
			a, b, none := record(1), record(2), record(3)
			a.Data, b.Data, none.Data = make([]byte, 10), make([]byte, 100<<10), make([]byte, 1000)
			b.Scope, none.Scope = hashOf(2), checkpoint.Hash{}
			f.put(a, b, none)
			f.wantUsed(1, 1, charge(10))
			f.wantUsed(2, 1, charge(100<<10))
			f.wantUsed(0, 3, charge(10, 100<<10, 1000))
			f.rows(row(a, "a", "12345"), row(b, "b", ""))
			f.wantUsed(1, 1, charge(10, 5))
			f.wantUsed(2, 1, charge(100<<10, 0))
			f.wantUsed(0, 3, charge(10, 100<<10, 1000, 5, 0))
			f.wantUsed(3, 0, 0)
		}},
	{"usage goes down",
		"What is written again, removed or deleted is not counted any more, the rows of a record that is deleted included.",
		func(t *testing.T, f *fixture) {
			for _, lazy := range []bool{false, true} {
				a := record(1)
				a.Data = make([]byte, 100)
				f.put(a)
				f.rows(row(a, "a", "12345"), row(a, "b", "123"), row(a, "c", "1"))
				f.wantUsed(1, 1, charge(100, 5, 3, 1))
				apply := func(b *checkpoint.Batch) {
					b.Lazy = lazy
					f.commit(b)
				}
				a.Revision, a.Data = 2, a.Data[:7]
				apply(puts(a))
				f.wantUsed(1, 1, charge(7, 5, 3, 1))
				apply(&checkpoint.Batch{Rows: rowPuts(checkpoint.Row{ID: a.ID, Name: "a"}, row(a, "b", "x"))})
				f.wantUsed(1, 1, charge(7, 1, 1))
				apply(&checkpoint.Batch{Rows: rowPuts(checkpoint.Row{ID: a.ID, Name: "a"}, row(a, "b", "xy"), row(a, "d", "123"))})
				f.wantUsed(1, 1, charge(7, 2, 1, 3))
				apply(deletes(a))
				f.wantUsed(1, 0, 0)
				f.wantUsed(0, 0, 0)
			}
		}},
	{"active",
		"Active counts the records whose status is that of a live interaction.",
		func(t *testing.T, f *fixture) {
			for n, status := range []checkpoint.Status{checkpoint.Started, checkpoint.Open, checkpoint.Answered, checkpoint.Running} {
				r := record(n)
				r.Status, r.Data = status, nil
				f.put(r)
				f.wantUsed(1, n+1, charge(make([]int, n+1)...))
			}
			ended := []checkpoint.Status{checkpoint.Finished, checkpoint.Tombstone, checkpoint.Abandoned, checkpoint.Expired}
			for n, status := range ended {
				r := record(n)
				r.Revision, r.Status, r.Data = 2, status, nil
				f.commit(&checkpoint.Batch{Lazy: n%2 == 0, Puts: []checkpoint.Put{{Record: r}}})
				f.wantUsed(1, 3-n, charge(0, 0, 0, 0))
			}
			r := record(9)
			r.Status, r.Data = checkpoint.Remembered, nil
			f.put(r)
			f.wantUsed(1, 0, charge(0, 0, 0, 0, 0))
		}},
	{"usage of a conflict",
		"A batch that is a conflict changes no usage.",
		func(t *testing.T, f *fixture) {
			a, b := record(1), record(2)
			a.Data = make([]byte, 10)
			f.put(a)
			for _, lazy := range []bool{false, true} {
				bad := puts(next(a), next(b))
				bad.Lazy = lazy
				f.wantConflict(bad, b.ID)
				bad = deletes(a, b)
				bad.Lazy = lazy
				f.wantConflict(bad, b.ID)
				f.wantConflict(&checkpoint.Batch{Lazy: lazy, Rows: rowPuts(row(a, "a", "1"), row(b, "b", "2"))}, b.ID)
				f.wantUsed(1, 1, charge(10))
				f.wantUsed(0, 1, charge(10))
			}
		}},
	{"usage is durable",
		"The usage of a store that is opened again is what it holds.",
		func(t *testing.T, f *fixture) {
			a, b := record(1), record(2)
			a.Data, b.Data = make([]byte, 10), make([]byte, 20)
			f.put(a)
			f.commit(puts(b))
			f.rows(row(a, "a", "12345"))
			f.commit(lazily(&checkpoint.Batch{Rows: rowPuts(row(a, "b", "1"))}))
			f.commit(lazily(deletes(b)))
			f.wantUsed(1, 1, charge(10, 5, 1))
			f.reopen()
			f.wantUsed(1, 1, charge(10, 5, 1))
			f.wantUsed(0, 1, charge(10, 5, 1))
			f.put(record(3))
			f.wantUsed(1, 2, charge(10, 5, 1, 2))
			f.crash()
			f.wantUsed(1, 2, charge(10, 5, 1, 2))
		}},
	{"counting of many",
		"Usage counts what many write at once.",
		func(t *testing.T, f *fixture) {
			together(func(i int) {
				r := record(i)
				r.Scope, r.Data = hashOf(i%3+1), make([]byte, i)
				b := puts(r)
				b.Rows = rowPuts(row(r, "a", "123"))
				won(t, f.store.Commit(t.Context(), b))
				won(t, f.store.Commit(t.Context(), lazily(&checkpoint.Batch{Rows: rowPuts(row(r, "b", "1"))})))
				if i%2 == 0 {
					gone := deletes(r)
					gone.Lazy = i%4 == 0
					won(t, f.store.Commit(t.Context(), gone))
				}
			})
			counts, sums := [4]int{}, [4][]int{}
			for i := 1; i < writers; i += 2 {
				for _, scope := range []int{0, i%3 + 1} {
					counts[scope]++
					sums[scope] = append(sums[scope], i, 3, 1)
				}
			}
			for scope := range counts {
				f.wantUsed(scope, counts[scope], charge(sums[scope]...))
			}
		}},
}

// charge is what records and rows with so much data are counted as.
func charge(data ...int) (bytes int64) {
	for _, n := range data {
		bytes += int64(n) + checkpoint.Charge
	}
	return bytes
}

// wantUsed asks for the n-th scope; 0 is the zero scope.
func (f *fixture) wantUsed(n, active int, bytes int64) {
	f.t.Helper()
	f.wantUsage(hashOf(n), checkpoint.Usage{Active: active, Bytes: bytes})
}

func (f *fixture) wantUsage(scope checkpoint.Hash, want checkpoint.Usage) {
	f.t.Helper()
	got, err := f.store.Usage(f.t.Context(), scope)
	if err != nil || got != want {
		f.t.Fatalf("usage: %+v, error %v, want %+v", got, err, want)
	}
}
