package pgstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/watch"
)

var (
	_ checkpoint.Store   = (*Store)(nil)
	_ checkpoint.Watcher = (*Store)(nil)
)

// maxTries bounds how often a request is made again of which nothing was executed.
const maxTries = 4

// A Store is one process's way to a store in a database of PostgreSQL. It is safe for concurrent
// use. Make one with [Open]; the caller closes it.
//
// Errors of the server, and of the way to it, are [*ServerError]s. Connections that were lost are
// opened anew, also after a restart or a failover of the server.
type Store struct {
	opts *Options
	pool *pgxpool.Pool
	sql  statements
	log  *slog.Logger
	hub  watch.Hub

	prepares bool // statements, on each connection

	ctx       context.Context // of what the store does on its own: it ends after the last commit
	cancel    context.CancelFunc
	running   sync.WaitGroup
	queue     chan *request  // to the committer
	questions chan *question // to whoever answers them
	readers   chan struct{}  // holds one token for each list that is being read
	flushing  chan struct{}  // holds one token while somebody overcomes a doubt
	closing   chan struct{}  // closed when no more commits are taken
	drained   chan struct{}  // closed when the committer has ended
	close     func() error   // runs once

	mu      sync.Mutex // guards what follows
	closed  bool
	floor   time.Time // the latest time that was seen to be committed
	clock   clock
	process *process        // what the owners of this store are alive by; nil: the last one lapsed
	left    map[string]bool // the owners that left, until that is written
	joined  uint64          // how many ever joined
	doubts  uint64          // how many groups had an unknown outcome
	settled uint64          // how many of them are on the disk, where they were applied at all
}

// Close finishes the commits under way, makes lazy ones durable, ends the memberships, and closes
// all connections. After a connection was lost in the middle of a request it may take a quarter of
// a minute, in which the driver breaks that off. Closing twice is fine.
func (s *Store) Close() error { return s.close() }

func (s *Store) shutdown() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.closing)
	if !s.opts.ReadOnly {
		<-s.drained
	}
	s.cancel()
	s.running.Wait()
	err := s.endProcess()
	s.pool.Close()
	if err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// ready returns an error where ctx has ended or the store is closed.
func (s *Store) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	return nil
}

// read makes a request that changes nothing, again where a connection turns out to be lost. However
// many callers read, they leave the connections alone that commits and signs of life need.
func (s *Store) read(ctx context.Context, request func(ctx context.Context, pool *pgxpool.Pool) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	if err := take(bounded, s.readers); err != nil {
		return explain(ctx, err)
	}
	defer release(s.readers)
	return explain(ctx, s.repeat(ctx, bounded, func() error { return request(bounded, s.pool) }))
}

// take waits for one of the tokens that a channel has room for.
func take(ctx context.Context, tokens chan struct{}) error {
	select {
	case tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func release(tokens chan struct{}) { <-tokens }

// repeat makes a request that changes nothing, and makes it again where the connection was lost or
// the server aborted it. bounded is ctx, bounded by Options.Timeout.
func (s *Store) repeat(ctx, bounded context.Context, request func() error) error {
	var err error
	for range maxTries {
		if err = request(); err == nil || ctx.Err() != nil {
			break
		}
		s.distrust(err)
		if reason := reasonOf(err); reason != Unreachable && reason != Aborted || bounded.Err() != nil {
			break
		}
	}
	return err
}

// distrust gives up all connections where one of them was lost to a server that ended, or has
// brought no answer for as long as any request may take: the others are likely to be as dead, and
// each would be found out by a request of its own. After a failover they lead to a server that is
// read only. Statements that are stale on one of them are prepared anew on another.
func (s *Store) distrust(err error) {
	silent := state(err) == "" && errors.Is(err, context.DeadlineExceeded)
	if reason := reasonOf(err); silent || stale(err) || reason == Unreachable || reason == Standby {
		s.pool.Reset()
	}
}

// Load implements [checkpoint.Store].
func (s *Store) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Record, error) {
	r, err := s.one(ctx, s.sql.load, id[:])
	if err != nil {
		return checkpoint.Record{}, fmt.Errorf("load record %s: %w", id, err)
	}
	return r, nil
}

// Find implements [checkpoint.Store].
func (s *Store) Find(ctx context.Context, start checkpoint.Hash) (checkpoint.Record, error) {
	r, err := s.one(ctx, s.sql.find, start[:]) // the zero hash is nobody's: it is not stored
	if err != nil {
		return checkpoint.Record{}, fmt.Errorf("find record by start hash: %w", err)
	}
	return r, nil
}

func (s *Store) one(ctx context.Context, sql string, key []byte) (checkpoint.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout) // for both requests
	defer cancel()
	if err := s.overcome(ctx); err != nil {
		return checkpoint.Record{}, err
	}
	var found struct {
		record checkpoint.Record
		floor  int64
	}
	err := s.ask(ctx, sql, key, func(row pgx.Row) (err error) {
		found.record, err = scanRecord(row, &found.floor)
		return err
	})
	if err != nil {
		return checkpoint.Record{}, err
	}
	s.raiseFloor(found.floor)
	return found.record, nil
}

// scanRecord reads the columns of a record, and what comes after them.
func scanRecord(row pgx.Row, more ...any) (checkpoint.Record, error) {
	var r checkpoint.Record
	var id, scope, start, owner []byte
	var status int16
	var revision, due, epoch, attempt int64
	to := append([]any{&id, &revision, &status, &scope, &start, &due, &owner, &epoch, &attempt, &r.Data}, more...)
	if err := row.Scan(to...); err != nil {
		return r, err
	}
	if len(id) != len(r.ID) || len(scope) != len(r.Scope) || start != nil && len(start) != len(r.Start) {
		return r, &ServerError{Broken, fmt.Errorf("record %x has a key of another length", id)}
	}
	copy(r.ID[:], id)
	copy(r.Scope[:], scope)
	copy(r.Start[:], start)
	r.Revision, r.Status = uint64(revision), checkpoint.Status(status)
	r.Claim = checkpoint.Claim{Owner: string(owner), Epoch: uint64(epoch), Attempt: uint32(attempt)}
	if due > 0 {
		r.Due = time.UnixMilli(due).UTC()
	}
	return r, nil
}

// raiseFloor takes note of the latest time that was committed.
func (s *Store) raiseFloor(nanoseconds int64) {
	if nanoseconds <= 0 {
		return
	}
	floor := time.Unix(0, nanoseconds).UTC()
	s.mu.Lock()
	defer s.mu.Unlock()
	if floor.After(s.floor) {
		s.floor = floor
	}
}
