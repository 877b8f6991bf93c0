package checkpointtest

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
)

// epoch is the time of most batches.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fixture is one case's store and the verbs that cases are written in; those of rows, audit and
// usage stand beside their cases. They end the case where they fail.
type fixture struct {
	h     Harness
	t     *testing.T
	store checkpoint.Store
}

func (f *fixture) check() {
	f.t.Helper()
	if f.h.Check != nil {
		f.h.Check(f.t, f.store)
	}
}

// reopen replaces the store by its durable state, and skips the case where there is none.
func (f *fixture) reopen() {
	f.t.Helper()
	if f.h.Reopen == nil {
		f.t.Skip("the store is not durable")
	}
	f.store = f.h.Reopen(f.t, f.store)
}

func (f *fixture) commit(b *checkpoint.Batch) {
	f.t.Helper()
	if err := f.store.Commit(f.t.Context(), b); err != nil {
		f.t.Fatalf("commit: %v", err)
	}
}

// put commits records, each expected at the revision before its own and at epoch 0.
func (f *fixture) put(records ...checkpoint.Record) {
	f.t.Helper()
	f.commit(puts(records...))
}

func (f *fixture) wantConflict(b *checkpoint.Batch, id checkpoint.ID) {
	f.t.Helper()
	err := f.store.Commit(f.t.Context(), b)
	conflict, ok := errors.AsType[*checkpoint.ConflictError](err)
	if !ok {
		f.t.Fatalf("commit: got %v, want a conflict", err)
	}
	if conflict.ID != id {
		f.t.Fatalf("commit: conflict of %s, want %s", conflict.ID, id)
	}
}

// wantRefused commits what no store can take.
func (f *fixture) wantRefused(b *checkpoint.Batch) {
	f.t.Helper()
	err := f.store.Commit(f.t.Context(), b)
	if !errors.Is(err, checkpoint.ErrInvalidBatch) {
		f.t.Fatalf("commit: got %v, want ErrInvalidBatch", err)
	}
}

func (f *fixture) wantRecord(want checkpoint.Record) {
	f.t.Helper()
	got, err := f.store.Load(f.t.Context(), want.ID)
	if err != nil {
		f.t.Fatalf("load %s: %v", want.ID, err)
	}
	if d := diff(want, got); d != "" {
		f.t.Fatalf("load %s (-want +got):\n%s", want.ID, d)
	}
}

func (f *fixture) wantAbsent(id checkpoint.ID) {
	f.t.Helper()
	if r, err := f.store.Load(f.t.Context(), id); !errors.Is(err, checkpoint.ErrNotFound) {
		f.t.Fatalf("load %s: got revision %d, error %v, want ErrNotFound", id, r.Revision, err)
	}
}

func (f *fixture) wantFound(want checkpoint.Record) {
	f.t.Helper()
	got, err := f.store.Find(f.t.Context(), want.Start)
	if err != nil {
		f.t.Fatalf("find record %s: %v", want.ID, err)
	}
	if d := diff(want, got); d != "" {
		f.t.Fatalf("find record %s (-want +got):\n%s", want.ID, d)
	}
}

func (f *fixture) wantNotFound(start checkpoint.Hash) {
	f.t.Helper()
	if r, err := f.store.Find(f.t.Context(), start); !errors.Is(err, checkpoint.ErrNotFound) {
		f.t.Fatalf("find: got record %s, error %v, want ErrNotFound", r.ID, err)
	}
}

// list goes through all pages, and fails where one is longer than the limit.
func (f *fixture) list(q checkpoint.Query) []checkpoint.Record {
	f.t.Helper()
	return listAll(f.t, f.store, q)
}

// fataler is what testing.T and rapid.T share.
type fataler interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
}

func listAll(t fataler, s checkpoint.Store, q checkpoint.Query) (all []checkpoint.Record) {
	t.Helper()
	limit := q.Limit
	if limit == 0 {
		limit = 100
	}
	for {
		page, err := s.List(t.Context(), q)
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		if len(page.Records) > limit {
			t.Fatalf("list: a page of %d records, limit %d", len(page.Records), limit)
		}
		all = append(all, page.Records...)
		if page.Next == "" {
			return all
		}
		if page.Next == q.After {
			t.Fatalf("list: the page after %q is the same one", q.After)
		}
		q.After = page.Next
	}
}

func (f *fixture) wantList(q checkpoint.Query, want ...checkpoint.Record) {
	f.t.Helper()
	if d := diff(want, f.list(q)); d != "" {
		f.t.Fatalf("list (-want +got):\n%s", d)
	}
}

func (f *fixture) join(proposed checkpoint.Ledger) (checkpoint.Ledger, checkpoint.Member) {
	f.t.Helper()
	ledger, member, err := f.store.Join(f.t.Context(), proposed)
	if err != nil {
		f.t.Fatalf("join: %v", err)
	}
	return ledger, member
}

func (f *fixture) wantAlive(m checkpoint.Member, owner string, want bool) {
	f.t.Helper()
	alive, err := m.Alive(f.t.Context(), owner)
	if err != nil {
		f.t.Fatalf("ask for owner %q: %v", owner, err)
	}
	if alive != want {
		f.t.Fatalf("owner %q: alive is %t, want %t", owner, alive, want)
	}
}

// diff compares records; data that is nil and data that is empty are the same.
func diff(want, got any) string {
	return cmp.Diff(want, got, cmp.Transformer("data", func(data []byte) string { return string(data) }),
		cmp.Transformer("records", func(records []checkpoint.Record) []checkpoint.Record {
			return append([]checkpoint.Record{}, records...)
		}))
}

// puts is a batch of records, each expected at the revision before its own and at epoch 0.
func puts(records ...checkpoint.Record) *checkpoint.Batch {
	b := &checkpoint.Batch{Time: epoch}
	for _, r := range records {
		b.Puts = append(b.Puts, checkpoint.Put{Record: r})
	}
	return b
}

func lazily(b *checkpoint.Batch) *checkpoint.Batch {
	b.Lazy = true
	return b
}

func deletes(records ...checkpoint.Record) *checkpoint.Batch {
	b := &checkpoint.Batch{Time: epoch}
	for _, r := range records {
		b.Deletes = append(b.Deletes, checkpoint.Delete{ID: r.ID, Revision: r.Revision})
	}
	return b
}

// idOf is the n-th id of a case; ids sort like their numbers.
func idOf(n int) (id checkpoint.ID) {
	binary.BigEndian.PutUint64(id[:], uint64(epoch.UnixMilli())<<16)
	binary.BigEndian.PutUint32(id[8:], uint32(n))
	return id
}

func hashOf(n int) (h checkpoint.Hash) {
	binary.BigEndian.PutUint32(h[:], uint32(n))
	return h
}

// record is the n-th record of a case at its first revision: open, in scope 1, without start hash,
// due, claim.
func record(n int) checkpoint.Record {
	return checkpoint.Record{ID: idOf(n), Revision: 1, Status: checkpoint.Open, Scope: hashOf(1),
		Data: []byte{byte(n), 1}}
}

// next is the record at its next revision.
func next(r checkpoint.Record) checkpoint.Record {
	r.Revision++
	r.Data = append([]byte("next "), r.Data...)
	return r
}
