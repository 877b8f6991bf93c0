package main

import (
	"os"
	"path/filepath"
	"time"
)

// probe returns how often a second 4 KiB over a written file reach the disk, one after the other.
// Disks of shared machines drift, so that a figure means little without it.
func probe(dir string, d time.Duration) (rate float64, err error) {
	const pageSize, pages = 4096, 64
	name := filepath.Join(dir, "probe")
	f, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
		if removing := os.Remove(name); err == nil {
			err = removing
		}
	}()
	if _, err := f.Write(make([]byte, pageSize*pages)); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	page, syncs, begin := make([]byte, pageSize), 0, time.Now()
	for ; time.Since(begin) < d; syncs++ {
		if _, err := f.WriteAt(page, int64(syncs%pages)*pageSize); err != nil {
			return 0, err
		}
		if err := datasync(f); err != nil {
			return 0, err
		}
	}
	return float64(syncs) / time.Since(begin).Seconds(), nil
}
