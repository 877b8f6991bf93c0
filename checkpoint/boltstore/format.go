package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
)

const formatVersion = 1

// The keys of the bucket meta.
var (
	keyFormat  = []byte("format")  // formatName
	keyVersion = []byte("version") // 4 bytes, big endian
	keyLedger  = []byte("ledger")  // id 16, then its meta
	keyFloor   = []byte("floor")   // Unix seconds 8, nanoseconds 4, big endian

	formatName = []byte("parley ledger")
)

// createFormat makes the buckets of an empty store.
func createFormat(tx *bolt.Tx) error {
	for _, name := range allBuckets {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(bucketMeta)
	return errors.Join(
		meta.Put(keyFormat, formatName),
		meta.Put(keyVersion, binary.BigEndian.AppendUint32(nil, formatVersion)),
	)
}

// checkFormat reports, as a [*FileError], that the database is not a store of this format.
func checkFormat(path string, tx *bolt.Tx) error {
	fail := func(reason Reason, format string, args ...any) error {
		return &FileError{Path: path, Reason: reason, Err: fmt.Errorf(format, args...)}
	}
	meta := tx.Bucket(bucketMeta)
	if meta == nil || !bytes.Equal(meta.Get(keyFormat), formatName) {
		return fail(Foreign, "it does not say that it is a %s", formatName)
	}
	version := meta.Get(keyVersion)
	if len(version) != 4 || binary.BigEndian.Uint32(version) == 0 {
		return fail(Damaged, "it has no version")
	}
	if v := binary.BigEndian.Uint32(version); v > formatVersion {
		return fail(Newer, "version %d, this program knows %d", v, formatVersion)
	}
	if _, err := tablesOf(tx); err != nil {
		return fail(Damaged, "%w", err)
	}
	return tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
		if !slices.ContainsFunc(allBuckets, func(known []byte) bool { return bytes.Equal(known, name) }) {
			return fail(Foreign, "it has a bucket %q", name)
		}
		return nil
	})
}

// ledger returns a copy of the stored ledger, or nil.
func (t *tables) ledger() (*checkpoint.Ledger, error) {
	value := t.meta.Get(keyLedger)
	if value == nil {
		return nil, nil
	}
	l := &checkpoint.Ledger{}
	if len(value) < len(l.ID) {
		return nil, errors.New("read ledger: it is too short")
	}
	l.Meta = bytes.Clone(value[copy(l.ID[:], value):])
	return l, nil
}

func (t *tables) putLedger(l *checkpoint.Ledger) error {
	return t.meta.Put(keyLedger, append(bytes.Clone(l.ID[:]), l.Meta...))
}

// floor returns the latest time that was committed, or the zero time.
func (t *tables) floor() (time.Time, error) {
	value := t.meta.Get(keyFloor)
	if value == nil {
		return time.Time{}, nil
	}
	if len(value) != 12 {
		return time.Time{}, fmt.Errorf("read clock floor: %d bytes", len(value))
	}
	return time.Unix(int64(binary.BigEndian.Uint64(value)), int64(binary.BigEndian.Uint32(value[8:]))).UTC(), nil
}

func (t *tables) putFloor(floor time.Time) error {
	value := binary.BigEndian.AppendUint64(nil, uint64(floor.Unix()))
	return t.meta.Put(keyFloor, binary.BigEndian.AppendUint32(value, uint32(floor.Nanosecond())))
}
