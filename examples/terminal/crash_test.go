package main

import (
	"testing"

	"github.com/parley-go/parley/gate"
)

// Killed after every prompt, it goes on at the same question, and asks none of the earlier ones
// again.
func TestKilledAtEveryQuestion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var before *gate.Prompt
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

// Killed before the first question was recorded, there is an interaction that no listing can name.
// The same release goes on all the same.
func TestKilledBeforeTheFirstQuestion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, dir, "before the first question").dies()
	rows := listed(t, dir)
	if len(rows) != 1 || rows[0].Status != "started" || rows[0].Round != 0 {
		t.Fatalf("list is %v, want one that is started", rows)
	}
	p := start(t, dir, "program")
	if asked := p.asks(1); asked.Interaction.String() != rows[0].ID {
		t.Errorf("interaction is %s, was %s", asked.Interaction, rows[0].ID)
	}
	p.exits(exitDone)
}

// Killed after the file was written and before that was recorded, it writes the same again and asks
// nothing.
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
