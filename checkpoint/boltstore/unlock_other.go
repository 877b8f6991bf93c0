//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package boltstore

import "os"

// unlock does nothing here: the lock is let go of when the file is closed.
func unlock(*os.File) error { return nil }
