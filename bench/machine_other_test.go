//go:build !linux

package bench_test

import (
	"os"
	"time"
)

// datasync makes what was written durable.
func datasync(f *os.File) error { return f.Sync() }

// processorTime is not known here: the metric is 0.
func processorTime() time.Duration { return 0 }
