package memstore

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// formatPosition writes where r stands in the order of the query: scope or due, then id.
func formatPosition(q *checkpoint.Query, r *checkpoint.Record) string {
	var key []byte
	if q.DueBefore.IsZero() {
		key = append(key, r.Scope[:]...)
	} else {
		key = binary.BigEndian.AppendUint64(key, uint64(r.Due.UnixMilli()))
	}
	return base64.RawURLEncoding.EncodeToString(append(key, r.ID[:]...))
}

// parsePosition reads q.After as a record that stands there; nil is the beginning. It also refuses a negative limit.
func parsePosition(q *checkpoint.Query) (*checkpoint.Record, error) {
	if q.Limit < 0 {
		return nil, fmt.Errorf("list records: %w: limit %d", checkpoint.ErrInvalidQuery, q.Limit)
	}
	if q.After == "" {
		return nil, nil
	}
	r := &checkpoint.Record{}
	key, err := base64.RawURLEncoding.DecodeString(q.After)
	switch {
	case err == nil && q.DueBefore.IsZero() && len(key) == len(r.Scope)+len(r.ID):
		copy(r.ID[:], key[copy(r.Scope[:], key):])
		if !q.Scope.IsZero() && r.Scope != q.Scope {
			return nil, fmt.Errorf("list records: %w: position %.80q is from another scope", checkpoint.ErrInvalidQuery, q.After)
		}
	case err == nil && !q.DueBefore.IsZero() && len(key) == 8+len(r.ID):
		r.Due = time.UnixMilli(int64(binary.BigEndian.Uint64(key))).UTC()
		copy(r.ID[:], key[8:])
	default:
		return nil, fmt.Errorf("list records: %w: position %.80q is not from a page of this query", checkpoint.ErrInvalidQuery, q.After)
	}
	return r, nil
}
