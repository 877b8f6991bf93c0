package boltstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/watch"
)

var (
	_ checkpoint.Store   = (*Store)(nil)
	_ checkpoint.Watcher = (*Store)(nil)
)

// A Store is one boot of a store's file: the owners that joined it are alive until they leave or it
// is closed. It is safe for concurrent use. Make one with [Open]; the caller closes it.
//
// What it returns for a file that turns out to be damaged is a [*FileError], for one damaged record
// a [*CorruptError].
type Store struct {
	path      string
	boot      string // the first part of every owner's name
	db        *database
	readOnly  bool
	idleFlush time.Duration
	log       *slog.Logger
	hub       watch.Hub

	queue   chan *request // to the committer
	dirty   chan struct{} // holds one token when the overlay has something new
	closing chan struct{} // closed when the committer is to end
	stopped chan struct{} // closed when it has
	saved   time.Time     // the floor that is in the file; the committer's own
	close   func() error  // runs once

	copyStep func() // for tests: called while a backup is in the middle of the file

	// admit orders the checks of batches: it is held from the comparison of a batch with what is
	// stored until what it writes can be seen by the next comparison, and never while the disk is
	// waited for. It comes before mu.
	admit sync.Mutex

	mu        sync.Mutex
	closed    bool
	failed    error                  // why nothing is served any more
	overlay   overlay                // lazy writes that are not in the file yet
	inFlight  map[checkpoint.ID]bool // what the transaction under way writes over the overlay
	used      tally                  // what is used by scopes that were written to, all admitted writes included
	audited   uint64                 // the last audit entry that is in the file
	floor     time.Time              // the latest time that was committed
	members   map[string]bool        // the owners that are alive
	joined    uint64                 // how many ever joined
	failpoint func(committed bool) error
}

func newStore(path, boot string, db *database, o *Options) *Store {
	s := &Store{
		path:      path,
		boot:      boot,
		db:        db,
		readOnly:  o.ReadOnly,
		idleFlush: o.IdleFlush,
		log:       o.Logger,
		queue:     make(chan *request, maxGroup),
		dirty:     make(chan struct{}, 1),
		closing:   make(chan struct{}),
		stopped:   make(chan struct{}),
		overlay:   newOverlay(),
		used:      make(tally),
		members:   make(map[string]bool),
	}
	s.close = sync.OnceValue(s.shutdown)
	return s
}

// Close makes durable what is not yet, and lets go of the file. Commits under way are finished, or
// answered with checkpoint.ErrUnavailable. Closing twice is fine.
func (s *Store) Close() error { return s.close() }

func (s *Store) shutdown() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.closing)
	<-s.stopped
	s.mu.Lock()
	lost := s.failed != nil && !s.overlay.empty()
	cause := s.failed
	s.mu.Unlock()
	err := s.db.close()
	if lost {
		err = errors.Join(cause, err)
	}
	if err != nil {
		return fmt.Errorf("close store %q: %w", s.path, err)
	}
	return nil
}

// serving returns checkpoint.ErrUnavailable with its cause, where the store serves nothing. It is
// called with mu held.
func (s *Store) serving() error {
	if s.failed != nil {
		return s.failed
	}
	if s.closed {
		return errClosed
	}
	return nil
}

var errClosed = fmt.Errorf("%w: it is closed", checkpoint.ErrUnavailable)

// ready returns an error where ctx has ended or the store serves nothing.
func (s *Store) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serving()
}

// view runs f in a read transaction, which lasts as long as f does. bbolt panics and page faults
// are returned as errors.
func (s *Store) view(f func(*tables) error) error {
	err := guard(s.path, func() error {
		return s.db.bolt.View(func(tx *bolt.Tx) error {
			return f(&tables{tx: tx})
		})
	})
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return errClosed
	}
	return err
}

// Load implements [checkpoint.Store]. It sees lazy commits too.
func (s *Store) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Record, error) {
	r, err := s.load(ctx, id)
	if err != nil {
		return checkpoint.Record{}, fmt.Errorf("load record %s: %w", id, err)
	}
	return r, nil
}

func (s *Store) load(ctx context.Context, id checkpoint.ID) (r checkpoint.Record, err error) {
	if err := ctx.Err(); err != nil {
		return r, err
	}
	// The overlay comes first: what leaves it is in the file by then. The other order could miss a
	// write that moved in between.
	s.mu.Lock()
	err = s.serving()
	lazy := s.overlay.records[id]
	s.mu.Unlock()
	if err != nil {
		return r, err
	}
	if lazy != nil {
		return lazy.read()
	}
	err = s.view(func(t *tables) (err error) { r, err = t.load(id); return err })
	return r, err
}

// Find implements [checkpoint.Store]. It sees lazy commits too.
func (s *Store) Find(ctx context.Context, start checkpoint.Hash) (checkpoint.Record, error) {
	r, err := s.find(ctx, start)
	if err != nil {
		return checkpoint.Record{}, fmt.Errorf("find record by start hash: %w", err)
	}
	return r, nil
}

func (s *Store) find(ctx context.Context, start checkpoint.Hash) (r checkpoint.Record, err error) {
	if err := s.ready(ctx); err != nil {
		return r, err
	}
	if start.IsZero() {
		return r, checkpoint.ErrNotFound
	}
	// A record in the overlay has the start hash that it has in the file, so the file knows whose
	// it is. Where that record has lost it meanwhile, another may have taken it in the same batch:
	// only a holder that stays the same has left it to nobody.
	var former checkpoint.ID
	for {
		var id checkpoint.ID
		var held bool
		err := s.view(func(t *tables) (err error) { id, held, err = t.holder(start); return err })
		if err != nil {
			return checkpoint.Record{}, err
		}
		if !held || id == former {
			return checkpoint.Record{}, checkpoint.ErrNotFound
		}
		r, err := s.load(ctx, id)
		if err == nil && r.Start == start || err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
			return r, err
		}
		former = id
	}
}

// Watch implements [checkpoint.Watcher]. Those who wait are not woken by a commit of unknown
// outcome, nor by Close.
func (s *Store) Watch(id checkpoint.ID) (<-chan struct{}, func()) { return s.hub.Watch(id) }

// changed wakes those who wait for a record of the write.
func (s *Store) changed(w *write) {
	for _, c := range w.changes {
		s.hub.Changed(c.record.ID)
	}
}
