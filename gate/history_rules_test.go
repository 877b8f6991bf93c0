package gate_test

import (
	"cmp"
	"slices"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// The rules about runs, and about answers. See history_check_test.go.

func (c *checker) oneWinner() {
	count := map[roundOf]int{}
	for _, k := range c.commits {
		if k.entry.Action == checkpoint.ActionAnswered {
			count[roundOf{k.entry.Interaction, k.entry.Round}]++
		}
	}
	for at, n := range count {
		winner := c.exchange(c.winners[at].exchange)
		switch {
		case n > 1:
			c.breaks("round %v was answered %d times", at, n)
		case c.winners[at].entry.Remembered: // see remembered
		case winner == nil || winner.answers == "":
			c.breaks("round %v was answered by exchange %d, which had no answer", at, c.winners[at].exchange)
		case unfit(winner.answers):
			c.breaks("round %v was answered with %q", at, winner.answers)
		case c.tools[c.winners[at].entry.Tool].KeepOpen && no(winner.answers) && winner.answers != "reject":
			c.breaks("round %v was answered with %q, and its tool keeps it open", at, winner.answers)
		}
	}
	for _, r := range c.runs {
		for i, read := range r.read {
			at := roundOf{c.interactionOfRun(r), i + 1}
			if k := c.winners[at]; k.at == 0 || c.answerOf(k) != read || k.at > r.begin {
				c.breaks("exchange %d ran with %q for round %v", r.exchange, read, at)
			}
		}
	}
	for _, x := range c.exchanges {
		at, ok := c.roundOf(x)
		if !ok || x.answers == "" || x.end == 0 {
			continue
		}
		winner := c.winners[at]
		same := winner.at > 0 && winner.at < x.end && c.answerOf(winner) == x.answers
		taken := x.code == "" || x.code == gate.ErrAlreadyCompleted || x.code == gate.ErrOutcomeUnknown
		switch {
		case taken && !same:
			c.breaks("exchange %d with another answer brought %s", x.number, x.outcome())
		case same && (x.code == gate.ErrAnswerConflict || x.code == gate.ErrAlreadyAnswered):
			c.breaks("exchange %d with the same answer brought %s", x.number, x.outcome())
		}
	}
}

func (c *checker) claimed() {
	used := map[int]bool{}
	for _, r := range c.runs {
		x, claim := c.exchange(r.exchange), c.claimOf(r)
		if claim.at == 0 {
			if r.round > 0 || x.start != "" {
				c.breaks("exchange %d ran round %d without a claim", r.exchange, r.round)
			}
			continue
		}
		e := claim.entry
		attempt := r.attempt
		if r.round == 0 && !r.recovery {
			attempt = int(e.Attempt) // a first run tells none
		}
		switch {
		case used[claim.at]:
			c.breaks("exchange %d ran twice with one claim", r.exchange)
		case e.Round != r.round || int(e.Attempt) != attempt:
			c.breaks("exchange %d ran round %d attempt %d, and claimed round %d attempt %d", r.exchange, r.round, attempt, e.Round, e.Attempt)
		case !r.interaction.IsZero() && r.interaction != e.Interaction:
			c.breaks("exchange %d ran for %s, and claimed %s", r.exchange, r.interaction, e.Interaction)
		case r.recovery != (e.Action == checkpoint.ActionRecovered && c.replay(e.Tool) == gate.Recover):
			c.breaks("exchange %d ran with recovery %v after %s", r.exchange, r.recovery, e.Action)
		}
		used[claim.at] = true
	}
}

// recoveryOnly: what recovers only finishes.
func (c *checker) recoveryOnly() {
	for _, k := range c.commits {
		if k.entry.Action != checkpoint.ActionAsked || c.replay(k.entry.Tool) != gate.Recover {
			continue
		}
		if claim := c.before(k.entry.Interaction, k.at); claim.entry.Action == checkpoint.ActionRecovered {
			c.breaks("exchange %d asked while %s was recovered", k.exchange, k.entry.Interaction)
		}
	}
}

func (c *checker) onceOnly() {
	ordinary := map[roundOf]int{}
	for _, r := range c.runs {
		claim := c.claimOf(r)
		if claim.at == 0 {
			continue
		}
		id, replay := claim.entry.Interaction, c.replay(claim.entry.Tool)
		if !r.recovery {
			ordinary[roundOf{id, r.round}]++
		}
		if n := ordinary[roundOf{id, r.round}]; n > 1 && replay != gate.Repeatable {
			c.breaks("exchange %d is ordinary run %d for round %d of %s", r.exchange, n, r.round, id)
		}
		for _, k := range c.of[id] {
			if k.at > claim.at || k.entry.Status != checkpoint.Finished {
				continue
			}
			if replay != gate.Recover || k.entry.Code != "" {
				c.breaks("exchange %d ran %s after it had finished (%q)", r.exchange, id, k.entry.Code)
			}
		}
	}
}

// Runs of one interaction overlap only where the gate of the first has left, and none is abandoned
// before.
func (c *checker) oneAtATime() {
	for _, first := range c.runs {
		id := c.interactionOfRun(first)
		left := c.leftAt(c.exchange(first.exchange).gate)
		for _, k := range c.of[id] {
			on := first.begin < k.at && (first.end == 0 || k.at < first.end) && (left == 0 || k.at < left)
			if on && k.entry.Action == checkpoint.ActionAbandoned {
				c.breaks("exchange %d runs %s, which exchange %d abandoned", first.exchange, id, k.exchange)
			}
		}
		for _, second := range c.runs {
			if id.IsZero() || c.interactionOfRun(second) != id || second.begin <= first.begin {
				continue
			}
			over := first.end > 0 && first.end < second.begin
			if !over && (left == 0 || left > second.begin) {
				c.breaks("exchanges %d and %d run %s at once", first.exchange, second.exchange, id)
			}
		}
	}
}

func (c *checker) noAfterNo() {
	for _, r := range c.runs {
		if r.effect == 0 {
			continue
		}
		for at, k := range c.winners {
			if at.interaction == c.interactionOfRun(r) && k.at < r.effect && no(c.answerOf(k)) {
				c.breaks("exchange %d had its effect, and round %d was answered %q", r.exchange, at.round, c.answerOf(k))
			}
		}
		if len(r.read) == 0 || slices.ContainsFunc(r.read, no) {
			c.breaks("exchange %d had its effect after it read %q", r.exchange, r.read)
		}
	}
}

func (c *checker) asShown() {
	for _, r := range c.runs {
		if x := c.exchange(r.exchange); x.arguments != r.arguments {
			c.breaks("exchange %d was for %s and ran with %s", r.exchange, x.arguments, r.arguments)
		}
		for i := range r.round {
			at := roundOf{r.interaction, i + 1}
			if p := c.shown[at]; p != nil && p.arguments != r.arguments {
				c.breaks("exchange %d ran with %s, and round %d showed %s", r.exchange, r.arguments, i+1, p.arguments)
			}
		}
	}
	for _, x := range c.exchanges {
		if x.prompt != nil && x.prompt.arguments != x.arguments {
			c.breaks("exchange %d was for %s and was shown %s", x.number, x.arguments, x.prompt.arguments)
		}
	}
}

// sweeping is what a request does beside its own work.
var sweepActions = []checkpoint.Action{checkpoint.ActionExpired, checkpoint.ActionAbandoned, checkpoint.ActionRemoved}

func (c *checker) refusedChangesNothing() {
	for _, k := range c.commits {
		x := c.exchange(k.exchange)
		if x == nil || x.end == 0 || slices.Contains(sweepActions, k.entry.Action) || len(c.runsOf[x.number]) > 0 {
			continue
		}
		// The mark of an end belongs to a run: where this exchange had none, its gate owed the mark.
		disturbed := c.faulted(x) || x.code == gate.ErrInvalidContinuation && c.turned(x.begin, x.end, "keys")
		if k.entry.Action != checkpoint.ActionEnded && !disturbed && x.code != "" && x.code != gate.ErrUnavailable {
			c.breaks("exchange %d was refused with %s and committed %s of %s", x.number, x.code, k.entry.Action, k.entry.Interaction)
		}
	}
	for _, x := range c.exchanges {
		at, ok := c.roundOf(x)
		if k := c.winners[at]; x.stillOpen && (!ok || k.at > 0 && k.at < x.begin) {
			c.breaks("exchange %d was told that round %v is still open", x.number, at)
		}
	}
}

func (c *checker) durable() {
	for _, x := range c.exchanges {
		switch {
		case x.prompt != nil:
			id, round := x.prompt.interaction, x.prompt.round
			if !c.any(id, 0, x.end, func(k commit) bool { return k.entry.Action == checkpoint.ActionAsked && k.entry.Round == round }) {
				c.breaks("exchange %d was shown round %d of %s before it was committed", x.number, round, id)
			}
		case x.kind == "answer" && x.code == "" && x.end > 0:
			if k := c.winners[roundOf{x.about, x.round}]; k.at == 0 || k.at > x.end {
				c.breaks("exchange %d was told recorded, and was not", x.number)
			}
		}
	}
	// Nor does an interaction go back to an earlier round.
	latest := map[checkpoint.ID]*exchange{}
	for _, x := range slices.SortedFunc(slices.Values(c.exchanges), func(a, b *exchange) int { return cmp.Compare(a.end, b.end) }) {
		if x.prompt == nil {
			continue
		}
		id := x.prompt.interaction
		if was := latest[id]; was != nil && was.prompt.round > x.prompt.round && was.end < x.begin {
			c.breaks("exchange %d was shown round %d of %s, after exchange %d round %d", x.number, x.prompt.round, id, was.number, was.prompt.round)
		}
		if was := latest[id]; was == nil || was.prompt.round < x.prompt.round {
			latest[id] = x
		}
	}
}
