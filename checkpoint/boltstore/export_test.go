package boltstore

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/parley-go/parley/checkpoint"
)

// SetFailpoint has f called before and after each commit of the database; an error of it is the
// commit's.
func (s *Store) SetFailpoint(f func(committed bool) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failpoint = f
}

// SkipSync has commits return before they are on the disk. It is called before the first of them.
func (s *Store) SkipSync() { s.db.bolt.NoSync = true }

// CompactAbove sets how many bytes must be free for a compaction.
func (o *Options) CompactAbove(bytes int64) { o.compactAbove = bytes }

// InitialMap sets how many bytes are mapped at first.
func (o *Options) InitialMap(bytes int) { o.initialMap = bytes }

// SetCopyStep has f called while a backup is in the middle of the file.
func (s *Store) SetCopyStep(f func()) { s.copyStep = f }

// TableNames are the buckets of a file.
func TableNames() []string { return tableNames[:] }

// EncodeRow and DecodeRow are the codec of rows.
func EncodeRow(r *checkpoint.Record) (row, large []byte) { return encodeRow(r) }

// DecodeRow reads what EncodeRow wrote.
func DecodeRow(id checkpoint.ID, row, large []byte) (checkpoint.Record, error) {
	h, err := decodeHead(id, row)
	if err != nil {
		return checkpoint.Record{}, err
	}
	return h.complete(large)
}

// SealRow writes the right checksum into a row that is long enough to have one.
func SealRow(row []byte) {
	if len(row) < rowFixed {
		return
	}
	if size := rowFixed + int(row[rowFixed-1]) + rowTail; len(row) >= size {
		binary.BigEndian.PutUint32(row[size-4:], crc32.Checksum(row[:size-4], castagnoli))
	}
}

// EncodeUnder and DecodeUnder are the codec of rows under a record.
func EncodeUnder(key, data []byte) (value, large []byte) { return encodeUnder(key, data) }

// DecodeUnder reads what EncodeUnder wrote.
func DecodeUnder(key, value, large []byte) ([]byte, error) {
	u, err := decodeUnder(key, value)
	if err != nil {
		return nil, err
	}
	return u.complete(key, large)
}

// SealUnder writes the right checksum into the value of a row that is long enough to have one.
func SealUnder(key, value []byte) {
	if len(value) >= underHead {
		binary.BigEndian.PutUint32(value[underHead-4:], sumUnder(key, value[:underHead-4]))
	}
}

// EncodeUsage and DecodeUsage are the codec of usages.
func EncodeUsage(scope checkpoint.Hash, u checkpoint.Usage) (key, value []byte) {
	return scope[:], encodeUsage(scope, u)
}

// DecodeUsage reads what EncodeUsage wrote.
func DecodeUsage(key, value []byte) (checkpoint.Hash, checkpoint.Usage, error) {
	return decodeUsage(key, value)
}

// EncodeAudit and DecodeAudit are the codec of audit entries.
func EncodeAudit(seq uint64, data []byte) (key, value []byte) {
	return auditKey(seq), encodeAudit(auditKey(seq), data)
}

// DecodeAudit reads what EncodeAudit wrote.
func DecodeAudit(key, value []byte) (checkpoint.AuditEntry, error) { return decodeAudit(key, value) }
