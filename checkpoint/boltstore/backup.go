package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/internal/durable"
)

const (
	// backupStep is how many bytes a backup copies before it looks whether it is in the way.
	backupStep = 1 << 20
	// backupPatience is how long it looks. Nothing but a remapping makes a reader wait at all.
	backupPatience = 50 * time.Millisecond
	// backupTries is how often it begins.
	backupTries = 3
)

// ErrBackupAborted is returned by [Store.Backup] where the file outgrew its memory map while it was
// copied, again and again. Nothing was written to the path; a later time is a better one.
var ErrBackupAborted = errors.New("the file outgrew its memory map while it was copied")

// Backup writes a copy of the store's file to path, while commits and reads go on. The copy has
// every commit that returned before Backup was called, and of the later ones each whole or not at
// all. It has mode 0600, is whole and durable when Backup returns nil, and is a store's file like
// any other: open it, check it with [Check], or put it in the place of a lost one. Where there is a
// file at path already, Backup returns fs.ErrExist and leaves it alone; the directory must exist.
//
// Commits do not wait for a backup, with one exception: a file that outgrows its memory map (on
// most systems 1 GiB at first, then in steps of as much) has to be mapped anew, and that has to
// wait for the backup. The backup notices within a mebibyte, gives way and begins again, three
// times at most: then it returns [ErrBackupAborted]. Until it ends, what is written takes new space
// in the file.
//
// Close ends a backup with checkpoint.ErrUnavailable.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := s.backup(ctx, path); err != nil {
		return fmt.Errorf("back up store %q to %q: %w", s.path, path, err)
	}
	return nil
}

func (s *Store) backup(ctx context.Context, path string) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	// It is looked for again when the copy gets its name. This is to be told before it is made.
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fs.ErrExist
		}
		return err
	}
	return durable.CreateNew(path, func(temp string) error {
		for range backupTries {
			if !s.readOnly {
				// Waits for lazy commits to be in the file, and for the remapping after a try.
				if err := s.submit(ctx, &request{}); err != nil {
					return err
				}
			}
			err := s.copyTo(ctx, temp)
			if err == nil {
				err = checkPages(ctx, temp)
			}
			if file, ok := errors.AsType[*FileError](err); ok {
				file.Path = s.path // the copy is what the store's file is
			}
			if !errors.Is(err, ErrBackupAborted) {
				return err
			}
		}
		return ErrBackupAborted
	})
}

// copyTo writes the file as it is in one read transaction.
func (s *Store) copyTo(ctx context.Context, temp string) (err error) {
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	c := &copying{ctx: ctx, store: s, to: f}
	defer func() {
		if c.waits != nil {
			<-c.waits // the transaction that it waited for has ended
		}
		err = errors.Join(err, f.Close())
	}()
	return s.view(func(t *tables) error {
		_, err := t.tx.WriteTo(c)
		return err
	})
}

// copying is a file that is written within a read transaction, and that fails where the transaction
// has to end.
type copying struct {
	ctx   context.Context
	store *Store
	to    *os.File
	since int             // bytes since it last looked
	waits <-chan struct{} // closed when the reader that was waited for in vain is through
}

func (c *copying) Write(p []byte) (int, error) {
	if c.since >= backupStep {
		c.since = 0
		if err := c.look(); err != nil {
			return 0, err
		}
	}
	n, err := c.to.Write(p)
	c.since += n
	return n, err
}

// look returns an error where the copying is to end.
func (c *copying) look() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	select {
	case <-c.store.closing:
		return errClosed
	default:
	}
	if step := c.store.copyStep; step != nil {
		step()
	}
	// The disk gets the copy bit by bit: all of it at the end would make a commit wait.
	if err := c.to.Sync(); err != nil {
		return err
	}
	// A writer that wants to map the file anew waits for this transaction, and lets no other begin.
	through := make(chan struct{})
	go func() {
		defer close(through)
		_ = c.store.db.bolt.View(func(*bolt.Tx) error { return nil })
	}()
	patience := time.NewTimer(backupPatience)
	defer patience.Stop()
	select {
	case <-through:
		return nil
	case <-patience.C:
		c.waits = through
		return ErrBackupAborted
	}
}
