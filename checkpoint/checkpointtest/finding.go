package checkpointtest

import "testing"

var finding = []promise{
	{"find",
		"Find returns the record with that start hash, or ErrNotFound.",
		func(t *testing.T, f *fixture) {
			a, b := fullRecord(1), fullRecord(2)
			f.wantNotFound(a.Start)
			f.put(a, b)
			f.wantFound(a)
			f.wantFound(b)
			f.wantNotFound(hashOf(3))
		}},
	{"find the newest",
		"Find returns the record as Load does: in its newest form.",
		func(t *testing.T, f *fixture) {
			a := record(1)
			a.Start = hashOf(1)
			f.put(a)
			f.put(next(a))
			f.wantFound(next(a))
			f.commit(lazily(puts(next(next(a)))))
			f.wantFound(next(next(a)))
			f.commit(lazily(deletes(next(next(a)))))
			f.wantNotFound(a.Start)
		}},
	{"start hash changes",
		"A record is found under the start hash of its newest form only.",
		func(t *testing.T, f *fixture) {
			a := record(1)
			a.Start = hashOf(1)
			f.put(a)
			b := next(a)
			b.Start = hashOf(2)
			f.put(b)
			f.wantNotFound(a.Start)
			f.wantFound(b)
			c := next(b)
			c.Start = hashOf(3)
			f.commit(lazily(puts(c)))
			f.wantNotFound(b.Start)
			f.wantFound(c)
		}},
}
