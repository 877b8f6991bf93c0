//go:build !linux

package pgtest

import (
	"errors"
	"net"
)

func silence(*net.TCPConn) error { return errors.ErrUnsupported }
