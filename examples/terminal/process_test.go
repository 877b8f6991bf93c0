package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/parley-go/parley/gate"
)

// roleVar makes the test binary run as the program itself, or as one that dies at a chosen moment.
// It does so before any test begins, and before the package's TestMain, which has a child of its
// own to run.
const roleVar = "PARLEY_TEST_ROLE"

func init() {
	switch role := os.Getenv(roleVar); role {
	case "":
	case "program":
		main()
	default:
		dieAt(role)
	}
}

// A process is the program, running in a directory with its pipes in the test's hands.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	errors bytes.Buffer
}

func start(t *testing.T, dir, role string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0], append([]string{"-key", filepath.Join(dir, "demo.key")}, args...)...)}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), roleVar+"="+role)
	p.cmd.Stderr = &p.errors
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill() })
	return p
}

// A line is whatever the program writes.
type line struct {
	Prompt *gate.Prompt
	Result *report
	Error  *struct{ Code, Ended, Message string }
}

// next reads one line of the program's.
func (p *process) next() line {
	p.t.Helper()
	var l line
	if !p.out.Scan() {
		p.t.Fatalf("program wrote no more: %v; it said %q", p.cmd.Wait(), p.errors.String())
	}
	if err := json.Unmarshal(p.out.Bytes(), &l); err != nil {
		p.t.Fatalf("line %q: %v", p.out.Text(), err)
	}
	return l
}

// asks reads a prompt, and checks which question it is.
func (p *process) asks(round int) *gate.Prompt {
	p.t.Helper()
	l := p.next()
	if l.Prompt == nil || l.Prompt.Round != round || len(l.Prompt.Questions) != 1 {
		p.t.Fatalf("line is %s, want the prompt of round %d", p.out.Text(), round)
	}
	return l.Prompt
}

func (p *process) say(payload string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, payload+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// kill is kill -9.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	p.cmd.Wait() // it says that it was killed
}

// exits ends the input, and checks that nothing more is written, and the code.
func (p *process) exits(code int) {
	p.t.Helper()
	p.in.Close()
	if p.out.Scan() {
		p.t.Errorf("program wrote %q after all", p.out.Text())
	}
	p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code is %d, want %d; it said %q", got, code, p.errors.String())
	}
}
