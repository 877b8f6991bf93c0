package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
)

// maxFindings is how many contradictions Check reports.
const maxFindings = 20

// Check looks for contradictions in the file: damaged pages, damaged records and rows, a record
// without its index entries, an index entry or a row without its record, a usage that is not that
// of the records and rows, an audit trail with a gap or a damaged entry. It reads the whole file,
// and commits that are not lazy wait meanwhile; lazy batches that are not in the file yet are not
// looked at. It returns nil, or up to twenty findings joined: [*FileError] for the file,
// [*CorruptError] for a record. A backup can be checked without that anybody waits, with the
// function [Check].
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
		return checkFile(ctx, s.path, tx)
	})
}

// Check looks for contradictions in a file that nobody has open to write, as [Store.Check] does in
// that of a store, and changes nothing. It survives what it finds: a damaged file, however it is
// damaged, is a finding and not a panic. Findings beside a [*FileError] for the file as a whole are
// not looked for. Of the options it uses Timeout; opts may be nil.
func Check(ctx context.Context, path string, opts *Options) error {
	o, err := opts.withDefaults()
	if err != nil {
		return err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return fmt.Errorf("check store: %w", err)
	}
	o.ReadOnly = true
	if err := checkSize(path); err != nil {
		return err
	}
	db, err := openBolt(path, &o)
	if err != nil {
		return err
	}
	err = guard(path, func() error {
		tx, err := db.bolt.Begin(false)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		return checkFile(ctx, path, tx)
	})
	return errors.Join(err, db.close())
}

// checkFile is Check, in a transaction during which nobody writes.
func checkFile(ctx context.Context, path string, tx *bolt.Tx) error {
	// First without bbolt, which does not survive every damage it could find.
	if err := checkPages(ctx, path); err != nil {
		return err
	}
	if err := checkFormat(path, tx); err != nil {
		return err
	}
	c := &checker{path: path, tables: &tables{tx: tx}, used: make(tally)}
	if err := checkMeta(path); err != nil {
		c.add(err)
	}
	for err := range tx.Check() {
		c.add(&FileError{Path: path, Reason: Damaged, Err: err})
	}
	return c.run(ctx)
}

// checker gathers findings.
type checker struct {
	path     string
	tables   *tables
	findings []error
	used     tally
	unread   bool // something that is counted could not be read
	last     uint64
}

func (c *checker) add(err error) {
	if len(c.findings) < maxFindings {
		c.findings = append(c.findings, err)
	}
}

func (c *checker) damage(format string, args ...any) {
	c.add(&FileError{Path: c.path, Reason: Damaged, Err: fmt.Errorf(format, args...)})
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
		each(t.records(), c.record),
		each(t.live(), c.entry("live", func(r *checkpoint.Record, key []byte) bool {
			return !r.Status.Ended() && bytes.Equal(key, placeKey(r))
		})),
		each(t.ended(), c.entry("ended", func(r *checkpoint.Record, key []byte) bool {
			return r.Status.Ended() && bytes.Equal(key, placeKey(r))
		})),
		each(t.due(), c.entry("due", func(r *checkpoint.Record, key []byte) bool {
			return !r.Due.IsZero() && bytes.Equal(key, dueKey(r))
		})),
		each(t.start(), c.entry("start", func(r *checkpoint.Record, key []byte) bool {
			return !r.Start.IsZero() && bytes.Equal(key, r.Start[:])
		})),
		each(t.large(), c.largeData),
	)
	if err == nil && t.rows() != nil {
		err = errors.Join(each(t.rows(), c.row), each(t.audit(), c.auditEntry), each(t.usage(), c.usage))
		c.totals()
	}
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
		_, err = h.complete(c.tables.large().Get(key))
	}
	if err != nil {
		c.unread = true
		c.add(err)
		return
	}
	c.used.record(h, 1)
	r := &h.record
	c.want(id, "place", has(c.tables.place(r.Status), placeKey(r)))
	c.want(id, "due", r.Due.IsZero() || has(c.tables.due(), dueKey(r)))
	c.want(id, "start", r.Start.IsZero() || bytes.Equal(c.tables.start().Get(r.Start[:]), id[:]))
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

// largeData checks that data in the bucket large belongs to a record or a row.
func (c *checker) largeData(key, _ []byte) {
	id, name := splitRowKey(key)
	large := false
	if len(name) == 0 {
		h, err := c.tables.head(id)
		large = err != nil || h != nil && h.large
	} else if c.tables.rows() != nil {
		if value := c.tables.rows().Get(key); value != nil {
			u, err := decodeUnder(key, value)
			large = err != nil || u.large
		}
	}
	if !large {
		c.add(&CorruptError{ID: id, Err: errors.New("there is large data without a row that says so")})
	}
}

// row checks one row under a record, and that the record is there.
func (c *checker) row(key, value []byte) {
	u, err := decodeUnder(key, value)
	if err == nil {
		_, err = u.complete(key, c.tables.large().Get(key))
	}
	var h *head
	if err == nil {
		id, _ := splitRowKey(key)
		if h, err = c.tables.head(id); err == nil && h == nil {
			err = corruptUnder(key, "has no record")
		}
	}
	if err != nil {
		c.unread = true
		c.add(err)
		return
	}
	c.used.row(h.record.Scope, int(u.dataSize), 1)
}

// auditEntry checks one entry of the audit trail, and that it comes right after the one before.
func (c *checker) auditEntry(key, value []byte) {
	entry, err := decodeAudit(key, value)
	switch {
	case err != nil:
		c.damage("%w", err)
	case c.last > 0 && entry.Seq != c.last+1:
		c.damage("audit entry %d comes after %d", entry.Seq, c.last)
	}
	c.last = entry.Seq
}

// usage checks that what is stored of a scope is what its records and rows amount to. It comes
// after them.
func (c *checker) usage(key, value []byte) {
	scope, u, err := decodeUsage(key, value)
	if err != nil {
		c.damage("%w", err)
		return
	}
	if !c.unread && u != c.used[scope] {
		c.damage("usage of scope %x is %+v, stored %+v", key, c.used[scope], u)
	}
	if u == (checkpoint.Usage{}) {
		c.damage("usage of scope %x is stored, and is nothing", key)
	}
	delete(c.used, scope)
}

// totals checks what the buckets leave open: scopes without a usage, and the number of the last
// audit entry.
func (c *checker) totals() {
	for scope, u := range c.used {
		if u != (checkpoint.Usage{}) && !c.unread {
			c.damage("usage of scope %x is %+v, and none is stored", scope, u)
		}
	}
	if last, err := c.tables.lastAudit(); err == nil && c.last > 0 && c.last != last {
		c.damage("the last audit entry is %d, not %d", c.last, last)
	}
}

// has reports whether the key is in the bucket, also with an empty value.
func has(b *bolt.Bucket, key []byte) bool {
	found, _ := b.Cursor().Seek(key)
	return bytes.Equal(found, key)
}
