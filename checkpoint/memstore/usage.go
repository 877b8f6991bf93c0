package memstore

import (
	"context"

	"github.com/parley-go/parley/checkpoint"
)

// Usage implements [checkpoint.Store].
func (s *Store) Usage(ctx context.Context, scope checkpoint.Hash) (checkpoint.Usage, error) {
	if err := ctx.Err(); err != nil {
		return checkpoint.Usage{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.index.usage[scope], nil
}

// count adds a record to what its scope uses; sign is -1 where it goes.
func (x *index) count(r *checkpoint.Record, sign int) {
	active := 0
	if r.Status.Active() {
		active = sign
	}
	x.charge(r.Scope, active, sign*(len(r.Data)+checkpoint.Charge))
}

// countRow adds a row to what the scope of its record uses; sign is -1 where it goes.
func (x *index) countRow(scope checkpoint.Hash, row *checkpoint.Row, sign int) {
	x.charge(scope, 0, sign*(len(row.Data)+checkpoint.Charge))
}

func (x *index) charge(scope checkpoint.Hash, active, bytes int) {
	x.chargeOne(checkpoint.Hash{}, active, bytes)
	if !scope.IsZero() {
		x.chargeOne(scope, active, bytes)
	}
}

func (x *index) chargeOne(scope checkpoint.Hash, active, bytes int) {
	u := x.usage[scope]
	u.Active += active
	u.Bytes += int64(bytes)
	if u == (checkpoint.Usage{}) {
		delete(x.usage, scope)
		return
	}
	x.usage[scope] = u
}
