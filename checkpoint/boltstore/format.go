package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
)

const formatVersion = 2

// The keys of the bucket meta.
var (
	keyFormat  = []byte("format")  // formatName
	keyVersion = []byte("version") // 4 bytes, big endian
	keyLedger  = []byte("ledger")  // id 16, then its meta; sealed
	keyFloor   = []byte("floor")   // Unix seconds 8, nanoseconds 4, big endian; sealed
	keyAudit   = []byte("audit")   // number of the last audit entry there ever was, 8 bytes, big endian; sealed

	formatName = []byte("parley ledger")
)

// createFormat makes the buckets of an empty store.
func createFormat(tx *bolt.Tx) error {
	for _, name := range tableNames {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	t := &tables{tx: tx}
	return errors.Join(
		t.meta().Put(keyFormat, formatName),
		t.putVersion(),
		t.seal(keyLedger, nil), // nobody has joined, which is not the same as a lost entry
		t.seal(keyFloor, nil),
		t.putLastAudit(0),
	)
}

// upgrade makes a file of an older format one of this format.
func upgrade(tx *bolt.Tx) error {
	for _, name := range tableNames[len(tablesOf(1)):] {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	t := &tables{tx: tx}
	return errors.Join(t.putCount(), t.putLastAudit(0), t.putVersion())
}

// tablesOf returns the names of the buckets that a file of that version has.
func tablesOf(version uint32) []string {
	if version == 1 {
		return tableNames[:tableRows]
	}
	return tableNames[:]
}

// version returns the format's version of the file, or 0 where it has none.
func (t *tables) version() uint32 {
	value := t.meta().Get(keyVersion)
	if len(value) != 4 {
		return 0
	}
	return binary.BigEndian.Uint32(value)
}

func (t *tables) putVersion() error {
	return t.meta().Put(keyVersion, binary.BigEndian.AppendUint32(nil, formatVersion))
}

// checkFormat reports, as a [*FileError], that the database is not a store of this format.
func checkFormat(path string, tx *bolt.Tx) error {
	fail := func(reason Reason, format string, args ...any) error {
		return &FileError{Path: path, Reason: reason, Err: fmt.Errorf(format, args...)}
	}
	t := &tables{tx: tx}
	if t.meta() == nil || !bytes.Equal(t.meta().Get(keyFormat), formatName) {
		return fail(Foreign, "it does not say that it is a %s", formatName)
	}
	version := t.version()
	if version == 0 {
		return fail(Damaged, "it has no version")
	}
	if version > formatVersion {
		return fail(Newer, "version %d, this program knows %d", version, formatVersion)
	}
	for _, name := range tablesOf(version) {
		if tx.Bucket([]byte(name)) == nil {
			return fail(Damaged, "bucket %q is missing", name)
		}
	}
	if err := t.checkMeta(); err != nil {
		return fail(Damaged, "%w", err)
	}
	return tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
		if !slices.Contains(tablesOf(version), string(name)) {
			return fail(Foreign, "it has a bucket %q", name)
		}
		return nil
	})
}

// checkMeta reports what of the bucket meta cannot be read.
func (t *tables) checkMeta() error {
	_, errLedger := t.ledger()
	_, errFloor := t.floor()
	_, errAudit := t.lastAudit()
	return errors.Join(errLedger, errFloor, errAudit)
}

// ledger returns a copy of the stored ledger, or nil.
func (t *tables) ledger() (*checkpoint.Ledger, error) {
	value, err := t.unseal(keyLedger)
	if len(value) == 0 || err != nil {
		return nil, err
	}
	l := &checkpoint.Ledger{}
	if len(value) < len(l.ID) {
		return nil, errors.New("read ledger: it is too short")
	}
	l.Meta = bytes.Clone(value[copy(l.ID[:], value):])
	return l, nil
}

func (t *tables) putLedger(l *checkpoint.Ledger) error {
	return t.seal(keyLedger, append(bytes.Clone(l.ID[:]), l.Meta...))
}

// putMeta replaces the meta of the stored ledger.
func (t *tables) putMeta(meta []byte) error {
	l, err := t.ledger()
	if err != nil {
		return err
	}
	l.Meta = meta
	return t.putLedger(l)
}

// floor returns the latest time that was committed, or the zero time.
func (t *tables) floor() (time.Time, error) {
	value, err := t.unseal(keyFloor)
	if len(value) == 0 || err != nil {
		return time.Time{}, err
	}
	if len(value) != 12 {
		return time.Time{}, fmt.Errorf("read clock floor: %d bytes", len(value))
	}
	return time.Unix(int64(binary.BigEndian.Uint64(value)), int64(binary.BigEndian.Uint32(value[8:]))).UTC(), nil
}

func (t *tables) putFloor(floor time.Time) error {
	value := binary.BigEndian.AppendUint64(nil, uint64(floor.Unix()))
	return t.seal(keyFloor, binary.BigEndian.AppendUint32(value, uint32(floor.Nanosecond())))
}

// seal writes a value of the bucket meta with its checksum: one damaged byte in the ledger would
// make every start ID a new one.
func (t *tables) seal(key, value []byte) error {
	return t.meta().Put(key, binary.BigEndian.AppendUint32(value, crc32.Checksum(value, castagnoli)))
}

// unseal returns a value that seal wrote.
func (t *tables) unseal(key []byte) ([]byte, error) {
	stored := t.meta().Get(key)
	n := len(stored) - 4
	if n < 0 || crc32.Checksum(stored[:n], castagnoli) != binary.BigEndian.Uint32(stored[n:]) {
		return nil, fmt.Errorf("read %s: it is missing, or its checksum is wrong", key)
	}
	return stored[:n], nil
}
