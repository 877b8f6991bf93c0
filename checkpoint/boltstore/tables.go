package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
)

// The buckets of a file of format version 1.
var (
	bucketMeta    = []byte("meta")    // format, version, ledger, floor
	bucketRecords = []byte("records") // id → row
	bucketLarge   = []byte("large")   // id → data that is too large for a row
	bucketLive    = []byte("live")    // scope, id → nothing
	bucketEnded   = []byte("ended")   // scope, id → nothing
	bucketStart   = []byte("start")   // start hash → id
	bucketDue     = []byte("due")     // due, id → nothing

	nothing    = []byte{}
	allBuckets = [][]byte{bucketMeta, bucketRecords, bucketLarge, bucketLive, bucketEnded, bucketStart, bucketDue}
)

// tables are the buckets within one transaction, and are good as long as that.
type tables struct {
	meta, records, large, live, ended, start, due *bolt.Bucket
}

func tablesOf(tx *bolt.Tx) (*tables, error) {
	t := &tables{
		meta: tx.Bucket(bucketMeta), records: tx.Bucket(bucketRecords), large: tx.Bucket(bucketLarge),
		live: tx.Bucket(bucketLive), ended: tx.Bucket(bucketEnded), start: tx.Bucket(bucketStart),
		due: tx.Bucket(bucketDue),
	}
	for i, b := range []*bolt.Bucket{t.meta, t.records, t.large, t.live, t.ended, t.start, t.due} {
		if b == nil {
			return nil, fmt.Errorf("bucket %q is missing", allBuckets[i])
		}
	}
	return t, nil
}

// head returns the stored record without its data, or nil. Its memory is the transaction's where it
// is the row's.
func (t *tables) head(id checkpoint.ID) (*head, error) {
	row := t.records.Get(id[:])
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
	return h.complete(t.large.Get(id[:]))
}

// holder returns the id of the record that has the start hash.
func (t *tables) holder(start checkpoint.Hash) (id checkpoint.ID, ok bool, err error) {
	value := t.start.Get(start[:])
	if value != nil && len(value) != len(id) {
		return id, false, errors.New("an entry of the start hashes is damaged")
	}
	copy(id[:], value)
	return id, value != nil, nil
}

// remove takes out the record whose stored head is old, and its index entries.
func (t *tables) remove(old *head) error {
	r := &old.record
	errs := []error{
		t.records.Delete(r.ID[:]),
		t.place(r.Status).Delete(placeKey(r)),
	}
	if old.large {
		errs = append(errs, t.large.Delete(r.ID[:]))
	}
	if !r.Start.IsZero() {
		errs = append(errs, t.start.Delete(r.Start[:]))
	}
	if !r.Due.IsZero() {
		errs = append(errs, t.due.Delete(dueKey(r)))
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
			errs = append(errs, t.large.Delete(r.ID[:]))
		}
		if o.Status.Ended() != r.Status.Ended() || o.Scope != r.Scope {
			errs = append(errs, t.place(o.Status).Delete(placeKey(o)))
		}
		if !o.Due.IsZero() && !o.Due.Equal(r.Due) {
			errs = append(errs, t.due.Delete(dueKey(o)))
		}
		if holder := t.start.Get(o.Start[:]); o.Start != r.Start && bytes.Equal(holder, r.ID[:]) {
			errs = append(errs, t.start.Delete(o.Start[:]))
		}
	}
	errs = append(errs, t.records.Put(r.ID[:], c.row))
	if c.large != nil {
		errs = append(errs, t.large.Put(r.ID[:], c.large))
	}
	if old == nil || old.record.Status.Ended() != r.Status.Ended() || old.record.Scope != r.Scope {
		errs = append(errs, t.place(r.Status).Put(placeKey(r), nothing))
	}
	if !r.Due.IsZero() && (old == nil || !old.record.Due.Equal(r.Due)) {
		errs = append(errs, t.due.Put(dueKey(r), nothing))
	}
	if !r.Start.IsZero() && (old == nil || old.record.Start != r.Start) {
		errs = append(errs, t.start.Put(r.Start[:], r.ID[:]))
	}
	return errors.Join(errs...)
}

func (t *tables) place(s checkpoint.Status) *bolt.Bucket {
	if s.Ended() {
		return t.ended
	}
	return t.live
}

func placeKey(r *checkpoint.Record) []byte {
	return append(bytes.Clone(r.Scope[:]), r.ID[:]...)
}

func dueKey(r *checkpoint.Record) []byte {
	return append(binary.BigEndian.AppendUint64(nil, dueMillis(r.Due)), r.ID[:]...)
}
