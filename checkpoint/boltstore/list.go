package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
)

// maxPageData is how much data a page has before it ends early.
const maxPageData = 8 << 20

// List implements [checkpoint.Store]. What a page costs depends on its limit, not on how many
// records there are: at most 1000 records and about 8 MiB of data are returned and a few thousand
// records passed over, so a page may be shorter than its limit, even empty, and yet have a Next. A
// damaged record is left out and logged.
func (s *Store) List(ctx context.Context, q checkpoint.Query) (checkpoint.Page, error) {
	after, err := q.Position()
	if err != nil {
		return checkpoint.Page{}, err
	}
	l := &listing{q: &q, after: after}
	if !q.ByDue() && !q.Scope.IsZero() {
		l.prefix = q.Scope[:]
	}
	if err := s.ready(ctx); err != nil {
		return checkpoint.Page{}, fmt.Errorf("list records: %w", err)
	}
	if none, err := s.noneDue(&q); none || err != nil {
		return checkpoint.Page{}, err
	}
	// The overlay comes first, as for Load; what is in this copy of it hides the file, whatever
	// moves meanwhile.
	s.mu.Lock()
	l.overlay = maps.Clone(s.overlay.records)
	s.mu.Unlock()
	l.scanOverlay()
	err = s.view(func(t *tables) error {
		for _, bucket := range l.buckets(t) {
			l.scan(t, bucket)
		}
		return nil
	})
	var page checkpoint.Page
	if err == nil {
		page, err = l.page()
	}
	for _, damage := range l.damaged {
		s.log.ErrorContext(ctx, "record left out of a list", "path", s.path, "error", damage)
	}
	if err != nil {
		return checkpoint.Page{}, fmt.Errorf("list records: %w", err)
	}
	return page, nil
}

// noneDue reports whether a query by due finds nothing for certain, which is what nearly every
// sweep asks and should cost next to nothing: the file's first entry says so, and the earliest due
// of the overlay.
func (s *Store) noneDue(q *checkpoint.Query) (none bool, err error) {
	if !q.ByDue() {
		return false, nil
	}
	s.mu.Lock()
	earliest := s.overlay.earliest
	s.mu.Unlock()
	if !earliest.IsZero() && !earliest.After(q.DueBefore) {
		return false, nil
	}
	l := &listing{q: q}
	err = s.view(func(t *tables) error {
		key, _ := t.due().Cursor().First()
		none = key == nil || l.beyond(key)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("list records: %w", err)
	}
	return none, nil
}

// A listing is one page in the making.
type listing struct {
	q       *checkpoint.Query
	overlay map[checkpoint.ID]*change
	prefix  []byte              // of every key, where a scope is asked for
	after   *checkpoint.Record  // nil: this is the first page
	found   []checkpoint.Record // those of the overlay without their data
	reached *checkpoint.Record  // up to here everything was gone through; nil: to the end
	damaged []error
}

// buckets returns the indices in which the records of the query are.
func (l *listing) buckets(t *tables) (buckets []*bolt.Bucket) {
	if l.q.ByDue() {
		return append(buckets, t.due())
	}
	if l.q.Live() {
		buckets = append(buckets, t.live())
	}
	if l.q.Ended() {
		buckets = append(buckets, t.ended())
	}
	return buckets
}

// key returns the key of a record in the buckets of the query.
func (l *listing) key(r *checkpoint.Record) []byte {
	if l.q.ByDue() {
		return dueKey(r)
	}
	return placeKey(r)
}

// at reads a key as far as the query orders by it. The key is not beyond.
func (l *listing) at(key []byte) *checkpoint.Record {
	r := &checkpoint.Record{}
	if l.q.ByDue() {
		r.Due, key = time.UnixMilli(int64(binary.BigEndian.Uint64(key))).UTC(), key[8:]
	} else {
		key = key[copy(r.Scope[:], key):]
	}
	copy(r.ID[:], key)
	return r
}

// beyond reports whether the key, and so all after it, is not asked for.
func (l *listing) beyond(key []byte) bool {
	if l.q.ByDue() {
		return int64(binary.BigEndian.Uint64(key)) > l.q.DueBefore.UnixMilli()
	}
	return !bytes.HasPrefix(key, l.prefix)
}

// scanOverlay finds what matches in the overlay, all of it: without its data it is small.
func (l *listing) scanOverlay() {
	for _, c := range l.overlay {
		if c.row != nil && l.q.Matches(&c.record) && (l.after == nil || l.q.Compare(&c.record, l.after) > 0) {
			l.found = append(l.found, c.record)
		}
	}
}

// scan goes on behind the position after, until it has one match more than the limit (by which it
// is known that there is more), or has passed over too many, or has enough data. Records in the
// overlay are not looked at.
func (l *listing) scan(t *tables, bucket *bolt.Bucket) {
	cursor := bucket.Cursor()
	from := l.prefix
	if l.after != nil {
		from = l.key(l.after)
	}
	key, _ := cursor.Seek(from)
	if l.after != nil && bytes.Equal(key, from) {
		key, _ = cursor.Next()
	}
	count, passed, size := 0, 0, 0
	for ; key != nil && !l.beyond(key); key, _ = cursor.Next() {
		at := l.at(key)
		r, ok := l.read(t, bucket, key, at.ID)
		if ok {
			count++
			size += len(r.Data)
			l.found = append(l.found, r)
		} else {
			passed++
		}
		if count > l.q.PageLimit() || passed >= checkpoint.MaxPassed || size >= maxPageData {
			if l.reached == nil || l.q.Compare(at, l.reached) < 0 {
				l.reached = at
			}
			return
		}
	}
}

// read returns the record that an index entry leads to, where it belongs into the list.
func (l *listing) read(t *tables, bucket *bolt.Bucket, key []byte, id checkpoint.ID) (r checkpoint.Record, ok bool) {
	if l.overlay[id] != nil {
		return r, false
	}
	h, err := t.head(id)
	if err == nil && h == nil {
		err = &CorruptError{ID: id, Err: errors.New("there is no row for an index entry")}
	}
	// An index entry has no checksum; but it is in the index, under the key, that its record says.
	if err == nil && (!bytes.Equal(key, l.key(&h.record)) || !l.q.ByDue() && bucket != t.place(h.record.Status)) {
		err = &CorruptError{ID: id, Err: fmt.Errorf("an index entry %x is not its own", key)}
	}
	if err == nil && !l.q.Matches(&h.record) {
		return r, false
	}
	if err == nil {
		r, err = h.complete(t.large().Get(id[:]))
	}
	if err != nil {
		l.damaged = append(l.damaged, err)
	}
	return r, err == nil
}

// page makes the page of what was found. Records of the overlay get their data only now that it is
// known which are in it, and only as many as a page can have.
func (l *listing) page() (checkpoint.Page, error) {
	page := l.q.Page(l.found, l.reached)
	size := 0
	for i := range page.Records {
		r := &page.Records[i]
		if size >= maxPageData {
			page.Next = l.q.Next(&page.Records[i-1])
			page.Records = page.Records[:i]
			break
		}
		if lazy := l.overlay[r.ID]; lazy != nil {
			var err error
			if *r, err = lazy.read(); err != nil {
				return checkpoint.Page{}, err
			}
		}
		size += len(r.Data)
	}
	return page, nil
}
