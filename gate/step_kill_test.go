package gate_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// stepsChild names the variable that makes the test binary a process that runs interactions with
// steps in the directory it names, until it is killed.
const (
	stepsChild   = "GATE_TEST_STEPS_IN"
	stepsWorkers = 4
)

// A stepsJournal is what the world saw, line by line, in a file: a step's effect, that a handler
// was told that it is done, and how an interaction ended. Each line is copied to out, where there
// is one.
type stepsJournal struct {
	path string
	out  io.Writer
}

func (j stepsJournal) add(format string, args ...any) error {
	f, err := os.OpenFile(j.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	line := fmt.Sprintf(format+"\n", args...)
	_, err = f.WriteString(line)
	if j.out != nil {
		_, _ = io.WriteString(j.out, line) // who does not listen is about to kill
	}
	return errors.Join(err, f.Close())
}

func (j stepsJournal) lines() ([][]string, error) {
	text, err := os.ReadFile(j.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var lines [][]string
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.Fields(line))
	}
	return lines, err
}

// tool marks a and c, and may repeat b.
func (j stepsJournal) tool() *gate.Tool {
	return gate.NewTool("tool", func(ctx context.Context, in struct{ Work string }) (string, error) {
		for _, key := range []string{"a", "b", "c"} {
			_, err := interrupt.Once(ctx, key, func(context.Context, string) (string, error) {
				return "x", j.add("effect %s %s", in.Work, key)
			}, &interrupt.OnceOptions[string]{Idempotent: key == "b"})
			if err != nil {
				return "", err
			}
			if err := j.add("done %s %s", in.Work, key); err != nil {
				return "", err
			}
			if key == "a" {
				if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
					return "", err
				}
			}
		}
		return "done", nil
	}, &gate.ToolOptions{Replay: gate.Repeatable})
}

// open returns the gate on the file beside the journal.
func (j stepsJournal) open(ctx context.Context) (*gate.Gate, *boltstore.Store, error) {
	store, err := boltstore.Open(filepath.Join(filepath.Dir(j.path), "ledger.db"), nil)
	if err != nil {
		return nil, nil, err
	}
	g, err := gate.Open(ctx, store, &gate.Options{
		Tools: []*gate.Tool{j.tool()}, Keys: [][]byte{testKey}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return g, store, nil
}

// work brings one interaction to its end, and notes it.
func (j stepsJournal) work(ctx context.Context, g *gate.Gate, name string) error {
	c := call("tool", fmt.Sprintf(`{"Work":%q}`, name))
	c.StartID = name
	for {
		outcome, err := g.Invoke(ctx, c)
		if p := outcome.Prompt; p != nil {
			c.Token, c.Answers = p.Token, gate.Answers{p.Questions[0].ID: []byte(`{"selectionIdx":0}`)}
			continue
		}
		var e *gate.Error
		switch {
		case err == nil:
			return j.add("end %s finished", name)
		case errors.As(err, &e) && (e.Code == gate.ErrOutcomeUnknown || e.Code == gate.ErrAlreadyCompleted):
			return j.add("end %s %s", name, e.Code)
		default:
			return err
		}
	}
}

// stepsUntilKilled ends what former processes began, and then begins more.
func stepsUntilKilled(dir string) int {
	ctx := context.Background()
	j := stepsJournal{filepath.Join(dir, "journal"), os.Stdout}
	lines, err := j.lines()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	g, _, err := j.open(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	names := make(chan string)
	go func() {
		for name := range unended(lines) {
			names <- name
		}
		for n := 0; ; n++ {
			names <- fmt.Sprint(len(lines), "-", n)
		}
	}()
	var all sync.WaitGroup
	for range stepsWorkers {
		all.Go(func() {
			for name := range names {
				if err := j.work(ctx, g, name); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
			}
		})
	}
	all.Wait()
	return 1
}

// unended are the interactions of which no end was noted.
func unended(lines [][]string) map[string]bool {
	names := map[string]bool{}
	for _, line := range lines {
		names[line[1]] = true
	}
	for _, line := range lines {
		if line[0] == "end" {
			delete(names, line[1])
		}
	}
	return names
}

// R4: a process that is killed again and again repeats no step that is not idempotent and none that
// was told to be done, and in the end everything is done or told to be unknown.
func TestStepsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	dir := t.TempDir()
	j := stepsJournal{path: filepath.Join(dir, "journal")}
	for range 10 {
		killAfterAWhile(t, dir)
	}
	g, store, err := j.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines, err := j.lines()
	if err != nil {
		t.Fatal(err)
	}
	for name := range unended(lines) {
		if err := j.work(t.Context(), g, name); err != nil {
			t.Errorf("%s: %v (%v)", name, err, errors.Unwrap(err))
		}
	}
	if err := errors.Join(g.Close(t.Context()), store.Close()); err != nil {
		t.Fatal(err)
	}
	if lines, err = j.lines(); err != nil {
		t.Fatal(err)
	}
	j.check(t, lines)
}

// check holds the journal against R4.
func (j stepsJournal) check(t *testing.T, lines [][]string) {
	t.Helper()
	effects, done, ends := map[string]int{}, map[string]bool{}, map[string]int{}
	for _, line := range lines {
		kind, work, what := line[0], line[1], line[2]
		step := work + " " + what
		switch kind {
		case "effect":
			if effects[step]++; effects[step] > 1 && what != "b" || done[step] {
				t.Errorf("step %s had its effect again", step)
			}
		case "done":
			if done[step] = true; effects[step] == 0 {
				t.Errorf("step %s is done without an effect", step)
			}
		case "end":
			ends[what]++
			unknown, marked := what == string(gate.ErrOutcomeUnknown), done[work+" a"] && done[work+" c"]
			if unknown && marked || !unknown && !(marked && done[work+" b"]) {
				t.Errorf("%s ends with %s, its steps are done: %v, %v, %v", work, what, done[work+" a"], done[work+" b"], done[work+" c"])
			}
		}
	}
	if ends["finished"] == 0 {
		t.Error("nothing was finished")
	}
	t.Logf("ends %v", ends)
}

// killAfterAWhile lets a process work until it has done this and that.
func killAfterAWhile(t *testing.T, dir string) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), stepsChild+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range rand.IntN(100) + 1 {
		lines.Scan()
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil || child.ProcessState.ExitCode() != -1 {
		t.Fatalf("it ended by itself: %v", err)
	}
}
