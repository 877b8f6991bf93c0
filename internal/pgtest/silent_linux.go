package pgtest

import (
	"net"
	"os"
	"syscall"
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
