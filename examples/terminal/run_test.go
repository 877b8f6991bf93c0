package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answers are what the tests say to the four questions, and released is what comes of it.
var (
	answers = []string{
		`{"optionId":"allow_once"}`,
		`{"selectionIdx":1}`,
		`{"content":{"notes":"<new> cart","instances":3,"notify":true}}`,
		`{}`,
	}
	released = &report{
		release: release{"shop", "1.0.0"}, Rollout: "one region", notes: notes{Notes: "<new> cart", Instances: 3, Notify: true},
		StatusPage: "https://status.example.com/announce?service=shop&version=1.0.0",
	}
	types = []string{"tool_permission", "user_selection", "form", "url"}
)

// wantReleased checks the result, and the file, which says the same.
func wantReleased(t *testing.T, p *process, dir string, want *report) {
	t.Helper()
	if diff := cmp.Diff(want, p.next().Result, cmp.AllowUnexported(report{})); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	content, err := os.ReadFile(filepath.Join(dir, "release-"+want.Service+"-"+want.Version+".json"))
	if err != nil {
		t.Fatal(err)
	}
	written := &report{}
	if err := json.Unmarshal(content, written); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, written, cmp.AllowUnexported(report{})); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

func TestWholeRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, "program")
	token := regexp.MustCompile(`[A-Za-z0-9_-]{43}`)
	for i, answer := range answers {
		prompt := p.asks(i + 1)
		if token.Match(p.out.Bytes()) {
			t.Errorf("something like a token is in %s", p.out.Text())
		}
		if got := prompt.Questions[0].Type; got != types[i] {
			t.Errorf("question %d is a %s, want %s", i+1, got, types[i])
		}
		if got := string(prompt.Arguments); got != `{"service":"shop","version":"1.0.0"}` {
			t.Errorf("arguments are %s", got)
		}
		p.say(answer)
	}
	wantReleased(t, p, dir, released)
	p.exits(exitDone)

	// The result is kept; and the next release is another one.
	p = start(t, dir, "program", "-version", "1.0.0")
	wantReleased(t, p, dir, released)
	p.exits(exitDone)
	p = start(t, dir, "program")
	if got := string(p.asks(1).Arguments); got != `{"service":"shop","version":"1.0.1"}` {
		t.Errorf("next release is %s", got)
	}
	p.exits(exitDone)
}

// An answer that does not fit changes nothing: the same question comes again (R16).
func TestInvalidAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, "program")
	wrong := []string{`{"optionId":"always"}`, `{"selectionIdx":3}`, `{"content":{"notes":"n","instances":21,"notify":true}}`, `yes`}
	for i, answer := range answers {
		asked := p.asks(i + 1)
		p.say(wrong[i])
		if l := p.next(); l.Error == nil || l.Error.Code != "invalid_answer" || l.Error.Message == "" {
			t.Fatalf("line is %s, want invalid_answer", p.out.Text())
		}
		if diff := cmp.Diff(asked, p.asks(i+1)); diff != "" {
			t.Errorf("question %d changed (-before +after):\n%s", i+1, diff)
		}
		p.say(answer)
	}
	wantReleased(t, p, dir, released)
	p.exits(exitDone)
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted there")
	}
	dir := t.TempDir()
	p := start(t, dir, "program")
	p.asks(1)
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if p.out.Scan() {
		t.Errorf("program wrote %q", p.out.Text())
	}
	p.exits(exitInterrupted)
	p = start(t, dir, "program")
	p.asks(1)
	p.exits(exitDone)
}
