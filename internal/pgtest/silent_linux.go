package pgtest

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// silence makes this end of a connection deaf: what arrives is dropped before the system sees it,
// so that the other end gets no receipts and no answers to its probes, as from a machine without
// power.
func silence(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	if err := received(raw); err != nil {
		return err
	}
	drop := syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K}
	program := syscall.SockFprog{Len: 1, Filter: &drop}
	var set syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, set = syscall.Syscall6(syscall.SYS_SETSOCKOPT, fd, syscall.SOL_SOCKET, syscall.SO_ATTACH_FILTER,
			uintptr(unsafe.Pointer(&program)), unsafe.Sizeof(program), 0)
	})
	if err == nil && set != 0 {
		err = os.NewSyscallError("setsockopt", set)
	}
	return err
}

// received waits until all that was sent has a receipt: else it would be sent again, and a machine
// without power sends nothing.
func received(raw syscall.RawConn) error {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var left int32
		var asked syscall.Errno
		err := raw.Control(func(fd uintptr) {
			_, _, asked = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&left)))
		})
		if err == nil && asked != 0 {
			err = os.NewSyscallError("ioctl", asked)
		}
		if err != nil || left == 0 {
			return err
		}
	}
	return errors.New("what was sent to the server has no receipt")
}
