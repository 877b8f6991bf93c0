package boltstore

import (
	"fmt"
	"runtime/debug"

	"github.com/parley-go/parley/checkpoint"
)

// A Reason says why a file cannot be used.
type Reason string

// The reasons of a [FileError].
const (
	Held        Reason = "in use"
	NotDatabase Reason = "not a bbolt file"
	Truncated   Reason = "truncated"
	Damaged     Reason = "damaged"
	Foreign     Reason = "another application's file"
	Newer       Reason = "of a newer format"
)

// A FileError says why the file of a store cannot be used. The file was not changed.
type FileError struct {
	Path   string
	Reason Reason
	Err    error // what was found; for Held who holds the file, as far as that can be known
}

func (e *FileError) Error() string {
	return fmt.Sprintf("use store %q: %s: %v", e.Path, e.Reason, e.Err)
}

// Unwrap returns what was found.
func (e *FileError) Unwrap() error { return e.Err }

// A CorruptError says that the stored row of one record is not as it was written. Other records are
// not concerned.
type CorruptError struct {
	ID  checkpoint.ID
	Err error
}

func (e *CorruptError) Error() string { return fmt.Sprintf("read record %s: damaged: %v", e.ID, e.Err) }

// Unwrap returns what was found.
func (e *CorruptError) Unwrap() error { return e.Err }

// guard runs f and returns a panic of it as a [*FileError]: bbolt panics over damaged pages, and
// the memory map faults where the file has become shorter.
func guard(path string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &FileError{Path: path, Reason: Damaged, Err: fmt.Errorf("panic: %v", p)}
		}
	}()
	return f()
}
