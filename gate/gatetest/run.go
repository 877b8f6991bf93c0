package gatetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-go/parley/gate"
)

// Run plays the script with the tool, in every way in which it can happen, and fails the test where
// one of them does not end as it should. It returns the story as it is when nothing goes wrong.
//
// First comes the double run, which makes each run of the handler again with the same recorded
// answers and reports questions that change. Then the script is played: as it is; with a restart of
// the process before every answer; with every request sent twice; with an invalid answer before
// every answer; and, for everything that the gate records, with a crash of the process right before
// and right after it. In all of them the same is asked and the end is the script's, except where an
// attempt was made whose outcome is not known: there it is what the tool chose (R27):
// gate.ErrOutcomeUnknown, a recovery, or another ordinary run. What a process returned when it
// could not record it any more counts as not returned, and what it did as done: that is a crash
// while the handler ran.
//
// newTool is called for each process of each story; what the tool keeps in memory is gone with it.
// What it is to find again has to stand in the world around it, see [Script].Before. The handler
// runs in the calling goroutine, a hundred times or so. The calls have a start ID.
func Run(t testing.TB, newTool func() *gate.Tool, script Script) *Story {
	t.Helper()
	r := &runner{t: t, newTool: newTool, script: &script, ways: map[string][]string{}}
	if err := script.validate(newTool); err != nil {
		t.Fatalf("gatetest: %v", err)
	}
	r.add(r.play(doubleRun))
	if r.failed() {
		return nil
	}
	first := r.play(asIs)
	r.add(first)
	if r.failed() {
		return nil
	}
	r.first = first
	for _, w := range slices.Concat(ways, crashes(first)) {
		p := r.play(w)
		if r.add(p); p.changes {
			break // they would change in the others as well
		}
	}
	r.tell()
	return first.story
}

// A runner plays one script in many ways.
type runner struct {
	t       testing.TB
	newTool func() *gate.Tool
	script  *Script
	first   *play // the story as it is; nil: not yet played

	wrong []string            // what was found, each once
	ways  map[string][]string // in which ways
}

// add takes down what was wrong with a play, and lets the script look at the world after it.
func (r *runner) add(p *play) {
	if p.wrong == "" && r.script.After != nil && !p.way.compares {
		if err := r.script.After(p.story); err != nil {
			p.wrong = fmt.Sprintf("after the story: %v", err)
		}
	}
	if p.wrong == "" {
		return
	}
	if r.ways[p.wrong] == nil {
		r.wrong = append(r.wrong, p.wrong)
	}
	r.ways[p.wrong] = append(r.ways[p.wrong], p.story.Way)
}

// failed ends the test where anything was found.
func (r *runner) failed() bool {
	r.t.Helper()
	if len(r.wrong) > 0 {
		r.tell()
		r.t.FailNow()
		return true
	}
	return false
}

// tell reports everything that was found, each with the ways in which it was.
func (r *runner) tell() {
	r.t.Helper()
	for _, wrong := range r.wrong {
		r.t.Errorf("gatetest: %s: %s", strings.Join(r.ways[wrong], "; "), wrong)
	}
}
