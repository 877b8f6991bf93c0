package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// replicas are processes of the server that are killed and come again.
type replicas struct {
	t       *testing.T
	command func() *exec.Cmd
	http    *http.Client

	mu    sync.Mutex // guards what follows
	list  []*replica
	turn  int
	kills int
}

// A replica is one process.
type replica struct {
	cmd     *exec.Cmd
	address string
	drained chan struct{} // closed when nothing more comes from it
}

func startReplicas(t *testing.T, n int, command func() *exec.Cmd) *replicas {
	t.Helper()
	r := &replicas{t: t, command: command}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	r.http = &http.Client{Timeout: 30 * time.Second, Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		for _, one := range r.list {
			if err := one.kill(); err != nil {
				t.Error(err)
			}
		}
	})
	for range n {
		one, err := r.start()
		if err != nil {
			t.Fatal(err)
		}
		r.list = append(r.list, one)
	}
	return r
}

// start starts a process and waits until it serves. It ends with this one: see TestMain.
func (r *replicas) start() (*replica, error) {
	cmd := r.command()
	cmd.Stderr, cmd.Env = nil, append(cmd.Env, "MCP_SERVER_LEASH=1")
	if _, err := cmd.StdinPipe(); err != nil {
		return nil, err
	}
	text, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	one := &replica{cmd: cmd, drained: make(chan struct{})}
	lines, before := bufio.NewReader(text), ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil, errors.Join(fmt.Errorf("a replica did not start: %s", before), cmd.Wait())
		}
		if _, address, ok := strings.Cut(line, "serving MCP at "); ok {
			one.address = strings.TrimSpace(address)
			break
		}
		before += line
	}
	go func() {
		defer close(one.drained)
		_, _ = io.Copy(io.Discard, lines) // what it logs about lost connections is of no interest
	}()
	return one, nil
}

// next is the address of the replica whose turn it is.
func (r *replicas) next() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn++
	return r.list[r.turn%len(r.list)].address
}

// kill kills one process, and starts another in its place: before where there are several, and else
// after.
func (r *replicas) kill(n int) {
	n %= len(r.list)
	r.mu.Lock()
	gone := r.list[n]
	r.kills++
	r.mu.Unlock()
	if len(r.list) == 1 {
		r.check(gone.kill())
	}
	one, err := r.start()
	if err != nil {
		r.t.Error(err)
		return
	}
	r.mu.Lock()
	r.list[n] = one
	r.mu.Unlock()
	if len(r.list) > 1 {
		r.check(gone.kill())
	}
}

func (r *replicas) check(err error) {
	if err != nil {
		r.t.Error(err)
	}
}

func (one *replica) kill() error {
	if err := one.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill a replica: %w", err)
	}
	<-one.drained
	var exit *exec.ExitError
	if err := one.cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		return fmt.Errorf("a replica ended by itself: %v", err)
	}
	return nil
}

// stop ends the process in good order.
func (one *replica) stop() error {
	if err := one.cmd.Process.Signal(os.Interrupt); err != nil {
		return fmt.Errorf("stop a replica: %w", err)
	}
	<-one.drained
	return one.cmd.Wait()
}
