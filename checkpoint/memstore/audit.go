package memstore

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"github.com/parley-go/parley/checkpoint"
)

// Audit implements [checkpoint.Store].
func (s *Store) Audit(ctx context.Context, after uint64, limit int) ([]checkpoint.AuditEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkpoint.CheckLimit(limit); err != nil {
		return nil, err
	}
	s.mu.RLock()
	first := sort.Search(len(s.audit), func(i int) bool { return s.audit[i].Seq > after })
	page := slices.Clone(s.audit[first:min(first+limit, len(s.audit))])
	s.mu.RUnlock()
	for i := range page {
		page[i].Data = bytes.Clone(page[i].Data)
	}
	return page, nil
}

// appendAudit appends what the batch adds to the trail, and then removes what it trims.
func (s *Store) appendAudit(b *checkpoint.Batch) {
	for _, data := range b.Audit {
		s.seq++
		s.audit = append(s.audit, checkpoint.AuditEntry{Seq: s.seq, Data: bytes.Clone(data)})
	}
	trimmed := 0
	for trimmed < min(len(s.audit), checkpoint.MaxTrim) && s.audit[trimmed].Seq <= b.TrimAudit {
		trimmed++
	}
	s.audit = s.audit[trimmed:]
}
