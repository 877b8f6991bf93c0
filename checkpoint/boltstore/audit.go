package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parley-go/parley/checkpoint"
)

// An entry of the audit trail stands under its number, 8 bytes big endian: CRC-32C of the number
// and the entry 4, and then the entry.

func auditKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

func encodeAudit(key, data []byte) []byte {
	value := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(data)), sumUnder(key, data))
	return append(value, data...)
}

// decodeAudit returns a copy of the entry that stands under the key.
func decodeAudit(key, value []byte) (checkpoint.AuditEntry, error) {
	if len(key) != 8 {
		return checkpoint.AuditEntry{}, fmt.Errorf("read audit entry %x: its number is damaged", key)
	}
	entry := checkpoint.AuditEntry{Seq: binary.BigEndian.Uint64(key)}
	if len(value) <= 4 || sumUnder(key, value[4:]) != binary.BigEndian.Uint32(value) {
		return entry, fmt.Errorf("read audit entry %d: its checksum is wrong", entry.Seq)
	}
	entry.Data = bytes.Clone(value[4:])
	return entry, nil
}

// appendAudit appends what the write adds to the trail, and then removes what it trims. It returns
// the number of the last entry there ever was, which is seq before.
func (t *tables) appendAudit(w *write, seq uint64) (uint64, error) {
	t.audit().FillPercent = 1 // entries come in their order, so no page is split in its middle
	for _, data := range w.audit {
		seq++
		key := auditKey(seq)
		if err := t.audit().Put(key, encodeAudit(key, data)); err != nil {
			return seq, err
		}
	}
	if w.trim == 0 {
		return seq, nil
	}
	var keys [][]byte
	cursor := t.audit().Cursor()
	for key, _ := cursor.First(); key != nil && len(keys) < checkpoint.MaxTrim; key, _ = cursor.Next() {
		if bytes.Compare(key, auditKey(w.trim)) > 0 {
			break
		}
		keys = append(keys, bytes.Clone(key))
	}
	for _, key := range keys {
		if err := t.audit().Delete(key); err != nil {
			return seq, err
		}
	}
	return seq, nil
}

// lastAudit returns the number of the last audit entry there ever was, or 0.
func (t *tables) lastAudit() (uint64, error) {
	if t.audit() == nil {
		return 0, nil
	}
	value, err := t.unseal(keyAudit)
	if err == nil && len(value) != 8 {
		err = errors.New("read number of the last audit entry: it is damaged")
	}
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(value), nil
}

func (t *tables) putLastAudit(seq uint64) error { return t.seal(keyAudit, auditKey(seq)) }

// Audit implements [checkpoint.Store]. What it returns is durable: where lazy commits have audit
// entries that are not in the file yet, it first has them written there. Before a damaged entry a
// page ends; where it would be the first, Audit returns a [*FileError].
func (s *Store) Audit(ctx context.Context, after uint64, limit int) ([]checkpoint.AuditEntry, error) {
	if err := checkpoint.CheckLimit(limit); err != nil {
		return nil, err
	}
	page, err := s.auditAfter(ctx, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read audit trail after %d: %w", after, err)
	}
	return page, nil
}

func (s *Store) auditAfter(ctx context.Context, after uint64, limit int) (page []checkpoint.AuditEntry, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	lazy := len(s.overlay.audit) > 0
	s.mu.Unlock()
	// A number that somebody has seen must never be given to another entry, also after a crash: so
	// the overlay's entries have none.
	if lazy {
		if err := s.submit(ctx, &request{}); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	last := s.audited
	s.mu.Unlock()
	if after >= last {
		return nil, nil
	}
	err = s.view(func(t *tables) error {
		if t.audit() == nil {
			return nil
		}
		cursor := t.audit().Cursor()
		for key, value := cursor.Seek(auditKey(after + 1)); key != nil && len(page) < limit; key, value = cursor.Next() {
			entry, err := decodeAudit(key, value)
			if err != nil && len(page) > 0 || entry.Seq > last {
				return nil
			}
			if err != nil {
				return &FileError{Path: s.path, Reason: Damaged, Err: err}
			}
			page = append(page, entry)
		}
		return nil
	})
	return page, err
}
