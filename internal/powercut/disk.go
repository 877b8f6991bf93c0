package powercut

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A FileSystem is a kind of file system, by the name that mount has for it.
type FileSystem string

// The file systems whose power can be cut.
const (
	Ext4 FileSystem = "ext4"
	XFS  FileSystem = "xfs"
)

const (
	requireEnv = "POWERCUT_REQUIRE" // the file systems that must not be skipped, with commas
	cutsEnv    = "POWERCUT_CUTS"
)

// A Disk is an image file with a file system, for one machine at a time.
type Disk struct {
	fs    FileSystem
	image string
	mount string // an empty directory, over which a machine mounts it
}

// NewDisk makes a disk of that many bytes, of which the image takes only what is written. XFS wants
// 300 MiB or more. The test is skipped where there can be no such disk.
func NewDisk(t testing.TB, fs FileSystem, size int64) *Disk {
	t.Helper()
	if testing.Short() {
		t.Skip("cuts the power under processes")
	}
	dir := t.TempDir()
	d := &Disk{fs: fs, image: filepath.Join(dir, "image"), mount: filepath.Join(dir, "mount")}
	if err := d.make(size); err != nil {
		if slices.Contains(strings.Split(os.Getenv(requireEnv), ","), string(fs)) {
			t.Fatalf("%s requires power cuts on %s: %v", requireEnv, fs, err)
		}
		t.Skipf("no power cuts on %s here: %v", fs, err)
	}
	return d
}

func (d *Disk) make(size int64) error {
	if err := supported(); err != nil {
		return err
	}
	mkfs := "mkfs." + string(d.fs)
	if _, err := exec.LookPath(mkfs); err != nil {
		return err
	}
	if err := os.Mkdir(d.mount, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(d.image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(d.image, size); err != nil {
		return err
	}
	if out, err := exec.Command(mkfs, "-q", d.image).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", mkfs, err, out)
	}
	return d.tryMount()
}

// Cuts is how many times a test cuts the power that usually does so n times.
func Cuts(t testing.TB, n int) int {
	t.Helper()
	wish := os.Getenv(cutsEnv)
	if wish == "" {
		return n
	}
	n, err := strconv.Atoi(wish)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, and not a number of cuts", cutsEnv, wish)
	}
	return n
}
