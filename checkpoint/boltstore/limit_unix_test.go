//go:build unix

package boltstore_test

import (
	"os"
	"os/signal"
	"syscall"
)

// limitFiles lets no file grow far beyond what the one at path takes on the disk: a write across
// the limit is cut short, and the next one is refused. Without a path there is no limit any more.
func limitFiles(path string) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	if path != "" {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		limit.Cur = uint64(info.Sys().(*syscall.Stat_t).Blocks)*512 + 100
		signal.Ignore(syscall.SIGXFSZ) // so that the write returns an error
	}
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}
