package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-go/parley/checkpoint"
)

// found is what is stored of all that a group of batches touches.
type found struct {
	records map[checkpoint.ID]stored
	starts  map[checkpoint.Hash]checkpoint.ID // whose they are
	owners  map[string]bool                   // that are alive
	joined  bool
}

// stored is what a batch can expect of a record.
type stored struct {
	revision, epoch uint64
	scope, start    checkpoint.Hash
}

// look begins a transaction, takes the lock, and reads.
func (s *Store) look(ctx context.Context, conn *pgxpool.Conn, batches []*checkpoint.Batch) (*found, error) {
	f := &found{
		records: make(map[checkpoint.ID]stored), starts: make(map[checkpoint.Hash]checkpoint.ID), owners: make(map[string]bool),
	}
	var ids, starts, owners [][]byte
	for _, b := range batches {
		touchedIDs, touchedStarts, _ := touched(b)
		for _, id := range touchedIDs {
			ids = append(ids, id[:])
		}
		for _, start := range touchedStarts {
			starts = append(starts, start[:])
		}
		if b.Owner != "" {
			owners = append(owners, []byte(b.Owner))
		}
	}
	var q pgx.Batch
	for _, sql := range s.begin() {
		q.Queue(sql)
	}
	q.Queue(s.sql.order)
	q.Queue(s.sql.known, ids).Query(f.readRecords)
	q.Queue(s.sql.holders, starts).Query(f.readStarts)
	q.Queue(s.sql.owners, owners).Query(f.readOwners)
	q.Queue(s.sql.joined).QueryRow(func(row pgx.Row) error {
		var n int
		err := row.Scan(&n)
		f.joined = n > 0
		return err
	})
	return f, conn.SendBatch(ctx, &q).Close()
}

func (f *found) readRecords(rows pgx.Rows) error {
	var id, scope, start []byte
	var revision, epoch int64
	_, err := pgx.ForEachRow(rows, []any{&id, &revision, &scope, &epoch, &start}, func() error {
		r := stored{revision: uint64(revision), epoch: uint64(epoch)}
		copy(r.scope[:], scope)
		copy(r.start[:], start)
		var key checkpoint.ID
		copy(key[:], id)
		f.records[key] = r
		return nil
	})
	return err
}

func (f *found) readStarts(rows pgx.Rows) error {
	var id, start []byte
	_, err := pgx.ForEachRow(rows, []any{&id, &start}, func() error {
		var hash checkpoint.Hash
		var key checkpoint.ID
		copy(hash[:], start)
		copy(key[:], id)
		f.starts[hash] = key
		return nil
	})
	return err
}

func (f *found) readOwners(rows pgx.Rows) error {
	var owner []byte
	_, err := pgx.ForEachRow(rows, []any{&owner}, func() error { f.owners[string(owner)] = true; return nil })
	return err
}

// judge compares every expectation of the batch with what is stored.
func (f *found) judge(b *checkpoint.Batch) error {
	if b.Owner != "" && !f.owners[b.Owner] {
		return fmt.Errorf("commit for owner %q: %w", b.Owner, checkpoint.ErrLapsed)
	}
	epochs := make(map[checkpoint.ID]uint64) // what the puts leave
	touched := make(map[checkpoint.ID]bool)  // what is deleted or replaced, and frees the start hash it has
	for i := range b.Puts {
		p := &b.Puts[i]
		old, there := f.records[p.Record.ID]
		if p.Record.Revision-1 != old.revision || p.Epoch != old.epoch || there && p.Record.Scope != old.scope {
			return &checkpoint.ConflictError{ID: p.Record.ID}
		}
		epochs[p.Record.ID], touched[p.Record.ID] = p.Record.Claim.Epoch, true
	}
	for _, d := range b.Deletes {
		if old, there := f.records[d.ID]; !there || old.revision != d.Revision {
			return &checkpoint.ConflictError{ID: d.ID}
		}
		touched[d.ID] = true
	}
	for i := range b.Rows {
		id := b.Rows[i].Row.ID
		old, there := f.records[id]
		epoch, put := epochs[id]
		if !put {
			epoch = old.epoch
		}
		if !there && !put || epoch != b.Rows[i].Epoch {
			return &checkpoint.ConflictError{ID: id}
		}
	}
	if err := f.judgeStarts(b, touched); err != nil {
		return err
	}
	if b.Meta != nil && !f.joined {
		return fmt.Errorf("commit: %w: it has a ledger's meta, and nobody has joined", checkpoint.ErrInvalidBatch)
	}
	return nil
}

func (f *found) judgeStarts(b *checkpoint.Batch, touched map[checkpoint.ID]bool) error {
	takes := make(map[checkpoint.Hash]bool)
	for i := range b.Puts {
		r := &b.Puts[i].Record
		if r.Start.IsZero() {
			continue
		}
		holder, held := f.starts[r.Start]
		if takes[r.Start] || held && !touched[holder] {
			return &checkpoint.ConflictError{ID: r.ID}
		}
		takes[r.Start] = true
	}
	return nil
}

// released are the records whose start hash the batches give up or replace.
func (f *found) released(batches []*checkpoint.Batch) (ids [][]byte) {
	for _, b := range batches {
		for i := range b.Puts {
			r := &b.Puts[i].Record
			if old := f.records[r.ID]; !old.start.IsZero() && old.start != r.Start {
				ids = append(ids, r.ID[:])
			}
		}
	}
	return ids
}
