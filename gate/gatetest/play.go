package gatetest

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// testKey is the key of every gate here: a restart keeps it.
var testKey = []byte("the key of every gate in a script")

// A play is one playing of a script, on a ledger of its own.
type play struct {
	*runner
	way   way
	clock *Clock // the gates'; the tool's goes on in between
	left  []Answer
	used  int // answers that were given

	ledger *ledger
	tool   *gate.Tool
	conn   *connection
	gate   *gate.Gate

	story   *Story
	rounds  [][]checkpoint.Question
	refused bool // the answers that were given last have to be refused
	settled bool // R27 has had the last word, and was checked
	changes bool // a question is another one than in the first story
	done    bool
	wrong   string
}

// report notes what is wrong. The story goes no further. In the double run it only ends: the same
// is found in the story as it is.
func (p *play) report(format string, args ...any) {
	if p.wrong == "" && !p.way.compares {
		p.wrong = fmt.Sprintf(format, args...)
	}
	p.done = true
}

// play plays the script once.
func (r *runner) play(w way) *play {
	p := &play{
		runner: r, way: w, clock: &Clock{}, left: r.script.Answers, ledger: newLedger(), story: &Story{Way: w.name},
	}
	p.ledger.crash = w.crash
	if r.script.Before != nil {
		r.script.Before()
	}
	p.restart()
	call := gate.Call{
		Tool: p.tool.Name(), Arguments: json.RawMessage(r.script.Arguments), Scope: "gatetest", Session: "gatetest",
		StartID: "gatetest", Facilities: r.script.facilities(),
	}
	for !p.done {
		reply := p.exchange(call)
		if !p.done {
			call = p.goOn(call, reply)
		}
	}
	p.close()
	p.count()
	return p
}

// goOn returns the request that comes after a reply, or is done.
func (p *play) goOn(call gate.Call, r reply) gate.Call {
	switch {
	case p.refused && r.code() != gate.ErrInvalidAnswer:
		p.report("answer %d of the script, %s, is to be refused, and brought %s", p.used, p.script.Answers[p.used-1].name, r)
	case !p.refused && len(call.Answers) > 0 && r.code() == gate.ErrInvalidAnswer:
		p.report("round %d: an answer does not fit: %s", len(p.rounds), r)
	case r.prompt != nil:
		p.asked(r.prompt)
	case !r.stillOpen() || len(p.left) == 0:
		p.end(r)
	}
	if p.done {
		return call
	}
	return p.answer(call, r.prompt)
}

// asked notes a prompt, and compares it with that of the first story.
func (p *play) asked(prompt *gate.Prompt) {
	round := p.ledger.last().Rounds[prompt.Round-1].Questions
	p.rounds = append(p.rounds, round)
	var questions []interrupt.Interrupt
	for _, q := range prompt.Questions {
		question, err := q.Interrupt()
		if err != nil {
			p.report("round %d: read a question: %v", prompt.Round, err)
		}
		questions = append(questions, question)
	}
	p.story.Asked = append(p.story.Asked, questions)
	if p.first == nil {
		return
	}
	if len(p.first.rounds) < len(p.rounds) {
		p.report("round %d asks %s; %s ended before that", len(p.rounds), show(round[0]), p.first.story.Way)
	} else if what := changed(p.first.rounds[len(p.rounds)-1], round); what != "" {
		p.report("round %d: %s; %s", len(p.rounds), what, advice)
		p.changes = true
	}
}

// answer makes the request that answers the open prompt. Without a new prompt it is the one that
// the call was for, which is open still.
func (p *play) answer(call gate.Call, prompt *gate.Prompt) gate.Call {
	if prompt != nil {
		call.Token = prompt.Token
	}
	call.Answers = gate.Answers{}
	p.refused = false
	for i, q := range p.rounds[len(p.rounds)-1] {
		if len(p.left) == 0 {
			p.report("round %d, question %d (%s): the script has no answer for %s", len(p.rounds), i+1, q.Type, clip(q.Body))
			return call
		}
		answer := p.left[0]
		p.left, p.used = p.left[1:], p.used+1
		payload, fits := answer.payload(p.story.Asked[len(p.rounds)-1][i])
		if !fits {
			p.report("round %d, question %d (%s): answer %d of the script, %s, is not for %s",
				len(p.rounds), i+1, q.Type, p.used, answer.name, clip(q.Body))
			return call
		}
		call.Answers[q.ID] = json.RawMessage(payload)
		p.refused = p.refused || answer.invalid
		p.pass(answer)
	}
	return call
}

// pass lets the time pass that a person took.
func (p *play) pass(a Answer) {
	p.clock.pass(a.after)
	if p.script.Clock != nil {
		p.script.Clock.pass(a.after)
	}
}

// end looks at how the story ends.
func (p *play) end(r reply) {
	p.done = true
	p.story.Result, p.story.Err = r.result, r.err
	if p.settled {
		return
	}
	switch {
	case r.code() != p.script.Code && p.script.Code == "":
		p.report("it ends with %s; the script wants a result", r)
	case r.code() != p.script.Code:
		p.report("it ends with %s; the script wants %s", r, p.script.Code)
	case len(p.left) > 0:
		p.report("it ends after round %d with %s; answers of the script left over: %d", len(p.rounds), r, len(p.left))
	default:
		p.checkResult(r)
	}
}

func (p *play) checkResult(r reply) {
	if p.script.Result == "" || r.err != nil {
		return
	}
	if want := json.RawMessage(p.script.Result); difference("", want, r.result) != "" {
		p.report("it ends with result %s; the script wants %s", clip(r.result), clip(want))
	}
}

// exchange sends a request as the way of the play has it.
func (p *play) exchange(call gate.Call) reply {
	if p.way.before != nil {
		if p.way.before(p, call); p.done {
			return reply{}
		}
	}
	r := p.send(call)
	if p.conn.died() {
		r = p.comeAgain(call)
	}
	if p.way.after != nil && !p.done {
		p.way.after(p, call, r)
	}
	return r
}

func (p *play) send(call gate.Call) reply {
	outcome, err := p.gate.Invoke(p.t.Context(), call)
	return reply{outcome.Prompt, outcome.Result, err}
}

// restart ends the process that is there, if there is one, and starts the next.
func (p *play) restart() {
	p.close()
	p.tool = p.newTool()
	p.conn = p.ledger.connect()
	p.gate = p.open(p.conn)
}

// open opens a gate with the tool of the process.
func (p *play) open(store checkpoint.Store) *gate.Gate {
	g, err := gate.Open(p.t.Context(), store, &gate.Options{
		Tools: []*gate.Tool{p.tool}, Keys: [][]byte{testKey}, Now: p.clock.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		p.t.Fatalf("gatetest: %v", err)
	}
	return g
}

func (p *play) close() {
	if p.gate != nil {
		_ = p.gate.Close(p.t.Context()) // no request is running, and a process that died has left already
		p.gate = nil
	}
}

// count tells the runs of the handler from those in recovery.
func (p *play) count() {
	for _, claim := range p.ledger.runs() {
		if p.recovery(claim) {
			p.story.Recoveries++
		} else {
			p.story.Runs++
		}
	}
}

func (p *play) recovery(run checkpoint.Claim) bool {
	return run.Attempt > 1 && p.tool.Options().Replay == gate.Recover
}
