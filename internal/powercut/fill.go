package powercut

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// ballast is the file that fills a disk.
const ballast = "ballast"

// fill writes the ballast, in ever smaller pieces, until there is no room for another byte.
func fill(dir string) error {
	f, err := os.Create(filepath.Join(dir, ballast))
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		piece := make([]byte, size)
		for err == nil {
			_, err = f.Write(piece)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return err
		}
		err = nil
	}
	return nil
}
