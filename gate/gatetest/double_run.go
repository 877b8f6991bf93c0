package gatetest

import (
	"fmt"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// doubleRun is the way in which every run is made again from the same record, to find questions
// that change between runs.
var doubleRun = way{name: "the double run", before: runAgain, compares: true}

// runsCompared is how many runs are compared. Two would do for a time or a random number; a map of
// two is in the same order in every second run.
const runsCompared = 8

// dayAndMore changes every part of a time but the year.
const dayAndMore = 32*24*time.Hour + time.Hour + time.Minute + time.Second + time.Millisecond

// runAgain makes the request on copies of the ledger first, and compares what the runs ask. Where a
// run asks nothing the double run is over: what the handler does then is for the other ways.
func runAgain(p *play, call gate.Call) {
	first, r := p.runAside(call)
	if r.stillOpen() {
		return
	}
	p.done = first == nil
	for n := 1; n < runsCompared && !p.done; n++ {
		if p.script.Clock != nil {
			p.script.Clock.pass(dayAndMore)
		}
		next, r := p.runAside(call)
		p.compare(first, next, r)
	}
}

// runAside makes the request on a copy of the ledger, which is forgotten, and returns what it asks.
func (p *play) runAside(call gate.Call) ([]checkpoint.Question, reply) {
	copied, err := p.ledger.fork(p.t.Context())
	if err != nil {
		p.t.Fatalf("gatetest: copy the ledger: %v", err)
	}
	g := p.open(copied.connect())
	defer g.Close(p.t.Context()) //nolint:errcheck // no request is running
	outcome, err := g.Invoke(p.t.Context(), call)
	r := reply{outcome.Prompt, outcome.Result, err}
	if r.prompt == nil {
		return nil, r
	}
	return copied.last().Rounds[r.prompt.Round-1].Questions, r
}

// compare looks at what two runs of the round that comes ask; nil: the run that ended with r asks
// nothing.
func (p *play) compare(first, next []checkpoint.Question, r reply) {
	round := len(p.rounds) + 1
	if next == nil {
		p.wrong = fmt.Sprintf("round %d: one run asks %s, and another with the same answers ends with %s", round, show(first[0]), r)
	} else if what := changed(first, next); what != "" {
		p.wrong = fmt.Sprintf("round %d: %s; %s", round, what, advice)
	}
	p.done = p.wrong != ""
}
