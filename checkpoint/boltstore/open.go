package boltstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/parley-go/parley/internal/durable"
)

// Open opens the file of a store, and creates it where there is none (its directory must exist).
// The caller closes the store.
//
// It returns a [*FileError] where the file cannot be used: another process holds it, or it is no
// file of a store, or damaged, or too new. It never changes such a file; an empty file is no file
// of a store either. Opening reads the file, which takes seconds per GiB. A file of which more than
// half and more than 64 MiB is free is first rewritten to its true size. One of an older format is
// made one of the present format, unless it is only read; programs of before then refuse it.
func Open(path string, opts *Options) (*Store, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	var boot [16]byte
	if _, err := io.ReadFull(o.Random, boot[:]); err != nil {
		return nil, fmt.Errorf("open store %q: read randomness for an owner name: %w", path, err)
	}
	// A path that is a link must not be replaced by a compaction.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	} else if o.ReadOnly || !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open store %q: %w", path, err)
	} else if err := create(path, &o); err != nil {
		return nil, fmt.Errorf("create store %q: %w", path, err)
	}
	db, err := openDatabase(path, &o)
	if err != nil {
		return nil, err
	}
	if !o.ReadOnly {
		db = compactIfLarge(path, db, &o)
		if err := upgradeIfOld(path, db); err != nil {
			return nil, errors.Join(err, db.close())
		}
	}
	s := newStore(path, hex.EncodeToString(boot[:]), db, &o)
	err = s.view(func(t *tables) error {
		var errAudit error
		s.floor, err = t.floor()
		s.audited, errAudit = t.lastAudit()
		return errors.Join(err, errAudit)
	})
	if err != nil {
		return nil, errors.Join(err, db.close())
	}
	s.saved = s.floor
	if !o.ReadOnly {
		go s.serve()
	} else {
		close(s.stopped)
	}
	return s, nil
}

// openDatabase opens the file twice: to be read, which a damaged or foreign file survives
// unchanged, and then to be written.
func openDatabase(path string, o *Options) (*database, error) {
	if err := checkSize(path); err != nil {
		return nil, err
	}
	reading := *o
	reading.ReadOnly = true
	db, err := openBolt(path, &reading)
	if err != nil {
		return nil, err
	}
	err = checkPages(context.Background(), path)
	if err == nil && !o.AllowRollback {
		err = checkMeta(path)
	}
	if err == nil {
		err = guard(path, func() error {
			return db.bolt.View(func(tx *bolt.Tx) error { return checkFormat(path, tx) })
		})
	}
	if err == nil && o.ReadOnly {
		return db, nil
	}
	if err := errors.Join(err, db.close()); err != nil {
		return nil, err
	}
	return openBolt(path, o)
}

// upgradeIfOld makes a file of an older format one of this format, in one transaction.
func upgradeIfOld(path string, db *database) error {
	return guard(path, func() error {
		old := false
		err := db.bolt.View(func(tx *bolt.Tx) error {
			old = (&tables{tx: tx}).version() < formatVersion
			return nil
		})
		if err != nil || !old {
			return err
		}
		return db.bolt.Update(upgrade)
	})
}

// A database is a bbolt database with its file, by which it can be let go of when bbolt is in no
// state to close it.
type database struct {
	bolt  *bolt.DB
	file  *os.File
	stuck bool // a transaction could not be ended; bbolt's own Close would wait for it for ever
}

// close closes the database and lets go of its file.
func (d *database) close() error {
	if d.stuck {
		return d.abandon()
	}
	return d.bolt.Close()
}

// abandon lets go of the file without bbolt, whose memory map stays until the process ends.
func (d *database) abandon() error {
	if d.file == nil {
		return nil
	}
	return errors.Join(unlock(d.file), d.file.Close())
}

// openBolt opens an existing file and takes its lock.
func openBolt(path string, o *Options) (*database, error) {
	db := &database{}
	set := o.bolt()
	set.OpenFile = func(name string, flag int, mode os.FileMode) (file *os.File, err error) {
		db.file, err = os.OpenFile(name, flag&^os.O_CREATE, mode)
		return db.file, err
	}
	err := guard(path, func() (err error) {
		db.bolt, err = bolt.Open(path, 0o600, set)
		return err
	})
	var damaged *FileError
	switch {
	case errors.As(err, &damaged):
		return nil, errors.Join(err, db.abandon())
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, &FileError{Path: path, Reason: Held, Err: fmt.Errorf("by %s", holder(path))}
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch),
		errors.Is(err, bolterrors.ErrChecksum):
		return nil, &FileError{Path: path, Reason: NotDatabase, Err: err}
	case err != nil:
		return nil, fmt.Errorf("open store %q: %w", path, err)
	}
	// While this process waited for the lock, its former holder may have put a compacted file in
	// the place of this one.
	now, err := os.Stat(path)
	if err == nil {
		var mine os.FileInfo
		if mine, err = db.file.Stat(); err == nil && os.SameFile(now, mine) {
			return db, nil
		}
	}
	if err = errors.Join(err, db.close()); err != nil {
		return nil, fmt.Errorf("open store %q: %w", path, err)
	}
	return nil, &FileError{Path: path, Reason: Held, Err: errors.New("by another process, which replaced it")}
}

// create makes an empty store, unless somebody else is first.
func create(path string, o *Options) error {
	return durable.CreateOnce(path, func(temp string) error {
		set := o.bolt()
		set.InitialMmapSize = 0
		db, err := bolt.Open(temp, 0o600, set)
		if err != nil {
			return err
		}
		return errors.Join(db.Update(createFormat), db.Close())
	})
}

// holder says who holds the file's lock, as far as that can be known.
func holder(path string) string {
	pid := lockHolder(path)
	switch pid {
	case 0:
		return "another process"
	case os.Getpid():
		return "this very process, which opened it before"
	}
	return fmt.Sprintf("process %d", pid)
}
