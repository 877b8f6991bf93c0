package boltstore

import (
	"context"
	"errors"

	"github.com/parley-go/parley/checkpoint"
)

var errPending = errors.New("not there yet")

// Rows implements [checkpoint.Store].
func (s *Store) Rows(context.Context, checkpoint.ID, string, int) ([]checkpoint.Row, error) {
	return nil, errPending
}

// Audit implements [checkpoint.Store].
func (s *Store) Audit(context.Context, uint64, int) ([]checkpoint.AuditEntry, error) {
	return nil, errPending
}

// Usage implements [checkpoint.Store].
func (s *Store) Usage(context.Context, checkpoint.Hash) (checkpoint.Usage, error) {
	return checkpoint.Usage{}, nil
}
