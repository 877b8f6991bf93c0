package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// A langgraph peer runs in a process of Node.js, which the peers of one node share, one after the
// other.
type langgraph struct {
	node        *node
	saver       string // memory or sqlite
	synchronous string // SQLite's; empty: as shipped
	durability  string // LangGraph's own mode
}

func (p langgraph) request(dir, op string, more map[string]any) map[string]any {
	request := map[string]any{
		"op": op, "saver": p.saver, "synchronous": p.synchronous, "durability": p.durability,
		"file": filepath.Join(dir, "checkpoints.db"),
	}
	maps.Copy(request, more)
	return request
}

func (p langgraph) cycles(ctx context.Context, dir string, l load) (m measured, err error) {
	parameters := map[string]any{
		"callers": l.callers, "warmup": l.warmup.Milliseconds(), "duration": l.duration.Milliseconds(),
	}
	if l.count > 0 {
		parameters["count"] = l.count
	}
	err = p.node.ask(ctx, p.request(dir, "cycles", parameters), &m)
	return m, err
}

func (p langgraph) second(ctx context.Context, dir string, when occasion, trials int) (seen []trial, err error) {
	err = p.node.ask(ctx, p.request(dir, "second", map[string]any{"when": when, "trials": trials}), &seen)
	return seen, err
}

// A node is the process. It is started by the first request, and ends with that one's context;
// where it cannot be started, every request says why.
type node struct {
	dir     string
	start   sync.Once
	missing error
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

var errNotInstalled = errors.New("LangGraph is not installed: run make bench-peers, with npm on the machine")

func (n *node) run(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(n.dir, "node_modules", "@langchain", "langgraph", "package.json")); err != nil {
		return errNotInstalled
	}
	program, err := filepath.Abs(filepath.Join(n.dir, "node_modules", ".bin", "node")) // the version of the lock file
	if _, statErr := os.Stat(program); err != nil || statErr != nil {
		program = "node"
	}
	cmd := exec.CommandContext(ctx, program, "--expose-gc", "peer.mjs")
	cmd.Dir, cmd.Stderr = n.dir, os.Stderr
	cmd.Env = append(os.Environ(), "NODE_ENV=production", "LANGSMITH_TRACING=false", "LANGCHAIN_TRACING_V2=false")
	if n.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	n.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return err
	}
	n.cmd = cmd
	return nil
}

// ask sends one request and waits for its response. It is not for several goroutines at once.
func (n *node) ask(ctx context.Context, request, response any) error {
	n.start.Do(func() { n.missing = n.run(ctx) })
	if n.missing != nil {
		return n.missing
	}
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := n.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("the process of Node.js ended: %w", err)
	}
	line, err = n.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the process of Node.js ended: %w", err)
	}
	var answer struct {
		Value json.RawMessage `json:"value"`
		Error string          `json:"error"`
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return fmt.Errorf("read the response %q: %w", line, err)
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return json.Unmarshal(answer.Value, response)
}

// versions names what is installed, by package; nothing where LangGraph is not.
func (n *node) versions(ctx context.Context) (versions map[string]string) {
	if n.ask(ctx, map[string]any{"op": "versions"}, &versions) != nil {
		return nil
	}
	return versions
}

// stop lets the process end and waits for it.
func (n *node) stop() error {
	if n.cmd == nil {
		return nil
	}
	return errors.Join(n.in.Close(), n.cmd.Wait())
}
