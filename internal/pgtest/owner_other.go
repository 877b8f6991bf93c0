//go:build !unix

package pgtest

import (
	"fmt"
	"os/exec"
	"runtime"
)

type owner struct{}

func unprivileged() (*owner, error) {
	return nil, fmt.Errorf("%w: a private server is not started on %s", ErrNone, runtime.GOOS)
}

func (o *owner) own(string) error { return nil }

func (o *owner) become(*exec.Cmd) {}

func apart(*exec.Cmd) {}
