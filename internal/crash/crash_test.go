package crash_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"

	"github.com/parley-go/parley/internal/crash"
)

// child names the variable that makes the test binary the child.
const child = "CRASH_TEST_CHILD"

// The child doubles numbers. It does not answer 0, and ends on a negative one.
func TestMain(m *testing.M) {
	if os.Getenv(child) == "" {
		os.Exit(m.Run())
	}
	os.Stdout.WriteString("a line that is no answer\n")
	err := crash.Serve(os.Stdin, os.Stdout, func(request json.RawMessage) any {
		var n int
		if err := json.Unmarshal(request, &n); err != nil {
			panic(err)
		}
		switch {
		case n < 0:
			os.Exit(3)
		case n == 0:
			select {}
		}
		return 2 * n
	})
	if err != nil {
		panic(err)
	}
}

func start(t *testing.T) *crash.Child {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals there")
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), executable)
	cmd.Env = append(os.Environ(), child+"=1")
	c, err := crash.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Each caller gets its own answer. Whom the child's death leaves without one is told.
func TestKill(t *testing.T) {
	c := start(t)
	var group sync.WaitGroup
	for n := range 20 {
		group.Go(func() {
			var answer int
			if err := c.Call(n+1, &answer); err != nil || answer != 2*(n+1) {
				t.Errorf("double %d: %d, %v", n+1, answer, err)
			}
		})
	}
	group.Wait()
	hangs := make(chan error)
	go func() { hangs <- c.Call(0, new(int)) }()
	if err := c.Kill(); err != nil {
		t.Errorf("kill: %v", err)
	}
	if err := <-hangs; !errors.Is(err, crash.ErrDied) {
		t.Errorf("the call under way: got %v, want ErrDied", err)
	}
	if err := c.Call(1, new(int)); !errors.Is(err, crash.ErrDied) {
		t.Errorf("a call after it: got %v, want ErrDied", err)
	}
}

// A child that ended by itself was not killed: a test that meant to kill it has found something
// else.
func TestEndedByItself(t *testing.T) {
	c := start(t)
	if err := c.Call(-1, new(int)); !errors.Is(err, crash.ErrDied) {
		t.Errorf("got %v, want ErrDied", err)
	}
	if err := c.Kill(); err == nil {
		t.Error("kill: no error")
	}
}
