package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/internal/durable"
)

// Compact rewrites the file of a store to its true size, whatever that gains, and counts the usage
// anew. It is for a store that nobody has open: where another process holds the file, it returns a
// [*FileError] after opts.Timeout, as it does for a file that [Open] does not take. Of the options
// it uses Timeout, AllowRollback and Logger.
//
// A crash at any moment leaves the file as it was or the new one, and beside it at most a file that
// can be removed, whose name begins with that of path. There must be room for both. On Windows,
// where a file in use cannot be replaced, it returns errors.ErrUnsupported.
func Compact(path string, opts *Options) error {
	o, err := opts.withDefaults()
	if err != nil {
		return err
	}
	if runtime.GOOS == "windows" {
		return fmt.Errorf("compact store %q: %w", path, errors.ErrUnsupported)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return fmt.Errorf("compact store: %w", err)
	}
	o.ReadOnly = false
	db, err := openDatabase(path, &o)
	if err != nil {
		return err
	}
	if err := upgradeIfOld(path, db); err != nil {
		return errors.Join(err, db.close())
	}
	compacted, err := compact(path, db, &o)
	if err != nil {
		return errors.Join(fmt.Errorf("compact store %q: %w", path, err), db.close())
	}
	if err := compacted.close(); err != nil {
		return fmt.Errorf("compact store %q: %w", path, err)
	}
	return nil
}

// compactIfLarge rewrites the file to its true size where more than half of it, and more than a
// limit, is free: bbolt never gives space back. It returns the database to go on with, which is db
// where there is nothing to gain or the rewriting failed. Windows cannot replace a file that is
// mapped; there the file keeps its size.
func compactIfLarge(path string, db *database, o *Options) *database {
	var pages int64
	size := int64(db.bolt.Info().PageSize)
	free := int64(db.bolt.Stats().FreePageN)
	if err := db.bolt.View(func(tx *bolt.Tx) error { pages = tx.Size() / size; return nil }); err != nil {
		return db
	}
	if runtime.GOOS == "windows" || free*2 <= pages || free*size <= o.compactAbove {
		return db
	}
	compacted, err := compact(path, db, o)
	if err != nil {
		o.Logger.Warn("store not compacted", "path", path, "free", free*size, "error", err)
		return db
	}
	o.Logger.Info("store compacted", "path", path, "free", free*size, "of", pages*size)
	return compacted
}

// compact copies the database into a file beside it and puts that in its place. Both locks are held
// until then, so nobody else can have written to either.
func compact(path string, db *database, o *Options) (_ *database, err error) {
	temp, err := durable.TempBeside(path)
	if err != nil {
		return nil, err
	}
	set := o.bolt()
	set.NoSync = true // until it is whole, it need not be durable
	out := &database{}
	set.OpenFile = func(name string, flag int, mode os.FileMode) (file *os.File, err error) {
		out.file, err = os.OpenFile(name, flag, mode)
		return out.file, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp))
		}
	}()
	if out.bolt, err = bolt.Open(temp, 0o600, set); err != nil {
		return nil, err
	}
	err = guard(path, func() error {
		const transaction = 16 << 20
		if err := bolt.Compact(out.bolt, db.bolt, transaction); err != nil {
			return err
		}
		return errors.Join(out.bolt.Update(recount), out.bolt.Sync())
	})
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return nil, errors.Join(err, out.close())
	}
	// From here on the new file is the store, whatever happens.
	out.bolt.NoSync = false
	if err := errors.Join(durable.SyncName(path), db.close()); err != nil {
		o.Logger.Warn("store compacted, but not cleanly", "path", path, "error", err)
	}
	return out, nil
}
