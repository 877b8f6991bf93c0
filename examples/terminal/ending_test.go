package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What a person decides against is an end, told in words, and no failure of the program. The next
// run begins the next release.
func TestPersonSaysNo(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ code, payload string }{
		{"rejected", `{"optionId":"reject_once"}`}, {"declined", `{"action":"decline"}`}, {"cancelled", `{"action":"cancel"}`},
	} {
		t.Run(tc.code, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := start(t, dir, "program")
			p.asks(1)
			p.say(tc.payload)
			if l := p.next(); l.Error == nil || l.Error.Code != tc.code {
				t.Errorf("line is %s, want %s", p.out.Text(), tc.code)
			}
			p.exits(exitDone)

			p = start(t, dir, "program", "-version", "1.0.0") // the same once more is not asked again
			if l := p.next(); l.Error == nil || l.Error.Code != "already_completed" || l.Error.Ended != tc.code {
				t.Errorf("line is %s, want already_completed", p.out.Text())
			}
			p.exits(exitDone)
			p = start(t, dir, "program")
			if got := string(p.asks(1).Arguments); got != `{"service":"shop","version":"1.0.1"}` {
				t.Errorf("next release is %s", got)
			}
			p.exits(exitDone)
		})
	}
}

// A failure keeps the answers: the next run writes what this one could not.
func TestFailureGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inTheWay := filepath.Join(dir, "release-shop-1.0.0.json")
	if err := os.Mkdir(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, "program")
	for i, answer := range answers {
		p.asks(i + 1)
		p.say(answer)
	}
	if l := p.next(); l.Error == nil || l.Error.Code != "failed" {
		t.Errorf("line is %s, want failed", p.out.Text())
	}
	p.exits(exitFailed)
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	p = start(t, dir, "program")
	wantReleased(t, p, dir, released)
	p.exits(exitDone)
	if left, err := filepath.Glob(filepath.Join(dir, ".release-*")); len(left) > 0 || err != nil {
		t.Errorf("temporary files are left: %q, %v", left, err)
	}
}

// One process at a time: a second one is told so, and does no harm to the first.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, dir, "program")
	first.asks(1)
	second := start(t, dir, "program")
	second.exits(exitFailed)
	if second.errors.Len() == 0 {
		t.Error("it said nothing")
	}
	first.say(answers[0])
	first.asks(2)
	first.exits(exitDone)
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for args, code := range map[string]int{"-h": exitDone, "-nonsense": exitUsage, "nonsense": exitUsage} {
		p := start(t, t.TempDir(), "program", args)
		p.exits(code)
		if !slices.Contains(p.cmd.Args, args) || p.errors.Len() == 0 {
			t.Errorf("%s: it said nothing", args)
		}
	}
}
