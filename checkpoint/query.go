package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// A Query selects records. The zero Query selects all.
//
// Its methods are for stores: the rules of a listing that are the same in each of them.
type Query struct {
	Scope    Hash     // zero: of every scope
	Statuses []Status // empty: of every status
	// DueBefore, where it is set, selects records whose Due is set and not after it, and orders
	// them by Due.
	DueBefore time.Time
	After     string // the Next of the page before
	Limit     int    // at most so many; 0 means 100, and more than 1000 means 1000
}

// A Page is one part of a listing. Next is empty on the last page, and only there: a page may hold
// fewer records than were asked for, even none. Next is good for the query it came from. Records
// that are written while a caller goes through pages may be missed or seen in their newer form,
// none is seen twice unless its Due changed.
type Page struct {
	Records []Record
	Next    string
}

// MaxPassed is how many records that do not match a store passes over for one page, in each index
// that it goes through: then the page ends there, so that what it costs does not depend on how many
// records there are.
const MaxPassed = 4096

// PageLimit is the most that a page holds.
func (q *Query) PageLimit() int { return min(cmp.Or(q.Limit, 100), 1000) }

// ByDue reports whether the records are selected and ordered by Due.
func (q *Query) ByDue() bool { return !q.DueBefore.IsZero() }

// Live reports whether a record in a live state can be selected.
func (q *Query) Live() bool {
	return len(q.Statuses) == 0 || slices.ContainsFunc(q.Statuses, func(s Status) bool { return !s.Ended() })
}

// Ended reports whether a record in an ended state can be selected.
func (q *Query) Ended() bool {
	return len(q.Statuses) == 0 || slices.ContainsFunc(q.Statuses, Status.Ended)
}

// Matches reports whether the query selects the record, on whichever page.
func (q *Query) Matches(r *Record) bool {
	switch {
	case !q.Scope.IsZero() && q.Scope != r.Scope:
		return false
	case len(q.Statuses) > 0 && !slices.Contains(q.Statuses, r.Status):
		return false
	}
	return !q.ByDue() || !r.Due.IsZero() && !r.Due.After(q.DueBefore)
}

// Compare orders two records as the query does: by Scope or by Due, and then by ID. It looks at
// nothing else of them.
func (q *Query) Compare(a, b *Record) int {
	if q.ByDue() {
		return cmp.Or(a.Due.Compare(b.Due), a.ID.Compare(b.ID))
	}
	return cmp.Or(bytes.Compare(a.Scope[:], b.Scope[:]), a.ID.Compare(b.ID))
}

// Position reads After as a record that stands there, with nothing but what Compare looks at; nil
// is the beginning. The error matches [ErrInvalidQuery], and is returned for a negative limit too.
func (q *Query) Position() (*Record, error) {
	if q.Limit < 0 {
		return nil, fmt.Errorf("list records: %w: limit %d", ErrInvalidQuery, q.Limit)
	}
	if q.After == "" {
		return nil, nil
	}
	r := &Record{}
	key, err := base64.RawURLEncoding.DecodeString(q.After)
	switch {
	case err == nil && q.ByDue() && len(key) == 8+len(r.ID):
		r.Due = time.UnixMilli(int64(binary.BigEndian.Uint64(key))).UTC()
		copy(r.ID[:], key[8:])
		return r, nil
	case err == nil && !q.ByDue() && len(key) == len(r.Scope)+len(r.ID):
		copy(r.ID[:], key[copy(r.Scope[:], key):])
		if q.Scope.IsZero() || q.Scope == r.Scope {
			return r, nil
		}
	}
	return nil, fmt.Errorf("list records: %w: %.80q is not from a page of this query", ErrInvalidQuery, q.After)
}

// Next is the Next of a page that ends with the record: what Position reads.
func (q *Query) Next(r *Record) string {
	var key []byte
	if q.ByDue() {
		key = binary.BigEndian.AppendUint64(key, uint64(r.Due.UnixMilli()))
	} else {
		key = append(key, r.Scope[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(append(key, r.ID[:]...))
}

// Page makes a page of the records that a store found behind the position of the query. It puts
// them in order, in place, and cuts them to what fits. Where the store broke off, reached is the
// last record it looked at, in the index where it came least far; nil: it has gone through all of
// them.
func (q *Query) Page(found []Record, reached *Record) Page {
	slices.SortFunc(found, func(a, b Record) int { return q.Compare(&a, &b) })
	if reached != nil {
		found = slices.DeleteFunc(found, func(r Record) bool { return q.Compare(&r, reached) > 0 })
	}
	if limit := q.PageLimit(); len(found) > limit {
		found, reached = found[:limit], &found[limit-1]
	}
	if reached == nil {
		return Page{Records: found}
	}
	return Page{Records: found, Next: q.Next(reached)}
}

// CheckLimit is for stores: it refuses a limit of rows or audit entries that is not 1 to 1000. The
// error matches [ErrInvalidQuery].
func CheckLimit(limit int) error {
	if limit < 1 || limit > 1000 {
		return fmt.Errorf("list: %w: limit %d, want 1 to 1000", ErrInvalidQuery, limit)
	}
	return nil
}
