package pgtest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-go/parley/internal/pgtest"
)

const child = "PGTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		s, err := pgtest.Start()
		fmt.Println(s.URL(), err)
		time.Sleep(time.Minute) // until it is killed
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestServer(t *testing.T) {
	s := pgtest.Private(t)
	dir := s.URL()[strings.LastIndex(s.URL(), "=")+1:]
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// The server of a process that is killed ends, and leaves nothing.
func TestKilled(t *testing.T) {
	pgtest.Private(t) // skips where there is none
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url, _, _ := strings.Cut(line, " ")
	dir := url[strings.LastIndex(url, "=")+1:]
	if _, err := os.Stat(filepath.Join(dir, "data")); err != nil {
		t.Fatalf("child's server: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the server of a killed process still runs")
		}
	}
}

// The server is that of the binaries that were asked for, and those alone count.
func TestBinaries(t *testing.T) {
	bin := os.Getenv(pgtest.Binaries)
	if bin == "" {
		t.Skip("no other binaries are asked for")
	}
	out, err := exec.Command(filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	s := pgtest.Private(t)
	if err := s.SQL("SELECT 1 / (strpos('" + strings.TrimSpace(string(out)) + "', ' ' || current_setting('server_version')) > 0)::int"); err != nil {
		t.Errorf("another server than %s: %v", out, err)
	}
	t.Setenv(pgtest.Binaries, t.TempDir())
	if s, err := pgtest.Start(); err == nil || errors.Is(err, pgtest.ErrNone) {
		t.Errorf("a server %v without binaries, error %v", s, err)
	}
}
