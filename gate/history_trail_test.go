package gate_test

import (
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// The rule about the audit trail: it is the store's commits, one by one; each interaction's are a
// way through docs/transitions.md; and it says of every request what that request did. See
// history_check_test.go.
func (c *checker) trail() {
	var entries []checkpoint.Entry
	for _, k := range c.commits {
		entries = append(entries, k.entry)
	}
	if !slices.Equal(entries, c.audit) {
		c.breaks("the trail is not what was committed (-commits +trail):\n%s", cmp.Diff(entries, c.audit))
	}
	scopes := map[string]checkpoint.Hash{}
	for id, commits := range c.of {
		if commits[0].entry.Status == checkpoint.Remembered {
			continue // a decision, see remembered
		}
		var was checkpoint.Entry
		for _, k := range commits {
			if !follows(was, k.entry) {
				c.breaks("%s: after %q comes %q", id, line(was), line(k.entry))
			}
			if k.entry.Time.Before(was.Time) {
				c.breaks("%s: %q at %s, after %s", id, line(k.entry), k.entry.Time, was.Time)
			}
			if was.Action != "" && was.Scope != k.entry.Scope {
				c.breaks("%s: %q has another scope", id, line(k.entry))
			}
			c.entry(k)
			was = k.entry
		}
		if owner := c.owners[id]; owner != nil {
			if hash, ok := scopes[owner.scope]; ok && hash != was.Scope {
				c.breaks("%s: scope %s has two hashes", id, owner.scope)
			}
			scopes[owner.scope] = was.Scope
		}
	}
	c.observers(entries)
}

// entry holds an entry against the request that made it.
func (c *checker) entry(k commit) {
	x, e := c.exchange(k.exchange), k.entry
	if x == nil || slices.Contains(sweepActions, e.Action) {
		return
	}
	switch e.Action {
	case checkpoint.ActionAnswered:
		if e.Remembered {
			return
		}
		if e.Face != x.face || e.By != x.by || (x.kind == "answer") != (e.Status == checkpoint.Answered) {
			c.breaks("exchange %d answered by face %q, %q; the entry is %q", x.number, x.face, x.by, line(e))
		}
	case checkpoint.ActionEnded:
		c.endOfRun(k)
	}
	if e.Action != checkpoint.ActionEnded && (e.Tool == "" || x.tool != "" && x.tool != e.Tool) {
		c.breaks("exchange %d for tool %s; the entry is of %q", x.number, x.tool, e.Tool)
	}
}

// endOfRun: the mark of an end is that of a run, though another exchange may have written it.
func (c *checker) endOfRun(k commit) {
	for _, r := range c.runs {
		claim, x := c.claimOf(r), c.exchange(r.exchange)
		if e := claim.entry; claim.at == 0 || e.Interaction != k.entry.Interaction || e.Round != k.entry.Round || e.Attempt != k.entry.Attempt {
			continue
		}
		lost := x.code == gate.ErrOutcomeUnknown && c.faulted(x) // its mark, which it could not see, and then its claim
		if r.end == 0 || r.end > k.at || x.end > 0 && !lost && (x.prompt != nil || k.entry.Code != string(x.code)) {
			c.breaks("exchange %d brought %s; the entry is %q", x.number, x.outcome(), line(k.entry))
		}
		return
	}
	c.breaks("%s: nothing ran for %q", k.entry.Interaction, line(k.entry))
}

// follows reports whether an entry can come after another of its interaction.
func follows(was, is checkpoint.Entry) bool {
	type step struct {
		action         checkpoint.Action
		round, attempt int
	}
	round, attempt := was.Round, int(was.Attempt)
	var steps []step
	switch was.Status {
	case 0:
		if was.Action == "" {
			steps = []step{{checkpoint.ActionStarted, 0, 1}, {checkpoint.ActionAsked, 1, 0}}
		}
	case checkpoint.Started:
		steps = []step{
			{checkpoint.ActionAsked, 1, 0}, {checkpoint.ActionEnded, 0, attempt}, {checkpoint.ActionRecovered, 0, attempt + 1},
			{checkpoint.ActionAbandoned, 0, attempt},
		}
	case checkpoint.Open:
		steps = []step{{checkpoint.ActionRejoined, round, 0}, {checkpoint.ActionExpired, round, 0}, {checkpoint.ActionAnswered, round, 1}}
		if is.Status == checkpoint.Answered {
			steps[2].attempt = 0
		}
	case checkpoint.Answered:
		steps = []step{{checkpoint.ActionClaimed, round, 1}, {checkpoint.ActionExpired, round, 0}}
	case checkpoint.Running:
		steps = []step{
			{checkpoint.ActionAsked, round + 1, 0}, {checkpoint.ActionEnded, round, attempt}, {checkpoint.ActionRecovered, round, attempt + 1},
			{checkpoint.ActionAbandoned, round, attempt},
		}
	case checkpoint.Failed, checkpoint.Abandoned, checkpoint.Finished:
		steps = []step{{checkpoint.ActionRecovered, round, attempt + 1}, {checkpoint.ActionRemoved, round, attempt}}
	case checkpoint.Expired, checkpoint.Tombstone:
		steps = []step{{checkpoint.ActionRemoved, round, attempt}}
	}
	if is.Action == checkpoint.ActionRemoved && was.Action == checkpoint.ActionRemoved && was.Status != checkpoint.Tombstone {
		return false // it was gone
	}
	if is.Remembered { // H9: in the place of the prompt
		return is.Action == checkpoint.ActionAnswered && is.Attempt == 1 && slices.ContainsFunc(steps, func(s step) bool {
			return s.action == checkpoint.ActionAsked && s.round == is.Round
		})
	}
	return slices.ContainsFunc(steps, func(s step) bool {
		removed := s.action == checkpoint.ActionRemoved // which tells no round where nothing is left
		return s.action == is.Action && (removed || s.round == is.Round && s.attempt == int(is.Attempt))
	})
}

// observers are told what was committed; once, and all of it, where no commit was in doubt. (After a
// doubt two gates that write the very same cannot tell whose write it was.)
func (c *checker) observers(entries []checkpoint.Entry) {
	doubt := c.turned(0, c.at+1, "fault")
	short := func(e checkpoint.Entry) string {
		return e.Interaction.String() + " " + string(e.Action) + fmt.Sprint(e.Round, e.Attempt)
	}
	count, committed := map[checkpoint.Entry]int{}, map[string]bool{}
	for _, e := range entries {
		count[e]++
		committed[short(e)] = true
	}
	for _, e := range c.told {
		if count[e]--; !committed[short(e)] || count[e] < 0 && !doubt {
			c.breaks("an observer was told %q of %s once too often", line(e), e.Interaction)
		}
	}
	if len(c.told) != len(entries) && !doubt && !c.turned(0, c.at+1, "left") {
		c.breaks("observers were told %d of %d entries", len(c.told), len(entries))
	}
}
