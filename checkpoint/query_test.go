package checkpoint_test

import (
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
)

// listed has records of two scopes, with and without a due time, in the order of a query by scope.
func listed() []checkpoint.Record {
	due := time.UnixMilli(5000).UTC()
	return []checkpoint.Record{
		{ID: checkpoint.ID{1}, Scope: checkpoint.Hash{1}, Status: checkpoint.Open, Due: due.Add(time.Second)},
		{ID: checkpoint.ID{3}, Scope: checkpoint.Hash{1}, Status: checkpoint.Finished, Due: due},
		{ID: checkpoint.ID{5}, Scope: checkpoint.Hash{1}, Status: checkpoint.Running},
		{ID: checkpoint.ID{2}, Scope: checkpoint.Hash{2}, Status: checkpoint.Open, Due: due},
		{ID: checkpoint.ID{4}, Scope: checkpoint.Hash{2}, Status: checkpoint.Expired, Due: due.Add(time.Hour)},
	}
}

func ids(records []checkpoint.Record) (first []byte) {
	for _, r := range records {
		first = append(first, r.ID[0])
	}
	return first
}

func TestQuery(t *testing.T) {
	due := time.UnixMilli(5000)
	for name, tc := range map[string]struct {
		q           checkpoint.Query
		want        []byte
		live, ended bool
	}{
		"all":      {checkpoint.Query{}, []byte{1, 3, 5, 2, 4}, true, true},
		"scope":    {checkpoint.Query{Scope: checkpoint.Hash{2}}, []byte{2, 4}, true, true},
		"no scope": {checkpoint.Query{Scope: checkpoint.Hash{3}}, nil, true, true},
		"live status": {checkpoint.Query{Statuses: []checkpoint.Status{checkpoint.Open,
			checkpoint.Started}}, []byte{1, 2}, true, false},
		"ended": {checkpoint.Query{Statuses: []checkpoint.Status{checkpoint.Finished,
			checkpoint.Expired}}, []byte{3, 4}, false, true},
		"both": {checkpoint.Query{Statuses: []checkpoint.Status{checkpoint.Finished,
			checkpoint.Running}}, []byte{3, 5}, true, true},
		"due":                      {checkpoint.Query{DueBefore: due.Add(time.Second)}, []byte{2, 3, 1}, true, true},
		"due between milliseconds": {checkpoint.Query{DueBefore: due.Add(time.Second - 1)}, []byte{2, 3}, true, true},
		"due, scope and status": {
			checkpoint.Query{DueBefore: due, Scope: checkpoint.Hash{1},
				Statuses: []checkpoint.Status{checkpoint.Finished}},
			[]byte{3}, false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.q.Live() != tc.live || tc.q.Ended() != tc.ended {
				t.Errorf("live %v, ended %v, want %v, %v", tc.q.Live(), tc.q.Ended(), tc.live, tc.ended)
			}
			var found []checkpoint.Record
			for _, r := range listed() {
				if tc.q.Matches(&r) {
					found = append(found, r)
				}
			}
			page := tc.q.Page(found, nil)
			if diff := cmp.Diff(tc.want, ids(page.Records)); diff != "" || page.Next != "" {
				t.Errorf("next %q, records (-want +got):\n%s", page.Next, diff)
			}
		})
	}
}

func TestPageLimit(t *testing.T) {
	for limit, want := range map[int]int{0: 100, 1: 1, 999: 999, 1000: 1000, 1 << 40: 1000} {
		q := checkpoint.Query{Limit: limit}
		if got := q.PageLimit(); got != want {
			t.Errorf("limit %d: pages of %d, want %d", limit, got, want)
		}
	}
}

// A page ends where the store broke off, or where it is full, and the next one goes on behind that
// place.
func TestPageNext(t *testing.T) {
	for name, tc := range map[string]struct {
		limit   int
		reached int // index in what is listed; -1: everything was gone through
		want    []byte
		next    int // index of the record behind which the next page begins; -1: there is none
	}{
		"everything":              {5, -1, []byte{1, 3, 5, 2, 4}, -1},
		"full":                    {2, -1, []byte{1, 3}, 1},
		"broken off":              {5, 2, []byte{1, 3, 5}, 2},
		"broken off, but full":    {2, 3, []byte{1, 3}, 1},
		"broken off at its limit": {3, 2, []byte{1, 3, 5}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			q := checkpoint.Query{Limit: tc.limit}
			records := listed()
			var reached *checkpoint.Record
			if tc.reached >= 0 {
				reached = &listed()[tc.reached]
			}
			page := q.Page(records, reached)
			if diff := cmp.Diff(tc.want, ids(page.Records)); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			q.After = page.Next
			position, err := q.Position()
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range listed() {
				behind := position == nil || q.Compare(&r, position) > 0
				if want := tc.next < 0 && position == nil || tc.next >= 0 && i > tc.next; behind != want {
					t.Errorf("record %d is behind the page: %v, want %v", r.ID[0], behind, want)
				}
			}
		})
	}
	// Where the store found nothing, the page is empty and goes on.
	q := checkpoint.Query{}
	if page := q.Page(nil, &listed()[3]); len(page.Records) > 0 || page.Next == "" {
		t.Errorf("%d records, next %q", len(page.Records), page.Next)
	}
}

func TestPositionIsOfTheQuery(t *testing.T) {
	r := listed()[0]
	byScope := checkpoint.Query{Scope: r.Scope}
	byDue := checkpoint.Query{DueBefore: r.Due}
	for name, q := range map[string]checkpoint.Query{
		"negative limit":   {Limit: -1},
		"no base64":        {After: "!"},
		"short":            {After: base64.RawURLEncoding.EncodeToString([]byte("short"))},
		"of another scope": {Scope: checkpoint.Hash{2}, After: byScope.Next(&r)},
		"by due":           {After: byDue.Next(&r)},
		"by scope":         {DueBefore: r.Due, After: byScope.Next(&r)},
	} {
		if position, err := q.Position(); position != nil || !errors.Is(err, checkpoint.ErrInvalidQuery) {
			t.Errorf("%s: position %v, error %v, want ErrInvalidQuery", name, position, err)
		}
	}
	for name, q := range map[string]checkpoint.Query{
		"all scopes": {After: byScope.Next(&r)},
		"scope":      {Scope: r.Scope, After: byScope.Next(&r)},
		"due":        {DueBefore: r.Due.Add(time.Hour), Scope: checkpoint.Hash{2}, After: byDue.Next(&r)},
	} {
		if position, err := q.Position(); err != nil || q.Compare(position, &r) != 0 {
			t.Errorf("%s: position %v, error %v", name, position, err)
		}
	}
}
