//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// An owner is somebody whose processes a server may be: PostgreSQL refuses to run as root.
type owner struct{ uid, gid uint32 }

// unprivileged returns nobody where the process is not root's.
func unprivileged() (*owner, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &owner{uint32(uid), uint32(gid)}, nil
	}
	return nil, fmt.Errorf("start PostgreSQL: there is neither a user %q nor %q to run it as", "postgres", "nobody")
}

func (o *owner) own(path string) error { return os.Chown(path, int(o.uid), int(o.gid)) }

// become has the command run as the owner.
func (o *owner) become(cmd *exec.Cmd) {
	if o == nil {
		return
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: o.uid, Gid: o.gid}}
}

// apart keeps signals of a terminal from the command: who is interrupted closes its input.
func apart(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}
