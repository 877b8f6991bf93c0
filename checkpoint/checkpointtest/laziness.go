package checkpointtest

import (
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// crash replaces the store by what a kill would leave of it, and skips the case where that cannot
// be known.
func (f *fixture) crash() {
	f.t.Helper()
	if f.h.Crash == nil {
		f.t.Skip("the harness cannot crash the store")
	}
	f.store = f.h.Crash(f.t, f.store)
}

var laziness = []promise{
	{"lazy is visible",
		"A lazy Commit returns when the batch is checked and visible to every reader of this store.",
		func(t *testing.T, f *fixture) {
			a, b, c := fullRecord(1), fullRecord(2), fullRecord(3)
			f.put(a, b, c)
			ended := next(a)
			ended.Status, ended.Due = checkpoint.Finished, b.Due
			f.commit(&checkpoint.Batch{
				Lazy:    true,
				Puts:    []checkpoint.Put{{Record: ended, Epoch: a.Claim.Epoch}},
				Deletes: []checkpoint.Delete{{ID: c.ID, Revision: 1}},
			})
			f.wantRecord(ended)
			f.wantFound(ended)
			f.wantAbsent(c.ID)
			f.wantNotFound(c.Start)
			f.wantList(checkpoint.Query{}, ended, b)
			f.wantList(checkpoint.Query{Scope: a.Scope, Statuses: []checkpoint.Status{checkpoint.Open}})
			f.wantList(checkpoint.Query{Scope: a.Scope, Statuses: []checkpoint.Status{checkpoint.Finished}}, ended)
			f.wantList(checkpoint.Query{DueBefore: a.Due})
			f.wantList(checkpoint.Query{DueBefore: b.Due, Limit: 1}, ended, b)
		}},
	{"lazy due",
		"A lazy batch that moves a record's Due, or takes it away, is seen at once by who lists what is due.",
		func(t *testing.T, f *fixture) {
			a, b := record(1), record(2)
			a.Due, b.Due = epoch.Add(24*time.Hour), time.Time{}
			f.put(a, b)
			sooner, due := next(a), next(b)
			sooner.Due = a.Due.Add(-time.Hour)
			due.Due = a.Due.Add(-time.Minute)
			f.commit(lazily(puts(sooner)))
			f.commit(lazily(puts(due)))
			f.wantList(checkpoint.Query{DueBefore: sooner.Due.Add(-time.Millisecond)})
			f.wantList(checkpoint.Query{DueBefore: sooner.Due}, sooner)
			f.wantList(checkpoint.Query{DueBefore: due.Due}, sooner, due)
			later, never := next(sooner), next(due)
			later.Due = a.Due.Add(time.Hour)
			never.Due = time.Time{}
			f.commit(lazily(puts(later)))
			f.commit(lazily(puts(never)))
			f.wantList(checkpoint.Query{DueBefore: later.Due.Add(-time.Millisecond)})
			f.wantList(checkpoint.Query{DueBefore: later.Due}, later)
		}},
	{"lazy create",
		"A lazy batch may do all that another may: create, take a start hash, delete.",
		func(t *testing.T, f *fixture) {
			a := fullRecord(1)
			f.commit(lazily(puts(a)))
			f.wantRecord(a)
			f.wantFound(a)
			f.commit(lazily(deletes(a)))
			f.wantAbsent(a.ID)
			b := fullRecord(2)
			b.Start = a.Start
			f.commit(lazily(puts(b)))
			f.wantFound(b)
			f.commit(lazily(puts(a2(a))))
			f.wantRecord(a2(a))
		}},
	{"lazy is checked",
		"A lazy batch is compared with what is stored, lazy writes included, and a conflict is told at once.",
		func(t *testing.T, f *fixture) {
			a := record(1)
			f.wantConflict(lazily(puts(next(a))), a.ID)
			f.put(a)
			f.commit(lazily(puts(next(a))))
			f.wantConflict(lazily(puts(next(a))), a.ID)
			f.wantConflict(puts(next(a)), a.ID)
			f.wantConflict(lazily(deletes(a)), a.ID)
			f.put(next(next(a)))
			f.wantConflict(lazily(puts(next(next(a)))), a.ID)
			f.wantRecord(next(next(a)))
			f.commit(lazily(deletes(next(next(a)))))
			f.wantConflict(lazily(puts(next(next(next(a))))), a.ID)
			f.put(a)
			f.wantRecord(a)
		}},
	{"lazy is durable when closed",
		"A lazy batch is durable when the store is closed.",
		func(t *testing.T, f *fixture) {
			a, b := fullRecord(1), record(2)
			f.put(a, b)
			ended := next(a)
			ended.Status = checkpoint.Finished
			f.commit(&checkpoint.Batch{Lazy: true, Puts: []checkpoint.Put{{Record: ended, Epoch: a.Claim.Epoch}}})
			f.commit(lazily(deletes(b)))
			f.reopen()
			f.wantRecord(ended)
			f.wantFound(ended)
			f.wantAbsent(b.ID)
			f.wantList(checkpoint.Query{}, ended)
		}},
	{"lazy is durable with the next",
		"A lazy batch is durable with the next commit that is not lazy.",
		func(t *testing.T, f *fixture) {
			a, b := record(1), record(2)
			f.put(a)
			f.commit(lazily(puts(next(a))))
			f.put(b)
			f.crash()
			f.wantRecord(next(a))
			f.wantRecord(b)
		}},
	{"lazy, then not",
		"A commit on top of a lazy one is applied after it.",
		func(t *testing.T, f *fixture) {
			a := record(1)
			f.put(a)
			for range 20 {
				f.commit(lazily(puts(next(a))))
				a = next(next(a))
				a.Data = a.Data[:10]
				f.put(a)
			}
			f.wantRecord(a)
			f.reopen()
			f.wantRecord(a)
		}},
}

// a2 is record a with a start hash of its own.
func a2(a checkpoint.Record) checkpoint.Record {
	a.Start = hashOf(4711)
	return a
}
