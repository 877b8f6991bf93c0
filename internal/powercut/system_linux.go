package powercut

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"unsafe"
)

const (
	// shutdown is the request FS_IOC_SHUTDOWN, _IOR('X', 125, __u32): the file system does nothing
	// any more.
	shutdown = 0x8004587d
	// withoutLog has it not even flush its log.
	withoutLog = 2
)

// supported says what this machine lacks.
func supported() error {
	if os.Geteuid() != 0 {
		return errors.New("mounting needs root")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return fmt.Errorf("no loop devices: %w", err)
	}
	_, err := exec.LookPath("mount")
	return err
}

// ownMounts gives the process a mount namespace of its own, of which nothing comes back.
func ownMounts(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
}

// tryMount mounts the disk for as long as mount runs.
func (d *Disk) tryMount() error {
	cmd := mountCommand(d.fs, d.image, d.mount)
	ownMounts(cmd)
	return run(cmd)
}

func mount(fs FileSystem, image, dir string) error { return run(mountCommand(fs, image, dir)) }

// mountCommand has the loop device detach itself with the mount.
func mountCommand(fs FileSystem, image, dir string) *exec.Cmd {
	return exec.Command("mount", "-t", string(fs), "-o", "loop", image, dir)
}

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return nil
}

// stop stops the file system of which root is a directory.
func stop(root *os.File) error {
	how := uint32(withoutLog)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, root.Fd(), shutdown, uintptr(unsafe.Pointer(&how))); errno != 0 {
		return fmt.Errorf("shut the file system down: %w", errno)
	}
	return nil
}
