package gate_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// A history is all that happened in one simulation, in its order: what was sent and what came back,
// which handlers ran with what, what the store took, and what the world did meanwhile. It is what
// the checker goes by (history_check_test.go), and it reads the same for the same seed: a token is
// an alias here, and no member's name is in it.
type history struct {
	at        int // the position of what happened last; positions count from 1, and 0 is never
	exchanges []*exchange
	runs      []*handlerRun
	commits   []commit
	steps     []stepDone
	turns     []turn
	told      []checkpoint.Entry // by the gates, to their observers
	audit     []checkpoint.Entry // the whole trail, as a gate reads it at the end

	tools    map[string]gate.ToolOptions
	readOnly map[int]bool // by gate
	limited  bool         // by a small capacity
}

// A binding is what a token is good for.
type binding struct{ tool, arguments, scope, session, face, start string }

// An exchange is a request and what it brought.
type exchange struct {
	number, work int // work is the piece of work that it is about
	begin, end   int // end is 0 where its process died
	gate         int
	kind         string // invoke, wait, answer (from elsewhere), inspect or revoke
	binding
	join       bool
	facilities string // all, none or inbox
	token      string // its alias, or "forged"
	answers    string // the words for the answers in the order of the questions, with + between; empty: none
	about      checkpoint.ID
	round      int // beside about, in an answer from elsewhere
	by         string

	code, ended gate.Code
	stillOpen   bool
	result      string
	prompt      *promptSeen
	interaction checkpoint.ID
}

// A promptSeen is a prompt that somebody got.
type promptSeen struct {
	interaction checkpoint.ID
	round       int
	token       string
	arguments   string
	expires     time.Time
}

// A handlerRun is one run of a handler.
type handlerRun struct {
	exchange       int
	begin, end     int
	effect         int
	interaction    checkpoint.ID // zero in a run that has no answer yet
	round, attempt int
	recovery       bool
	arguments      string
	read           []string // the answers that it read, by round
	ending         string
}

// A stepDone is a recorded step that was done, or whose result was given.
type stepDone struct {
	at, exchange int
	key          string // of the step
	idempotent   bool
	result       string
	given        bool // by Once, to the handler; else its function ran
}

// A commit is a transition that the store took.
type commit struct {
	at, exchange int
	entry        checkpoint.Entry
}

// A turn is something that the world did.
type turn struct {
	at       int
	what     string // clock, keys, left (a gate, for ever), closing (one), fault (of a store, in an exchange)
	gate     int
	exchange int
	now      time.Time // after it
	keys     []string  // the ring after it
}

func (h *history) next() int {
	h.at++
	return h.at
}

// no says whether answers hold a person's no.
func no(answers string) bool {
	return strings.Contains(answers, "reject") || strings.Contains(answers, "decline") || strings.Contains(answers, "cancel")
}

// unfit says whether answers hold one that fits no question.
func unfit(answers string) bool { return strings.Contains(answers, "bad") }

func (x *exchange) String() string {
	s := fmt.Sprintf("%s at gate %d for work %d: %+v token %q answers %q", x.kind, x.gate, x.work, x.binding, x.token, x.answers)
	if x.join {
		s += " join"
	}
	if x.facilities != "all" {
		s += " facilities " + x.facilities
	}
	if !x.about.IsZero() {
		s += fmt.Sprintf(" about %s round %d by %q", x.about, x.round, x.by)
	}
	return s
}

// outcome is what came back, in one word that can be compared.
func (x *exchange) outcome() string {
	switch {
	case x.end == 0:
		return "nothing"
	case x.code != "":
		return strings.TrimSuffix(fmt.Sprintf("%s/%s", x.code, x.ended), "/")
	case x.prompt != nil:
		return fmt.Sprintf("prompt %s.%d token %s until %s", x.prompt.interaction, x.prompt.round, x.prompt.token,
			x.prompt.expires.Format(time.TimeOnly))
	}
	return "result " + x.result
}

func (t turn) String() string {
	return fmt.Sprintf("%s gate %d exchange %d now %s keys %v", t.what, t.gate, t.exchange, t.now.Format(time.DateTime), t.keys)
}

// String tells the history line by line.
func (h *history) String() string {
	type told struct {
		at   int
		text string
	}
	var lines []told
	add := func(at int, format string, args ...any) {
		if at > 0 {
			lines = append(lines, told{at, fmt.Sprintf(format, args...)})
		}
	}
	for _, x := range h.exchanges {
		add(x.begin, "> %d %s", x.number, x)
		add(x.end, "< %d %s", x.number, x.outcome())
	}
	for _, r := range h.runs {
		add(r.begin, "  %d runs %s round %d attempt %d recovery %v", r.exchange, r.arguments, r.round, r.attempt, r.recovery)
		add(r.effect, "  %d has its effect", r.exchange)
		add(r.end, "  %d ran: read %q, %s", r.exchange, r.read, r.ending)
	}
	for _, c := range h.commits {
		add(c.at, "  %d commits %s %s", c.exchange, c.entry.Interaction, line(c.entry))
	}
	for _, d := range h.steps {
		add(d.at, "  %d step %s: %s, given %v", d.exchange, d.key, d.result, d.given)
	}
	for _, t := range h.turns {
		add(t.at, "* %s", t)
	}
	slices.SortStableFunc(lines, func(a, b told) int { return cmp.Compare(a.at, b.at) })
	var text strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&text, "%4d %s\n", l.at, l.text)
	}
	return text.String()
}
