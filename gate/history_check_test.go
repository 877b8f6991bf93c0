package gate_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// The checker of histories: a dumb function of a history alone that says which rules it breaks.
// Every rule is a function of its own below, and history_checker_test.go has a bad history for each.

// A violation is a rule that a history breaks, and where.
type violation struct{ rule, where string }

func (v violation) String() string { return v.rule + ": " + v.where }

// historyRules are what a history is held against.
var historyRules = []struct {
	name  string
	check func(c *checker)
}{
	{"one winning answer a round (R28)", (*checker).oneWinner},
	{"no run without its claim (R23, R25)", (*checker).claimed},
	{"no second ordinary run for an answer (R27)", (*checker).onceOnly},
	{"recovery asks nothing (R27)", (*checker).recoveryOnly},
	{"one run at a time (R23)", (*checker).oneAtATime},
	{"no effect after a no (R2, R17)", (*checker).noAfterNo},
	{"what is executed is what was shown (R9)", (*checker).asShown},
	{"what is refused changes nothing (R16, R24)", (*checker).refusedChangesNothing},
	{"durable before visible (R25)", (*checker).durable},
	{"what was given out is known (R25)", (*checker).known},
	{"nobody else gets anything (R21, R22)", (*checker).nobodyElse},
	{"deadlines only shorten and hold (R30)", (*checker).deadlines},
	{"equal replays have equal outcomes (R26, R27)", (*checker).replays},
	{"codes are true (R36)", (*checker).codes},
	{"who left, or only reads, writes nothing (R23, R32)", (*checker).silent},
	{"a step is done once, and has one result (R4)", (*checker).steppedOnce},
	{"decisions answer while they stand, and only then (R19)", (*checker).remembered},
	{"the audit trail tells the same story (R38)", (*checker).trail},
}

// A checker has a history with what the rules look up in it.
type checker struct {
	*history
	rule  string
	found []violation

	given   map[string]*exchange          // the first exchange that brought a token
	of      map[checkpoint.ID][]commit    // the commits of an interaction
	winners map[roundOf]commit            // the answered commits
	shown   map[roundOf]*promptSeen       // the first prompt that was returned
	runsOf  map[int][]*handlerRun         // by exchange
	starts  map[[2]string][]checkpoint.ID // by scope and start ID
	owners  map[checkpoint.ID]*exchange   // which call an interaction is of
}

type roundOf struct {
	interaction checkpoint.ID
	round       int
}

// check returns what rules the history breaks.
func (h *history) check() []violation {
	c := &checker{
		history: h, given: map[string]*exchange{}, of: map[checkpoint.ID][]commit{}, winners: map[roundOf]commit{},
		shown: map[roundOf]*promptSeen{}, runsOf: map[int][]*handlerRun{}, starts: map[[2]string][]checkpoint.ID{},
		owners: map[checkpoint.ID]*exchange{},
	}
	for _, x := range h.exchanges {
		if x.prompt == nil {
			continue
		}
		if c.given[x.prompt.token] == nil {
			c.given[x.prompt.token] = x
		}
		if at := (roundOf{x.prompt.interaction, x.prompt.round}); c.shown[at] == nil {
			c.shown[at] = x.prompt
		}
	}
	for _, k := range h.commits {
		id := k.entry.Interaction
		c.of[id] = append(c.of[id], k)
		switch k.entry.Action {
		case checkpoint.ActionAnswered:
			if at := (roundOf{id, k.entry.Round}); c.winners[at].at == 0 {
				c.winners[at] = k
			}
		case checkpoint.ActionStarted, checkpoint.ActionAsked:
			if x := c.exchange(k.exchange); c.owners[id] == nil && x != nil {
				c.owners[id] = x
				key := [2]string{x.scope, x.start}
				c.starts[key] = append(c.starts[key], id)
			}
		}
	}
	for _, r := range h.runs {
		c.runsOf[r.exchange] = append(c.runsOf[r.exchange], r)
	}
	for _, rule := range historyRules {
		c.rule = rule.name
		rule.check(c)
	}
	return c.found
}

func (c *checker) breaks(format string, args ...any) {
	c.found = append(c.found, violation{c.rule, fmt.Sprintf(format, args...)})
}

func (c *checker) exchange(number int) *exchange {
	if number < 1 || number > len(c.exchanges) {
		return nil
	}
	return c.exchanges[number-1]
}

// round is the round that an exchange is about, and whether that is known.
func (c *checker) roundOf(x *exchange) (roundOf, bool) {
	switch {
	case x.kind == "answer":
		return roundOf{x.about, x.round}, true
	case c.given[x.token] != nil:
		p := c.given[x.token].prompt
		return roundOf{p.interaction, p.round}, true
	}
	return roundOf{}, false
}

