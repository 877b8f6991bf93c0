package bench_test

import (
	"os"
	"syscall"
	"time"
)

// datasync makes what was written durable, as bbolt does.
func datasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// processorTime is how long this process has kept processors busy.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
