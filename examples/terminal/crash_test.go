package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
)

// Killed after every prompt, it goes on at the same question, and asks none of the earlier ones again.
func TestKilledAtEveryQuestion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var before *promptLine
	for i, answer := range answers {
		p := start(t, dir, "program")
		asked := p.asks(i + 1)
		if before != nil && before.Interaction != asked.Interaction {
			t.Errorf("interaction is %s, was %s", asked.Interaction, before.Interaction)
		}
		p.kill()
		p = start(t, dir, "program")
		before = p.asks(i + 1)
		if before.Questions[0].ID != asked.Questions[0].ID || !before.Expires.Equal(asked.Expires) {
			t.Errorf("question %d changed: %v, was %v", i+1, before, asked)
		}
		p.say(answer)
		if i+1 < len(answers) {
			p.asks(i + 2)
			p.kill()
			continue
		}
		wantReleased(t, p, dir, released)
		p.exits(exitDone)
	}
}

// The input may end, with or without half an answer, at every question.
func TestInputEndsAtEveryQuestion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, answer := range answers {
		p := start(t, dir, "program")
		p.asks(i + 1)
		p.exits(exitDone)
		p = start(t, dir, "program")
		p.asks(i + 1)
		p.say(answer)
		if i+1 == len(answers) {
			wantReleased(t, p, dir, released)
		} else {
			p.asks(i + 2)
		}
		p.exits(exitDone)
	}
}

// Killed before the first question was recorded, there is an interaction that no listing can name. The same release goes on all the same.
func TestKilledBeforeTheFirstQuestion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, dir, "before the first question").dies()
	rows := listed(t, dir)
	if len(rows) != 1 || rows[0].Status != "started" || rows[0].Round != 0 {
		t.Fatalf("list is %v, want one that is started", rows)
	}
	p := start(t, dir, "program")
	if asked := p.asks(1); asked.Interaction != rows[0].ID {
		t.Errorf("interaction is %s, was %s", asked.Interaction, rows[0].ID)
	}
	p.exits(exitDone)
}

// Killed after the file was written and before that was recorded, it writes the same again and asks nothing.
func TestKilledAfterTheEffect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, "program")
	for i, answer := range answers[:3] {
		p.asks(i + 1)
		p.say(answer)
	}
	p.asks(4)
	p.exits(exitDone)
	start(t, dir, "after the effect").dies()
	if rows := listed(t, dir); len(rows) != 1 || rows[0].Status != "running" {
		t.Fatalf("list is %v, want one that is running", rows)
	}
	p = start(t, dir, "program")
	wantReleased(t, p, dir, released)
	p.exits(exitDone)
}

func (p *process) dies() {
	p.t.Helper()
	p.cmd.Wait()
	if code := p.cmd.ProcessState.ExitCode(); code == exitFailed || p.errors.Len() > 0 {
		p.t.Fatalf("it did not come to its death: %d, %q", code, p.errors.String())
	}
}

func listed(t *testing.T, dir string) (rows []row) {
	t.Helper()
	p := start(t, dir, "program", "-list")
	for p.out.Scan() {
		var r row
		if err := json.Unmarshal(p.out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	p.exits(exitDone)
	return rows
}

// crash makes the call with the program's own tool, and dies where it is told to.
func crash(when string) {
	tool := releaseTool(".")
	opts := tool.Options()
	dying := gate.NewTool(tool.Name(), func(ctx context.Context, r release) (report, error) {
		if when == "before the first question" {
			die()
		}
		done, err := handler(".")(ctx, r)
		if err == nil {
			die()
		}
		return done, err
	}, &opts)
	err := callOnce(dying)
	fmt.Fprintln(os.Stderr, "still alive:", err)
	os.Exit(exitFailed)
}

func callOnce(tool *gate.Tool) error {
	ctx := context.Background()
	store, err := boltstore.Open("parley-demo.db", nil)
	if err != nil {
		return err
	}
	keys, err := gate.KeyFile("demo.key")
	if err != nil {
		return err
	}
	g, err := gate.Open(ctx, store, &gate.Options{Tools: []*gate.Tool{tool}, Keys: keys})
	if err != nil {
		return err
	}
	call, err := callFor(release{"shop", "1.0.0"})
	if err != nil {
		return err
	}
	outcome, err := g.Invoke(ctx, call)
	if err != nil {
		return err
	}
	call.Token = outcome.Prompt.Token
	call.Answers = gate.Answers{outcome.Prompt.Questions[0].ID: json.RawMessage(`{}`)}
	_, err = g.Invoke(ctx, call)
	return err
}

func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		self.Kill()
	}
	select {}
}
