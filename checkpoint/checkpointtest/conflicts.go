package checkpointtest

import (
	"testing"

	"github.com/parley-go/parley/checkpoint"
)

var conflicts = []promise{
	{"revision expected",
		"The stored record must be at the revision before the new one (none, for revision 1); else the whole batch " +
			"is a conflict.",
		func(t *testing.T, f *fixture) {
			first := record(1)
			f.wantConflict(puts(next(first)), first.ID)
			f.put(first)
			f.wantConflict(puts(first), first.ID)
			f.wantConflict(puts(next(next(first))), first.ID)
			f.put(next(first))
			f.wantConflict(puts(next(first)), first.ID)
			f.wantRecord(next(first))
		}},
	{"epoch expected",
		"The stored record's claim must be at Epoch; else the whole batch is a conflict.",
		func(t *testing.T, f *fixture) {
			first := record(1)
			first.Claim.Epoch = 4
			f.put(first)
			for _, epoch := range []uint64{0, 3, 5} {
				f.wantConflict(&checkpoint.Batch{Puts: []checkpoint.Put{{Record: next(first), Epoch: epoch}}}, first.ID)
			}
			f.wantRecord(first)
			f.commit(&checkpoint.Batch{Puts: []checkpoint.Put{{Record: next(first), Epoch: 4}}})
			f.wantRecord(next(first))
		}},
	{"epoch of nothing",
		"A record that does not exist is at epoch 0.",
		func(t *testing.T, f *fixture) {
			f.wantConflict(&checkpoint.Batch{Puts: []checkpoint.Put{{Record: record(1), Epoch: 1}}}, idOf(1))
			f.wantAbsent(idOf(1))
		}},
	{"conflict writes nothing",
		"A ConflictError says that nothing of a batch was written.",
		func(t *testing.T, f *fixture) {
			a, b, c := fullRecord(1), fullRecord(2), fullRecord(3)
			f.put(a, b)
			for _, lazy := range []bool{false, true} {
				f.wantConflict(&checkpoint.Batch{
					Lazy:    lazy,
					Puts:    []checkpoint.Put{{Record: next(a), Epoch: a.Claim.Epoch}, {Record: c}, {Record: b}},
					Deletes: nil,
				}, b.ID)
				f.wantConflict(&checkpoint.Batch{
					Lazy:    lazy,
					Puts:    []checkpoint.Put{{Record: next(a), Epoch: a.Claim.Epoch}, {Record: c}},
					Deletes: []checkpoint.Delete{{ID: b.ID, Revision: 2}},
				}, b.ID)
				f.wantRecord(a)
				f.wantRecord(b)
				f.wantAbsent(c.ID)
				f.wantNotFound(c.Start)
				f.wantList(checkpoint.Query{}, a, b)
			}
		}},
	{"delete expects",
		"A Delete of a record that is not at Revision, or not there, is a conflict.",
		func(t *testing.T, f *fixture) {
			a := record(1)
			f.wantConflict(deletes(a), a.ID)
			f.put(a)
			f.put(next(a))
			f.wantConflict(deletes(a), a.ID)
			f.wantConflict(deletes(next(next(a))), a.ID)
			f.wantRecord(next(a))
			f.commit(deletes(next(a)))
			f.wantConflict(deletes(next(a)), a.ID)
		}},
	{"start hash is unique",
		"A start hash that belongs to another record is a conflict.",
		func(t *testing.T, f *fixture) {
			a, b := record(1), record(2)
			a.Start, b.Start = hashOf(5), hashOf(5)
			f.wantConflict(puts(a, b), b.ID)
			f.wantAbsent(a.ID)
			f.put(a)
			f.wantConflict(puts(b), b.ID)
			f.wantAbsent(b.ID)
			f.wantFound(a)
			b.Start = checkpoint.Hash{}
			f.put(b)
			b = next(b)
			b.Start = a.Start
			f.wantConflict(puts(b), b.ID)
			f.wantConflict(lazily(puts(b)), b.ID)
			f.put(next(a))
			f.wantFound(next(a))
		}},
	{"start hash is freed",
		"The start hash of a record that was deleted, or that gave it up, belongs to nobody, also within one batch.",
		func(t *testing.T, f *fixture) {
			a, b, c := record(1), record(2), record(3)
			a.Start, b.Start, c.Start = hashOf(5), hashOf(5), hashOf(5)
			f.put(a)
			f.commit(deletes(a))
			f.wantNotFound(a.Start)
			f.put(b)
			f.wantFound(b)
			bare := next(b)
			bare.Start = checkpoint.Hash{}
			f.put(c, bare)
			f.wantFound(c)
			replace := puts(a)
			replace.Deletes = deletes(c).Deletes
			f.commit(replace)
			f.wantFound(a)
			f.wantAbsent(c.ID)
		}},
	{"no start hash",
		"The zero start hash is no start hash: any number of records have it, and Find does not find them.",
		func(t *testing.T, f *fixture) {
			f.put(record(1), record(2))
			f.wantNotFound(checkpoint.Hash{})
		}},
}
