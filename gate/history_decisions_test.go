package gate_test

import (
	"strings"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// The rule about remembered decisions. The commits tell which stood when: an entry makes or renews
// one, and another takes it away. See history_check_test.go.

// A precedent is a decision that stands.
type precedent struct {
	word  string // what was answered
	tool  string
	scope checkpoint.Hash
	until time.Time
}

// decisionsAt returns the decisions that stand right before a position, whether or not they are
// expired.
func (c *checker) decisionsAt(at int) map[checkpoint.ID]precedent {
	stand := map[checkpoint.ID]precedent{}
	for _, k := range c.commits {
		e := k.entry
		switch {
		case k.at >= at || e.Status != checkpoint.Remembered:
		case e.Action == checkpoint.ActionRemembered:
			lifetime := c.tools[e.Tool].Remember.Lifetime
			stand[e.Interaction] = precedent{c.exchange(k.exchange).answers, e.Tool, e.Scope, e.Time.Add(lifetime)}
		default:
			delete(stand, e.Interaction)
		}
	}
	return stand
}

// answerOf is the answer that an answered commit recorded.
func (c *checker) answerOf(k commit) string {
	if !k.entry.Remembered {
		return c.exchange(k.exchange).answers
	}
	for _, d := range c.decisionsAt(k.at) {
		if d.tool == k.entry.Tool && d.scope == k.entry.Scope {
			return d.word
		}
	}
	return ""
}

func (c *checker) remembered() {
	for _, k := range c.commits {
		e, x := k.entry, c.exchange(k.exchange)
		if x == nil || c.tools[e.Tool].Remember == nil {
			continue
		}
		stand := 0
		for id, d := range c.decisionsAt(k.at) {
			if d.tool != e.Tool || d.scope != e.Scope {
				continue
			}
			stand++
			if e.Interaction == id && e.Action == checkpoint.ActionRemoved && x.answers == "always" && no(d.word) && e.Time.Before(d.until) {
				c.breaks("exchange %d put an allowance in the place of rejection %s", x.number, id)
			}
			now, _ := c.clocks(x.begin)
			since := c.any(id, 0, x.begin, does(checkpoint.ActionRemembered)) && !c.any(id, x.begin, k.at, func(commit) bool { return true })
			quiet := !c.turned(x.begin, k.at, "clock", "fault") && !c.limited
			switch {
			case e.Remembered && !e.Time.Before(d.until):
				c.breaks("exchange %d used decision %s at %s, after %s", x.number, id, e.Time, d.until)
			case e.Action == checkpoint.ActionAsked && e.Round == 1 && since && quiet && now.Before(d.until) && e.Time.Before(d.until):
				c.breaks("exchange %d asked, and decision %s (%q) stands until %s", x.number, id, d.word, d.until)
			case !strings.Contains(d.word, "always"):
				c.breaks("decision %s was remembered of %q", id, d.word)
			}
		}
		if e.Status == checkpoint.Remembered {
			continue
		}
		if e.Remembered && stand == 0 {
			c.breaks("exchange %d used a decision, and none stands", x.number)
		}
		if stand > 1 {
			c.breaks("before exchange %d committed %s, %d decisions stand for one thing", x.number, e.Action, stand)
		}
	}
}