// interactionOf is the interaction of an exchange; zero: none is known.
func (c *checker) interactionOf(x *exchange) checkpoint.ID {
	if at, ok := c.roundOf(x); ok {
		return at.interaction
	}
	if x.prompt != nil {
		return x.prompt.interaction
	}
	return x.interaction
}

// interactionOfRun is that of the claim of a run, or zero.
func (c *checker) interactionOfRun(r *handlerRun) checkpoint.ID {
	if claim := c.claimOf(r); claim.at > 0 {
		return claim.entry.Interaction
	}
	return r.interaction
}

// claimOf is the commit by which a run was claimed: the last one before it of the same exchange. The
// first run of a call without a start ID may be claimed by a step of its own.
func (c *checker) claimOf(r *handlerRun) (claim commit) {
	for _, k := range c.commits {
		byStep := k.entry.Action == checkpoint.ActionStarted && r.round == 0 && c.exchange(r.exchange).start == ""
		if k.exchange == r.exchange && isClaim(k.entry) && (k.at < r.begin || claim.at == 0 && byStep && (r.end == 0 || k.at < r.end)) {
			claim = k
		}
	}
	if claim.at > 0 || r.interaction.IsZero() {
		return claim
	}
	// A claim of the same gate whose commit nobody could see, and under which nothing ran: the very
	// same claim, made again in the same millisecond, cannot be told from it.
	for _, k := range c.of[r.interaction] {
		x := c.exchange(k.exchange)
		same := k.at < r.begin && isClaim(k.entry) && k.entry.Round == r.round && int(k.entry.Attempt) == r.attempt
		if same && x != nil && x.gate == c.exchange(r.exchange).gate && x.code == gate.ErrUnavailable && len(c.runsOf[x.number]) == 0 {
			claim = k
		}
	}
	return claim
}

// isClaim reports whether an entry is that of a claim.
func isClaim(e checkpoint.Entry) bool {
	switch e.Action {
	case checkpoint.ActionStarted, checkpoint.ActionClaimed, checkpoint.ActionRecovered:
		return true
	case checkpoint.ActionAnswered:
		return e.Status == checkpoint.Running
	}
	return false
}

// before returns the last commit of an interaction before a position.
func (c *checker) before(id checkpoint.ID, at int) (last commit) {
	for _, k := range c.of[id] {
		if k.at < at {
			last = k
		}
	}
	return last
}

// any reports whether there is a commit of the interaction in (from, to) that is so.
func (c *checker) any(id checkpoint.ID, from, to int, so func(k commit) bool) bool {
	return slices.ContainsFunc(c.of[id], func(k commit) bool { return k.at > from && k.at < to && so(k) })
}

func does(actions ...checkpoint.Action) func(k commit) bool {
	return func(k commit) bool { return slices.Contains(actions, k.entry.Action) }
}

// until is where an exchange came to its end, or to its death at the latest.
func (c *checker) until(x *exchange) int {
	if x.end > 0 {
		return x.end
	}
	if at := c.leftAt(x.gate); at > 0 {
		return at
	}
	return c.at + 1
}

// leftAt is when a gate left; 0: never.
func (c *checker) leftAt(gate int) int {
	for _, t := range c.turns {
		if t.what == "left" && t.gate == gate {
			return t.at
		}
	}
	return 0
}

// clocks returns the clock's reading at a position, and the latest one up to there.
func (c *checker) clocks(at int) (now, latest time.Time) {
	for _, t := range c.turns {
		if t.at > at {
			break
		}
		if now = t.now; now.After(latest) {
			latest = now
		}
	}
	return now, latest
}

// turned reports whether the world did something of that in (from, to).
func (c *checker) turned(from, to int, what ...string) bool {
	return slices.ContainsFunc(c.turns, func(t turn) bool { return t.at > from && t.at < to && slices.Contains(what, t.what) })
}

// faulted reports whether the store failed in the exchange.
func (c *checker) faulted(x *exchange) bool {
	return slices.ContainsFunc(c.turns, func(t turn) bool { return t.what == "fault" && t.exchange == x.number })
}

// overlapped reports whether another exchange for the same work was going on in (from, to).
func (c *checker) overlapped(x *exchange, from, to int, but ...*exchange) bool {
	return slices.ContainsFunc(c.exchanges, func(y *exchange) bool {
		return y != x && !slices.Contains(but, y) && y.work == x.work && y.begin < to && c.until(y) > from
	})
}

// replay is the choice of the interaction's tool.
func (c *checker) replay(tool string) gate.Replay { return c.tools[tool].Replay }
