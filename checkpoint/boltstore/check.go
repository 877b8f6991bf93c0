package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
)

// maxFindings is how many contradictions Check reports.
const maxFindings = 20

// Check looks for contradictions in the file: damaged pages, damaged records, a record without its
// index entries, an index entry without its record. It reads the whole file, and commits that are
// not lazy wait meanwhile; lazy batches that are not in the file yet are not looked at. It returns
// nil, or up to twenty findings joined: [*FileError] for the file, [*CorruptError] for a record.
func (s *Store) Check(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return fmt.Errorf("check store: %w", err)
	}
	return guard(s.path, func() error {
		// A write transaction keeps others from writing; bbolt's own check needs that.
		tx, err := s.db.bolt.Begin(!s.readOnly)
		if err != nil {
			return fmt.Errorf("check store: %w: %w", checkpoint.ErrUnavailable, err)
		}
		defer tx.Rollback()
		// First without bbolt, which does not survive every damage it could find.
		if err := checkPages(ctx, s.path); err != nil {
			return err
		}
		c := &checker{}
		if err := checkMeta(s.path); err != nil {
			c.add(err)
		}
		for err := range tx.Check() {
			c.add(&FileError{Path: s.path, Reason: Damaged, Err: err})
		}
		if c.tables, err = tablesOf(tx); err != nil {
			return &FileError{Path: s.path, Reason: Damaged, Err: err}
		}
		if err := c.tables.checkMeta(); err != nil {
			c.add(&FileError{Path: s.path, Reason: Damaged, Err: err})
		}
		return c.run(ctx)
	})
}

// checker gathers findings.
type checker struct {
	tables   *tables
	findings []error
}

func (c *checker) add(err error) {
	if len(c.findings) < maxFindings {
		c.findings = append(c.findings, err)
	}
}

func (c *checker) run(ctx context.Context) error {
	t := c.tables
	each := func(b *bolt.Bucket, check func(key, value []byte)) error {
		return b.ForEach(func(key, value []byte) error {
			check(key, value)
			return ctx.Err()
		})
	}
	err := errors.Join(
		each(t.records, c.record),
		each(t.live, c.entry("live", func(r *checkpoint.Record, key []byte) bool {
			return !r.Status.Ended() && bytes.Equal(key, placeKey(r))
		})),
		each(t.ended, c.entry("ended", func(r *checkpoint.Record, key []byte) bool {
			return r.Status.Ended() && bytes.Equal(key, placeKey(r))
		})),
		each(t.due, c.entry("due", func(r *checkpoint.Record, key []byte) bool {
			return !r.Due.IsZero() && bytes.Equal(key, dueKey(r))
		})),
		each(t.start, c.entry("start", func(r *checkpoint.Record, key []byte) bool {
			return !r.Start.IsZero() && bytes.Equal(key, r.Start[:])
		})),
		each(t.large, c.largeData),
	)
	if err != nil {
		return err
	}
	return errors.Join(c.findings...)
}

// record checks one row and that its index entries are there.
func (c *checker) record(key, row []byte) {
	var id checkpoint.ID
	copy(id[:], key)
	h, err := decodeHead(id, row)
	if err == nil {
		_, err = h.complete(c.tables.large.Get(key))
	}
	if err != nil {
		c.add(err)
		return
	}
	r := &h.record
	c.want(id, "place", has(c.tables.place(r.Status), placeKey(r)))
	c.want(id, "due", r.Due.IsZero() || has(c.tables.due, dueKey(r)))
	c.want(id, "start", r.Start.IsZero() || bytes.Equal(c.tables.start.Get(r.Start[:]), id[:]))
}

func (c *checker) want(id checkpoint.ID, index string, there bool) {
	if !there {
		c.add(&CorruptError{ID: id, Err: fmt.Errorf("it is not in the index %s", index)})
	}
}

// entry checks that an index entry belongs to a record, whose id is the value or else the end of
// the key.
func (c *checker) entry(index string, belongs func(r *checkpoint.Record, key []byte) bool) func(key, value []byte) {
	return func(key, value []byte) {
		var id checkpoint.ID
		named := value
		if len(value) == 0 {
			named = key[max(0, len(key)-len(id)):]
		}
		copy(id[:], named)
		h, err := c.tables.head(id)
		switch {
		case err != nil: // its row is a finding of its own
		case h == nil || !belongs(&h.record, key):
			err := fmt.Errorf("the index %s has an entry %x that is not its own", index, key)
			c.add(&CorruptError{ID: id, Err: err})
		}
	}
}

// largeData checks that data in the bucket large belongs to a row.
func (c *checker) largeData(key, _ []byte) {
	var id checkpoint.ID
	copy(id[:], key)
	if h, err := c.tables.head(id); err == nil && (h == nil || !h.large) {
		c.add(&CorruptError{ID: id, Err: errors.New("there is large data without a row that says so")})
	}
}

// has reports whether the key is in the bucket, also with an empty value.
func has(b *bolt.Bucket, key []byte) bool {
	found, _ := b.Cursor().Seek(key)
	return bytes.Equal(found, key)
}
