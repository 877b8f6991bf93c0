//go:build unix

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// The variables that make the test binary a process that runs an agent in a directory and kills
// itself at one of its steps.
const (
	killIn = "AGENT_TEST_KILL_IN"
	killAt = "AGENT_TEST_KILL_AT" // "3": when it comes to its third step
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killIn); dir != "" {
		if err := play(dir, os.Getenv(killAt)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// A dying process kills itself when it comes to a step: right before and after each commit of its
// store, what a run keeps of its model's answers among them, where its model is asked, and before
// and after each effect.
type dying struct {
	checkpoint.Store
	dir   string
	steps atomic.Int64
	at    int64 // 0: it lives
}

func (d *dying) step() {
	if d.steps.Add(1) != d.at {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until it is there
}

func (d *dying) Commit(ctx context.Context, b *checkpoint.Batch) error {
	d.step()
	err := d.Store.Commit(ctx, b)
	d.step()
	return err
}

func (d *dying) effect(line string) error {
	d.step()
	err := journal(d.dir, line)
	d.step()
	return err
}

// journal counts effects in a file, which a kill does not undo.
func journal(dir, line string) error {
	f, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// play starts the run, or goes on with it, and answers its questions one by one until it ends: two
// questions of one turn beside a tool that does not ask, and one question in the next turn, beside
// a tool that has its effect at once. It writes the last message down.
func play(dir, kill string) error {
	ctx := context.Background()
	file, err := boltstore.Open(filepath.Join(dir, "parley.db"), nil)
	if err != nil {
		return err
	}
	store := &dying{Store: file, dir: dir}
	if kill != "" {
		if store.at, err = strconv.ParseInt(kill, 10, 64); err != nil {
			return err
		}
	}
	ask := gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service)); err != nil {
			return "", err
		}
		return "deployed " + in.Service, store.effect(in.Service)
	}, &gate.ToolOptions{KeepResult: true})
	look := gate.NewTool("status", func(context.Context, struct{}) (string, error) {
		return "green", store.effect("status")
	}, &gate.ToolOptions{KeepResult: true, Replay: gate.Repeatable})
	notify := gate.NewTool("notify", func(context.Context, struct{}) (string, error) {
		return "notified", store.effect("notify")
	}, &gate.ToolOptions{KeepResult: true})
	m := scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
		store.step()
		// As a model does, it makes other ids for the same calls each time it is asked.
		fresh := strconv.Itoa(os.Getpid()) + "-"
		switch r := results(input); strings.Count(r, "[") {
		case 0:
			return scripted.Do(call(fresh+"a", "deploy", deployInput{"a"}), call(fresh+"s", "status", struct{}{}), call(fresh+"b", "deploy", deployInput{"b"})), nil
		case 3:
			return scripted.Do(call(fresh+"n", "notify", struct{}{}), call(fresh+"c", "deploy", deployInput{"c"})), nil
		default:
			return scripted.Say(r), nil
		}
	})
	g, err := gate.Open(ctx, store, &gate.Options{Tools: []*gate.Tool{ask, look, notify}, Keys: [][]byte{testKey}})
	if err != nil {
		return err
	}
	faces := []tool.BaseTool{agent.Tool(ask), agent.Tool(look), agent.Tool(notify)}
	a, err := agent.New(ctx, g, chat("release", agent.Model(m), compose.ToolsNodeConfig{Tools: faces}), nil)
	if err != nil {
		return err
	}
	run, err := startOrResume(ctx, a)
	for err == nil && run.Status == agent.Waiting {
		if len(run.Questions) == 0 {
			return fmt.Errorf("it waits for nothing: %+v", run.Problems)
		}
		q := run.Questions[0]
		run, err = a.Resume(ctx, agent.Resume{Scope: "ann", Run: run.ID, Facilities: everything, Answers: []agent.Answer{to(q, allow)}}).Run()
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "message"), []byte(run.Message), 0o600); err != nil {
		return err
	}
	return errors.Join(g.Close(ctx), file.Close())
}

func startOrResume(ctx context.Context, a *agent.Agent) (*agent.Run, error) {
	page, err := a.Runs(ctx, gate.RunQuery{Scope: "ann", Ended: true})
	if err != nil {
		return nil, err
	}
	if len(page.Runs) > 0 {
		return a.Resume(ctx, agent.Resume{Scope: "ann", Run: page.Runs[0].ID, Facilities: everything}).Run()
	}
	return a.Start(ctx, releaseIt).Run()
}

// R25, R27: killed between any two of its steps, a run goes on in the next process and ends; no tool
// has its effect twice, and one whose effect may be missing is told to the model.
func TestKilledAtEveryStep(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	for n := 1; ; n++ {
		kill := strconv.Itoa(n)
		dir := t.TempDir()
		err := child(dir, kill)
		if err == nil { // it has fewer steps
			if n < 40 {
				t.Fatalf("the run made only %d steps", n-1)
			}
			return
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s: %v", kill, err)
		}
		if err := child(dir, ""); err != nil {
			t.Fatalf("after being killed at step %s: %v", kill, err)
		}
		checkKilled(t, kill, dir)
	}
}

func child(dir, kill string) error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killIn+"="+dir, killAt+"="+kill)
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) > 0 {
		return fmt.Errorf("%w: %s", err, out)
	}
	return err
}

func checkKilled(t *testing.T, kill, dir string) {
	t.Helper()
	message, err := os.ReadFile(filepath.Join(dir, "message"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil {
		t.Fatal(err)
	}
	effects := map[string]int{}
	for _, line := range strings.Fields(string(text)) {
		effects[line]++
	}
	parts := strings.Split(strings.Trim(string(message), "[]"), "][")
	if len(parts) != 5 || parts[1] != "green" {
		t.Fatalf("killed %s: the model was told %q", kill, message)
	}
	for i, service := range map[int]string{0: "a", 2: "b", 3: "notify", 4: "c"} {
		known := parts[i] == "deployed "+service || parts[i] == "notified" && service == "notify"
		unknown := strings.HasPrefix(parts[i], "It is not known")
		switch {
		case effects[service] > 1, !known && !unknown, known && effects[service] != 1:
			t.Errorf("killed %s: %q had %d effects, and the model was told %q", kill, service, effects[service], parts[i])
		}
	}
}
