package boltstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
	// maxPassed is how many records that do not match are passed over for one page, in each bucket that is gone through.
	maxPassed = 4096
	// maxPageData is how much data a page has before it ends early.
	maxPageData = 8 << 20
)

// List implements [checkpoint.Store]. What a page costs depends on its limit, not on how many records there are: at most 1000
// records and about 8 MiB of data are returned and a few thousand records passed over, so a page may be shorter than its limit, even
// empty, and yet have a Next. A damaged record is left out and logged.
func (s *Store) List(ctx context.Context, q checkpoint.Query) (checkpoint.Page, error) {
	l, err := newListing(&q)
	if err != nil {
		return checkpoint.Page{}, err
	}
	if err := s.ready(ctx); err != nil {
		return checkpoint.Page{}, fmt.Errorf("list records: %w", err)
	}
	// The overlay comes first, as for Load; what is in this copy of it hides the file, whatever moves meanwhile.
	s.mu.Lock()
	overlay := maps.Clone(s.overlay)
	s.mu.Unlock()
	err = l.addOverlay(overlay)
	if err == nil {
		err = s.view(func(t *tables) error {
			for _, bucket := range l.buckets(t) {
				l.scan(t, bucket, overlay)
			}
			return nil
		})
	}
	for _, damage := range l.damaged {
		s.log.ErrorContext(ctx, "record left out of a list", "path", s.path, "error", damage)
	}
	if err != nil {
		return checkpoint.Page{}, fmt.Errorf("list records: %w", err)
	}
	return l.page(), nil
}

// A listing is one page in the making. Its order is that of the keys of one index: scope or due, then id.
type listing struct {
	q       *checkpoint.Query
	limit   int
	prefix  []byte // of every key, where a scope is asked for
	after   []byte // the key before the first one, where this is not the first page
	found   []item
	bound   []byte // up to here everything was gone through; nil: to the end
	damaged []error
}

type item struct {
	key    []byte
	record checkpoint.Record
}

func newListing(q *checkpoint.Query) (*listing, error) {
	if q.Limit < 0 {
		return nil, fmt.Errorf("list records: %w: limit %d", checkpoint.ErrInvalidQuery, q.Limit)
	}
	l := &listing{q: q, limit: min(cmp.Or(q.Limit, defaultLimit), maxLimit)}
	size := len(q.Scope) + len(checkpoint.ID{})
	if !q.DueBefore.IsZero() {
		size = 8 + len(checkpoint.ID{})
	} else if !q.Scope.IsZero() {
		l.prefix = q.Scope[:]
	}
	if q.After != "" {
		after, err := base64.RawURLEncoding.DecodeString(q.After)
		if err != nil || len(after) != size || !bytes.HasPrefix(after, l.prefix) {
			return nil, fmt.Errorf("list records: %w: position %.80q is not from a page of this query", checkpoint.ErrInvalidQuery, q.After)
		}
		l.after = after
	}
	return l, nil
}

// buckets returns the indices in which the records of the query are.
func (l *listing) buckets(t *tables) (buckets []*bolt.Bucket) {
	if !l.q.DueBefore.IsZero() {
		return []*bolt.Bucket{t.due}
	}
	live := func(s checkpoint.Status) bool { return !s.Ended() }
	if len(l.q.Statuses) == 0 || slices.ContainsFunc(l.q.Statuses, live) {
		buckets = append(buckets, t.live)
	}
	if len(l.q.Statuses) == 0 || slices.ContainsFunc(l.q.Statuses, checkpoint.Status.Ended) {
		buckets = append(buckets, t.ended)
	}
	return buckets
}

func (l *listing) matches(r *checkpoint.Record) bool {
	if !l.q.Scope.IsZero() && l.q.Scope != r.Scope {
		return false
	}
	return len(l.q.Statuses) == 0 || slices.Contains(l.q.Statuses, r.Status)
}

// beyond reports whether the key, and so all after it, is not asked for.
func (l *listing) beyond(key []byte) bool {
	if !l.q.DueBefore.IsZero() {
		return int64(binary.BigEndian.Uint64(key)) > l.q.DueBefore.UnixMilli()
	}
	return !bytes.HasPrefix(key, l.prefix)
}

// addOverlay finds what matches in the overlay, all of it: it is small.
func (l *listing) addOverlay(overlay map[checkpoint.ID]*change) error {
	for _, c := range overlay {
		if c.row == nil || !l.matches(&c.record) || !l.q.DueBefore.IsZero() && c.record.Due.IsZero() {
			continue
		}
		key := placeKey(&c.record)
		if !l.q.DueBefore.IsZero() {
			key = dueKey(&c.record)
		}
		if l.beyond(key) || bytes.Compare(key, l.after) <= 0 {
			continue
		}
		r, err := c.read()
		if err != nil {
			return err
		}
		l.found = append(l.found, item{key, r})
	}
	return nil
}

// scan goes on behind the position after, until it has one match more than the limit (by which page knows that there is more), or
// has passed over too many, or has enough data. Records in the overlay are not looked at.
func (l *listing) scan(t *tables, bucket *bolt.Bucket, overlay map[checkpoint.ID]*change) {
	cursor := bucket.Cursor()
	key, _ := cursor.Seek(slices.Concat(l.prefix, l.after[min(len(l.after), len(l.prefix)):]))
	if bytes.Equal(key, l.after) {
		key, _ = cursor.Next()
	}
	count, passed, size := 0, 0, 0
	for ; key != nil && !l.beyond(key); key, _ = cursor.Next() {
		var id checkpoint.ID
		copy(id[:], key[max(0, len(key)-len(id)):])
		r, ok := l.read(t, id, overlay)
		if ok {
			count++
			size += len(r.Data)
			l.found = append(l.found, item{bytes.Clone(key), r})
		} else {
			passed++
		}
		if count > l.limit || passed >= maxPassed || size >= maxPageData {
			if l.bound == nil || bytes.Compare(key, l.bound) < 0 {
				l.bound = bytes.Clone(key)
			}
			return
		}
	}
}

// read returns the record where it belongs into the list.
func (l *listing) read(t *tables, id checkpoint.ID, overlay map[checkpoint.ID]*change) (r checkpoint.Record, ok bool) {
	if overlay[id] != nil {
		return r, false
	}
	h, err := t.head(id)
	if err == nil && h == nil {
		err = &CorruptError{ID: id, Err: errors.New("there is no row for an index entry")}
	}
	if err == nil && !l.matches(&h.record) {
		return r, false
	}
	if err == nil {
		r, err = h.complete(t.large.Get(id[:]))
	}
	if err != nil {
		l.damaged = append(l.damaged, err)
	}
	return r, err == nil
}

// page puts what was found in order, and cuts it where not everything was gone through.
func (l *listing) page() checkpoint.Page {
	slices.SortFunc(l.found, func(a, b item) int { return bytes.Compare(a.key, b.key) })
	if l.bound != nil {
		l.found = slices.DeleteFunc(l.found, func(i item) bool { return bytes.Compare(i.key, l.bound) > 0 })
	}
	next := l.bound
	if len(l.found) > l.limit {
		l.found = l.found[:l.limit]
		next = l.found[l.limit-1].key
	}
	var page checkpoint.Page
	for _, i := range l.found {
		page.Records = append(page.Records, i.record)
	}
	if next != nil {
		page.Next = base64.RawURLEncoding.EncodeToString(next)
	}
	return page
}
