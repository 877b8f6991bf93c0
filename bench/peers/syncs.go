package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

var syncCall = regexp.MustCompile(`\b(fsync|fdatasync|msync|sync_file_range|syncfs)\(`)

// countSyncs returns how many syncs one cycle of one caller makes, counted by strace over a process
// of its own: the difference between a short and a longer run, so that opening and closing do not
// count. It is an error where there is no strace, or where it may not trace.
func countSyncs(ctx context.Context, args []string, dir string) (float64, error) {
	const few, more = 10, 60
	var counted [2]int
	for i, cycles := range []int{few, more} {
		log := filepath.Join(dir, "strace")
		self, err := os.Executable()
		if err != nil {
			return 0, err
		}
		traced := append([]string{
			"-f", "-qq", "--seccomp-bpf", "-e", "trace=fsync,fdatasync,msync,sync_file_range,syncfs", "-o", log,
			self, "-count", fmt.Sprint(cycles),
		}, args...)
		cmd := exec.CommandContext(ctx, "strace", traced...)
		if output, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("count syncs: %w: %s", err, bytes.TrimSpace(output))
		}
		written, err := os.ReadFile(log)
		if err != nil {
			return 0, err
		}
		counted[i] = len(syncCall.FindAll(written, -1))
	}
	return float64(counted[1]-counted[0]) / (more - few), nil
}
