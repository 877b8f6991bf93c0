package checkpointtest

import (
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

var listing = []promise{
	{"list by scope",
		"List returns the records of one scope oldest first; the zero Query selects all.",
		func(t *testing.T, f *fixture) {
			var one, two []checkpoint.Record
			for _, n := range []int{3, 1, 4, 2} {
				r := record(n)
				r.Status = []checkpoint.Status{checkpoint.Open, checkpoint.Finished}[n%2]
				f.put(r)
				r.ID, r.Scope = idOf(n+10), hashOf(2)
				f.put(r)
			}
			for n := 1; n <= 4; n++ {
				r := record(n)
				r.Status = []checkpoint.Status{checkpoint.Open, checkpoint.Finished}[n%2]
				one = append(one, r)
				r.ID, r.Scope = idOf(n+10), hashOf(2)
				two = append(two, r)
			}
			f.wantList(checkpoint.Query{Scope: hashOf(1)}, one...)
			f.wantList(checkpoint.Query{Scope: hashOf(2)}, two...)
			f.wantList(checkpoint.Query{Scope: hashOf(3)})
			if all := f.list(checkpoint.Query{}); len(all) != 8 {
				t.Fatalf("list: %d records, want all 8", len(all))
			}
		}},
	{"list by status",
		"Statuses selects records of these statuses.",
		func(t *testing.T, f *fixture) {
			all := []checkpoint.Status{
				checkpoint.Started, checkpoint.Open, checkpoint.Answered, checkpoint.Running,
				checkpoint.Finished, checkpoint.Failed, checkpoint.Expired, checkpoint.Abandoned,
				checkpoint.Remembered, checkpoint.Tombstone,
			}
			var records []checkpoint.Record
			for i, status := range all {
				r := record(i)
				r.Status = status
				records = append(records, r)
			}
			f.put(records...)
			for i, status := range all {
				f.wantList(checkpoint.Query{Scope: hashOf(1), Statuses: []checkpoint.Status{status}}, records[i])
				f.wantList(checkpoint.Query{Statuses: []checkpoint.Status{status}}, records[i])
			}
			f.wantList(checkpoint.Query{Statuses: []checkpoint.Status{checkpoint.Failed, checkpoint.Open}}, records[1],
				records[5])
		}},
	{"list by due",
		"DueBefore selects records whose Due is set and not after it, and orders them by Due.",
		func(t *testing.T, f *fixture) {
			never, late, early, same := record(1), record(2), record(3), record(4)
			late.Due, early.Due, same.Due = epoch.Add(time.Hour), epoch, epoch
			same.Scope, same.Status = hashOf(2), checkpoint.Finished
			f.put(never, late, early, same)
			f.wantList(checkpoint.Query{DueBefore: epoch.Add(-time.Millisecond)})
			f.wantList(checkpoint.Query{DueBefore: epoch}, early, same)
			f.wantList(checkpoint.Query{DueBefore: epoch.Add(time.Hour - 1)}, early, same)
			f.wantList(checkpoint.Query{DueBefore: epoch.Add(time.Hour)}, early, same, late)
			f.wantList(checkpoint.Query{DueBefore: epoch.Add(time.Hour), Scope: hashOf(1)}, early, late)
			f.wantList(checkpoint.Query{DueBefore: epoch, Statuses: []checkpoint.Status{checkpoint.Finished}}, same)
			f.wantList(checkpoint.Query{DueBefore: epoch.Add(time.Hour), Limit: 1}, early, same, late)
		}},
	{"due in another zone",
		"Due is returned in UTC, whatever zone it was given in.",
		func(t *testing.T, f *fixture) {
			r := record(1)
			r.Due = epoch.In(time.FixedZone("east", 3600))
			f.put(r)
			got, err := f.store.Load(t.Context(), r.ID)
			if err != nil || got.Due != epoch {
				t.Fatalf("load: due %v, error %v, want %v", got.Due, err, epoch)
			}
		}},
	{"due changes",
		"A record is listed under its newest Due only.",
		func(t *testing.T, f *fixture) {
			r := record(1)
			r.Due = epoch
			f.put(r)
			r = next(r)
			r.Due = epoch.Add(time.Hour)
			f.put(r)
			f.wantList(checkpoint.Query{DueBefore: epoch})
			f.wantList(checkpoint.Query{DueBefore: epoch.Add(time.Hour)}, r)
			r = next(r)
			r.Due = time.Time{}
			f.commit(lazily(puts(r)))
			f.wantList(checkpoint.Query{DueBefore: epoch.Add(time.Hour)})
		}},
	{"pages",
		"A page has at most Limit records, and Next is empty on the last page; the pages together hold every " +
			"record once, in order.",
		func(t *testing.T, f *fixture) {
			var records []checkpoint.Record
			for n := range 23 {
				r := record(n)
				r.Due = epoch.Add(time.Duration(n/3) * time.Second)
				if n%3 == 0 {
					r.Status = checkpoint.Failed
				}
				records = append(records, r)
			}
			f.put(records...)
			for _, limit := range []int{1, 2, 5, 22, 23, 24, 5000} {
				f.wantList(checkpoint.Query{Scope: hashOf(1), Limit: limit}, records...)
				f.wantList(checkpoint.Query{Limit: limit}, records...)
				f.wantList(checkpoint.Query{DueBefore: epoch.Add(time.Hour), Limit: limit}, records...)
			}
			page, err := f.store.List(t.Context(), checkpoint.Query{Limit: 23})
			if err != nil || page.Next != "" {
				t.Fatalf("list: next %q, error %v after a page that has all", page.Next, err)
			}
		}},
	{"default limit",
		"Limit 0 means 100.",
		func(t *testing.T, f *fixture) {
			var records []checkpoint.Record
			for n := range 101 {
				records = append(records, record(n))
			}
			f.put(records...)
			page, err := f.store.List(t.Context(), checkpoint.Query{})
			if err != nil || len(page.Records) != 100 || page.Next == "" {
				t.Fatalf("list: %d records, next %q, error %v, want 100 and a next", len(page.Records), page.Next, err)
			}
			f.wantList(checkpoint.Query{}, records...)
		}},
	{"pages while writing",
		"Records that are written while a caller goes through pages may be missed or seen in their newer form, " +
			"none is seen twice.",
		func(t *testing.T, f *fixture) {
			pagesWhileWriting(t, f)
		}},
	{"many that do not match",
		"A listing that selects few of many records finds them all.",
		func(t *testing.T, f *fixture) {
			var records []checkpoint.Record
			for n := range 6000 {
				r := record(n)
				if n == 20 || n == 5990 {
					r.Status = checkpoint.Answered
				}
				records = append(records, r)
			}
			f.put(records...)
			f.wantList(checkpoint.Query{Scope: hashOf(1), Statuses: []checkpoint.Status{checkpoint.Answered}},
				records[20], records[5990])
		}},
}

func pagesWhileWriting(t *testing.T, f *fixture) {
	const count = 60
	records := make([]checkpoint.Record, count)
	for n := range records {
		records[n] = record(n)
	}
	f.put(records...)
	seen := make(map[checkpoint.ID]int)
	q := checkpoint.Query{Scope: hashOf(1), Limit: 7}
	for {
		page, err := f.store.List(t.Context(), q)
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		for _, r := range page.Records {
			seen[r.ID]++
			// What was seen ends, every other one lazily; what is still to come is written too.
			n := int(r.ID[11])
			for _, i := range []int{n, count - 1 - n} {
				records[i] = next(records[i])
				records[i].Status = []checkpoint.Status{checkpoint.Finished, checkpoint.Running}[i%2]
				b := puts(records[i])
				b.Lazy = n%2 == 0
				f.commit(b)
			}
		}
		if page.Next == "" {
			break
		}
		q.After = page.Next
	}
	for _, r := range records {
		if seen[r.ID] != 1 {
			t.Errorf("record %s was seen %d times, want once", r.ID, seen[r.ID])
		}
	}
}
