package checkpointtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

var refusing = []promise{
	{"malformed batches",
		"A record appears in a batch at most once, has an id, a revision and a status, and a Due in whole " +
			"milliseconds; anything else is refused, and nothing of it written.",
		func(t *testing.T, f *fixture) {
			kept := record(1)
			f.put(kept)
			broken := func(change func(r *checkpoint.Record)) checkpoint.Record {
				r := record(2)
				change(&r)
				return r
			}
			both := puts(next(kept))
			both.Deletes = deletes(kept).Deletes
			for name, b := range map[string]*checkpoint.Batch{
				"put twice":          puts(next(kept), next(kept)),
				"put twice in a row": puts(next(kept), next(next(kept))),
				"put and delete":     both,
				"delete twice":       deletes(kept, kept),
				"zero id":            puts(broken(func(r *checkpoint.Record) { r.ID = checkpoint.ID{} })),
				"revision 0":         puts(broken(func(r *checkpoint.Record) { r.Revision = 0 })),
				"status 0":           puts(broken(func(r *checkpoint.Record) { r.Status = 0 })),
				"unknown status":     puts(broken(func(r *checkpoint.Record) { r.Status = 15 })),
				"due in nanoseconds": puts(broken(func(r *checkpoint.Record) { r.Due = epoch.Add(time.Microsecond) })),
				"due before 1970":    puts(broken(func(r *checkpoint.Record) { r.Due = time.UnixMilli(-5) })),
				"delete zero id":     deletes(checkpoint.Record{Revision: 1}),
				"delete revision 0":  deletes(checkpoint.Record{ID: kept.ID}),
				"good, then bad":     puts(next(kept), broken(func(r *checkpoint.Record) { r.Status = 0 })),
			} {
				for _, lazy := range []bool{false, true} {
					b.Lazy = lazy
					t.Log(name)
					f.wantRefused(b)
					f.wantList(checkpoint.Query{}, kept)
				}
			}
		}},
	{"too much data",
		"Data of more than 16 MiB is refused.",
		func(t *testing.T, f *fixture) {
			r := record(1)
			r.Data = make([]byte, 16<<20+1)
			f.wantRefused(puts(r))
			f.wantAbsent(r.ID)
		}},
	{"empty batch",
		"A batch without records is applied: there is nothing to conflict.",
		func(t *testing.T, f *fixture) {
			f.commit(&checkpoint.Batch{Time: epoch})
			f.commit(&checkpoint.Batch{Time: epoch, Lazy: true})
			f.commit(&checkpoint.Batch{})
		}},
	{"malformed queries",
		"A limit below 0, and a position that is not from a page of the same query, are refused.",
		func(t *testing.T, f *fixture) {
			a, b := record(1), record(2)
			a.Due, b.Due = epoch, epoch
			f.put(a, b)
			page, err := f.store.List(t.Context(), checkpoint.Query{Limit: 1})
			if err != nil {
				t.Fatalf("list: %v", err)
			}
			for _, q := range []checkpoint.Query{
				{Limit: -1},
				{After: "?"},
				{After: "AAAA"},
				{After: page.Next, DueBefore: epoch},
				{After: page.Next, Scope: hashOf(9)},
			} {
				if _, err := f.store.List(t.Context(), q); !errors.Is(err, checkpoint.ErrInvalidQuery) {
					t.Errorf("list %+v: got %v, want ErrInvalidQuery", q, err)
				}
			}
		}},
	{"ended context",
		"Every method returns the error of a context that has ended.",
		func(t *testing.T, f *fixture) {
			f.put(record(1))
			_, m := f.join(checkpoint.Ledger{ID: [16]byte{1}})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err1 := f.store.Load(ctx, idOf(1))
			_, err2 := f.store.Find(ctx, hashOf(1))
			_, err3 := f.store.List(ctx, checkpoint.Query{})
			_, _, err4 := f.store.Join(ctx, checkpoint.Ledger{ID: [16]byte{1}})
			_, err5 := m.Alive(ctx, m.Owner())
			err6 := f.store.Commit(ctx, puts(record(2)))
			err7 := f.store.Commit(ctx, lazily(puts(next(record(1)))))
			_, err8 := f.store.Rows(ctx, idOf(1), "", 1)
			_, err9 := f.store.Audit(ctx, 0, 1)
			_, err10 := f.store.Usage(ctx, hashOf(1))
			for i, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8, err9, err10} {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("call %d: got %v, want context.Canceled", i+1, err)
				}
			}
		}},
}
