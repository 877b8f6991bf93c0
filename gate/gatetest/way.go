package gatetest

import "github.com/parley-go/parley/gate"

// A way is how a script is played.
type way struct {
	name   string
	before func(p *play, call gate.Call)          // before each request
	after  func(p *play, call gate.Call, r reply) // after each request and its reply
	crash  *crash
	// compares is set where each run is compared with another one of the same request.
	compares bool
}

// asIs is the way a script is played when nothing goes wrong.
var asIs = way{name: "the story as it is"}

// advice is what every report of a question that changes ends with.
const advice = "a question that is not the same in every run is not found again when it is answered: " +
	"give it a Key, or leave out what changes"

// ways are those besides asIs and the crashes.
var ways = []way{
	{name: "a restart before every answer", before: restarted},
	{name: "every request sent twice", after: sentTwice},
	{name: "an invalid answer before every answer", before: answeredBadly},
}

func restarted(p *play, call gate.Call) {
	if call.Token != "" {
		p.restart()
	}
}

// sentTwice sends the request again. That leads to where the interaction stands (R26, R27).
func sentTwice(p *play, call gate.Call, _ reply) { p.again(call) }

// answeredBadly sends an answer first that does not fit. Nothing changes (R16).
func answeredBadly(p *play, call gate.Call) {
	if len(call.Answers) == 0 {
		return
	}
	n := len(p.rounds)
	bad := call
	bad.Answers = gate.Answers{}
	for i, q := range p.rounds[n-1] {
		bad.Answers[q.ID] = unfit(p.story.Asked[n-1][i])
	}
	p.send(bad)
}

// crashes are the ways to die in a story: right before and right after everything that it records.
func crashes(story *play) []way {
	var all []way
	for i, batch := range story.ledger.log {
		what, ran := place(batch)
		if what == "" {
			continue
		}
		before := "a crash right before " + what
		if ran {
			before += ", when the handler had returned"
		}
		all = append(all,
			way{name: before, crash: &crash{commit: i}},
			way{name: "a crash right after " + what, crash: &crash{commit: i, after: true}})
	}
	return all
}
