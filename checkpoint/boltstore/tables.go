package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
)

// The buckets of a file; the last three came with format version 2.
const (
	tableMeta    = iota // format, version, ledger, floor, number of the last audit entry
	tableRecords        // id → row
	tableLarge          // id, or id and name → data that is too large for its row
	tableLive           // scope, id → nothing
	tableEnded          // scope, id → nothing
	tableStart          // start hash → id
	tableDue            // due, id → nothing
	tableRows           // id, name → row under the record
	tableAudit          // number → audit entry
	tableUsage          // scope → what it uses
	tableCount
)

var tableNames = [tableCount]string{"meta", "records", "large", "live", "ended", "start", "due", "rows", "audit", "usage"}

var nothing = []byte{}

// tables are the buckets within one transaction, and are good as long as that. Each is opened when
// it is first needed: that costs about as much as finding a record in it.
type tables struct {
	tx     *bolt.Tx
	opened [tableCount]*bolt.Bucket
}

func (t *tables) open(table int) *bolt.Bucket {
	if t.opened[table] == nil {
		t.opened[table] = t.tx.Bucket([]byte(tableNames[table]))
	}
	return t.opened[table]
}

func (t *tables) meta() *bolt.Bucket    { return t.open(tableMeta) }
func (t *tables) records() *bolt.Bucket { return t.open(tableRecords) }
func (t *tables) large() *bolt.Bucket   { return t.open(tableLarge) }
func (t *tables) live() *bolt.Bucket    { return t.open(tableLive) }
func (t *tables) ended() *bolt.Bucket   { return t.open(tableEnded) }
func (t *tables) start() *bolt.Bucket   { return t.open(tableStart) }
func (t *tables) due() *bolt.Bucket     { return t.open(tableDue) }

// These are nil in a file of format version 1, which is only read then.

func (t *tables) rows() *bolt.Bucket  { return t.open(tableRows) }
func (t *tables) audit() *bolt.Bucket { return t.open(tableAudit) }
func (t *tables) usage() *bolt.Bucket { return t.open(tableUsage) }

// head returns the stored record without its data, or nil. Its memory is the transaction's where it
// is the row's.
func (t *tables) head(id checkpoint.ID) (*head, error) {
	row := t.records().Get(id[:])
	if row == nil {
		return nil, nil
	}
	return decodeHead(id, row)
}

// load returns a copy of the stored record, or checkpoint.ErrNotFound.
func (t *tables) load(id checkpoint.ID) (checkpoint.Record, error) {
	h, err := t.head(id)
	if err != nil {
		return checkpoint.Record{}, err
	}
	if h == nil {
		return checkpoint.Record{}, checkpoint.ErrNotFound
	}
	return h.complete(t.large().Get(id[:]))
}

// holder returns the id of the record that has the start hash. An entry has no checksum, but its
// record says the same, or the entry is damaged: then the error is a [*CorruptError].
func (t *tables) holder(start checkpoint.Hash) (id checkpoint.ID, ok bool, err error) {
	value := t.start().Get(start[:])
	if value == nil {
		return id, false, nil
	}
	copy(id[:], value)
	h, err := t.head(id)
	if err == nil && (len(value) != len(id) || h == nil || h.record.Start != start) {
		err = &CorruptError{ID: id, Err: errors.New("a start hash leads to it that is not its own")}
	}
	return id, err == nil, err
}

// remove takes out the record whose stored head is old, its index entries and its rows.
func (t *tables) remove(old *head) error {
	r := &old.record
	errs := []error{
		t.records().Delete(r.ID[:]),
		t.place(r.Status).Delete(placeKey(r)),
		t.dropRows(r.ID),
	}
	if old.large {
		errs = append(errs, t.large().Delete(r.ID[:]))
	}
	if !r.Start.IsZero() {
		errs = append(errs, t.start().Delete(r.Start[:]))
	}
	if !r.Due.IsZero() {
		errs = append(errs, t.due().Delete(dueKey(r)))
	}
	return errors.Join(errs...)
}

// put writes the change over old, which is nil for a new record. Index entries that stay as they
// are, are not written.
func (t *tables) put(old *head, c *change) error {
	r := &c.record
	var errs []error
	if old != nil {
		o := &old.record
		if old.large && c.large == nil {
			errs = append(errs, t.large().Delete(r.ID[:]))
		}
		if o.Status.Ended() != r.Status.Ended() || o.Scope != r.Scope {
			errs = append(errs, t.place(o.Status).Delete(placeKey(o)))
		}
		if !o.Due.IsZero() && !o.Due.Equal(r.Due) {
			errs = append(errs, t.due().Delete(dueKey(o)))
		}
		if holder := t.start().Get(o.Start[:]); o.Start != r.Start && bytes.Equal(holder, r.ID[:]) {
			errs = append(errs, t.start().Delete(o.Start[:]))
		}
	}
	errs = append(errs, t.records().Put(r.ID[:], c.row))
	if c.large != nil {
		errs = append(errs, t.large().Put(r.ID[:], c.large))
	}
	if old == nil || old.record.Status.Ended() != r.Status.Ended() || old.record.Scope != r.Scope {
		errs = append(errs, t.place(r.Status).Put(placeKey(r), nothing))
	}
	if !r.Due.IsZero() && (old == nil || !old.record.Due.Equal(r.Due)) {
		errs = append(errs, t.due().Put(dueKey(r), nothing))
	}
	if !r.Start.IsZero() && (old == nil || old.record.Start != r.Start) {
		errs = append(errs, t.start().Put(r.Start[:], r.ID[:]))
	}
	return errors.Join(errs...)
}

func (t *tables) place(s checkpoint.Status) *bolt.Bucket {
	if s.Ended() {
		return t.ended()
	}
	return t.live()
}

func placeKey(r *checkpoint.Record) []byte {
	return append(bytes.Clone(r.Scope[:]), r.ID[:]...)
}

func dueKey(r *checkpoint.Record) []byte {
	return append(binary.BigEndian.AppendUint64(nil, dueMillis(r.Due)), r.ID[:]...)
}
