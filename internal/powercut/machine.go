package powercut

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/parley-go/parley/internal/crash"
)

const (
	imageEnv = "POWERCUT_IMAGE"
	mountEnv = "POWERCUT_MOUNT"
	fsEnv    = "POWERCUT_FILE_SYSTEM"
)

// A Machine is a child process with the disk, which answers requests. Requests may be made from
// several goroutines at once.
type Machine struct {
	t     testing.TB
	child *crash.Child
	off   bool
}

// A request is one of the test's own, or for the machine itself.
type request struct {
	Do   string          `json:"do,omitempty"` // stop, fill or free
	Body json.RawMessage `json:"body,omitempty"`
}

// Boot starts the test binary again as a machine that has the disk, with these environment
// variables beside the test's own. The binary's TestMain calls [Serve] where [Booted] says so. It
// is killed when the test ends.
func (d *Disk) Boot(t testing.TB, env ...string) *Machine {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), imageEnv+"="+d.image, mountEnv+"="+d.mount, fsEnv+"="+string(d.fs))
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	ownMounts(cmd)
	child, err := crash.Start(cmd)
	if err != nil {
		t.Fatalf("boot machine: %v", err)
	}
	m := &Machine{t: t, child: child}
	t.Cleanup(m.Kill)
	return m
}

// Call sends a request and reads its answer, or returns [crash.ErrDied].
func (m *Machine) Call(body, answer any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return m.child.Call(request{Body: raw}, answer)
}

// Cut cuts the power: first the disk stops, then the process.
//
// An answer that comes while Cut runs proves nothing, since a sync may return without an error
// while the file system stops. Only what was answered before the call has to be there afterwards.
func (m *Machine) Cut() {
	m.t.Helper()
	m.Stop()
	m.Kill()
}

// Stop stops the disk and leaves the process running: from then on whatever it does with the disk
// fails with an I/O error. What was not on the disk is lost.
func (m *Machine) Stop() {
	m.t.Helper()
	m.do("stop")
}

// Fill takes all room that is left on the disk.
func (m *Machine) Fill() {
	m.t.Helper()
	m.do("fill")
}

// Free gives back what Fill took.
func (m *Machine) Free() {
	m.t.Helper()
	m.do("free")
}

func (m *Machine) do(what string) {
	m.t.Helper()
	var failed string
	if err := m.child.Call(request{Do: what}, &failed); err != nil || failed != "" {
		m.t.Fatalf("%s the disk: %v %s", what, err, failed)
	}
}

// Kill kills the process, whose disk then is unmounted in good order, unless it was stopped before.
func (m *Machine) Kill() {
	m.t.Helper()
	if m.off {
		return
	}
	m.off = true
	if err := m.child.Kill(); err != nil {
		m.t.Errorf("kill machine: %v", err)
	}
}

// Booted reports whether this process is a machine.
func Booted() bool { return os.Getenv(imageEnv) != "" }

// Serve is the machine's side. It mounts the disk, has start begin in its directory, and answers
// requests with what that returns, each in a goroutine of its own. It returns the process's exit
// code: when the test is over, also because it died.
func Serve(start func(dir string) (answer func(body json.RawMessage) any, err error)) int {
	if err := serve(start); err != nil {
		fmt.Fprintln(os.Stderr, "machine:", err)
		return 1
	}
	return 0
}

func serve(start func(dir string) (func(json.RawMessage) any, error)) error {
	dir := os.Getenv(mountEnv)
	if err := mount(FileSystem(os.Getenv(fsEnv)), os.Getenv(imageEnv), dir); err != nil {
		return err
	}
	// Opened before it is needed: nothing must come between the request and the cut.
	root, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	answer, err := start(dir)
	if err != nil {
		return err
	}
	return crash.Serve(os.Stdin, os.Stdout, func(raw json.RawMessage) any {
		var r request
		if err := json.Unmarshal(raw, &r); err != nil {
			return err.Error()
		}
		var err error
		switch r.Do {
		case "":
			return answer(r.Body)
		case "stop":
			err = stop(root)
		case "fill":
			err = fill(dir)
		case "free":
			err = os.Remove(filepath.Join(dir, ballast))
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}
