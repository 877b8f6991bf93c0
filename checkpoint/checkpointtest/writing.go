package checkpointtest

import (
	"bytes"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

var writing = []promise{
	{"create",
		"Commit applies the batch whole, durably, and then returns nil; Load sees every commit that returned " +
			"before it was called.",
		func(t *testing.T, f *fixture) {
			a, b := fullRecord(1), record(2)
			f.put(a, b)
			f.wantRecord(a)
			f.wantRecord(b)
		}},
	{"not found",
		"Load returns the record, or ErrNotFound.",
		func(t *testing.T, f *fixture) {
			f.wantAbsent(idOf(1))
			f.put(record(1))
			f.wantAbsent(idOf(2))
		}},
	{"write again",
		"A record is at revision 1 when created and one more with every write, which replaces all of it.",
		func(t *testing.T, f *fixture) {
			first := fullRecord(1)
			f.put(first)
			second := checkpoint.Record{ID: first.ID, Revision: 2, Status: checkpoint.Finished, Scope: first.Scope}
			f.commit(&checkpoint.Batch{Puts: []checkpoint.Put{{Record: second, Epoch: first.Claim.Epoch}}})
			f.wantRecord(second)
			f.wantNotFound(first.Start)
		}},
	{"durable",
		"A commit that is not lazy is durable when it returns.",
		func(t *testing.T, f *fixture) {
			a, b, c := fullRecord(1), record(2), record(3)
			f.put(a, b, c)
			f.put(next(b))
			f.commit(deletes(c))
			f.reopen()
			f.wantRecord(a)
			f.wantRecord(next(b))
			f.wantAbsent(c.ID)
			f.wantFound(a)
			f.wantList(checkpoint.Query{Scope: a.Scope}, a)
			f.wantList(checkpoint.Query{DueBefore: a.Due}, a)
		}},
	{"survives a kill",
		"A commit that is not lazy is durable when it returns, also where the store is never closed.",
		func(t *testing.T, f *fixture) {
			a, b := fullRecord(1), record(2)
			f.put(a)
			f.put(b)
			f.crash()
			f.wantRecord(a)
			f.wantRecord(b)
		}},
	{"delete",
		"A Delete removes a record that is at Revision.",
		func(t *testing.T, f *fixture) {
			a, b := fullRecord(1), record(2)
			f.put(a, b)
			f.commit(deletes(a))
			f.wantAbsent(a.ID)
			f.wantNotFound(a.Start)
			f.wantRecord(b)
			f.wantList(checkpoint.Query{}, b)
			f.wantList(checkpoint.Query{DueBefore: a.Due})
		}},
	{"delete and create",
		"A record that was deleted can be created again, at revision 1.",
		func(t *testing.T, f *fixture) {
			a := fullRecord(1)
			f.put(a)
			f.commit(deletes(a))
			f.put(a)
			f.wantRecord(a)
		}},
	{"data is copied",
		"A store keeps nothing of what it was given, and what it returns is the caller's to keep.",
		func(t *testing.T, f *fixture) {
			want, lazyWant := fullRecord(1), fullRecord(2)
			lazyWant.Start = hashOf(77)
			f.put(lazyWant)
			lazyWant.Revision = 2
			for _, r := range []checkpoint.Record{want, lazyWant} {
				mine := r
				mine.Data = bytes.Clone(r.Data)
				f.commit(&checkpoint.Batch{Lazy: r.Revision > 1,
					Puts: []checkpoint.Put{{Record: mine, Epoch: r.Claim.Epoch * (r.Revision - 1)}}})
				clear(mine.Data)
				for range 2 {
					f.wantRecord(r)
					f.wantFound(r)
					loaded, _ := f.store.Load(t.Context(), r.ID)
					clear(loaded.Data)
					found, _ := f.store.Find(t.Context(), r.Start)
					clear(found.Data)
					for _, listed := range f.list(checkpoint.Query{}) {
						clear(listed.Data)
					}
				}
			}
		}},
	{"large data",
		"Data of any size up to mebibytes is kept, and may grow and shrink.",
		func(t *testing.T, f *fixture) {
			r := record(1)
			for i, size := range []int{10, 1 << 20, 100 << 10, 3 << 20, 0, 65 << 10} {
				r.Revision = uint64(i + 1)
				r.Data = bytes.Repeat([]byte{byte(i)}, size)
				f.put(r)
				f.wantRecord(r)
				f.wantList(checkpoint.Query{}, r)
			}
			f.commit(deletes(r))
			f.wantAbsent(r.ID)
		}},
	{"watch",
		"Watch returns a channel that is closed after the next commit that touches the record.",
		func(t *testing.T, f *fixture) {
			watcher, ok := f.store.(checkpoint.Watcher)
			if !ok {
				t.Skip("the store does not watch")
			}
			a := record(1)
			for _, b := range []*checkpoint.Batch{puts(a), lazily(puts(next(a))), deletes(next(a))} {
				one, stopOne := watcher.Watch(a.ID)
				two, stopTwo := watcher.Watch(a.ID)
				f.commit(b)
				wait(t, one)
				wait(t, two)
				stopOne()
				stopTwo()
				stopTwo()
			}
		}},
}

// fullRecord is like record, with every field set.
func fullRecord(n int) checkpoint.Record {
	r := record(n)
	r.Scope, r.Start = hashOf(1000+n), hashOf(n)
	r.Due = epoch.Add(time.Duration(n)*time.Hour + time.Millisecond)
	r.Claim = checkpoint.Claim{Owner: "somebody", Epoch: 7, Attempt: 3}
	r.Data = []byte("{\"v\":1,\"\x00\xff\"}")
	return r
}

// wait ends the test where the channel is not closed in good time.
func wait(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Fatal("watch: not woken within ten seconds")
	}
}
