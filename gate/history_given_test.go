package gate_test

import (
	"slices"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// The rules about what is given out, to whom, and for how long. See history_check_test.go.

func (c *checker) known() {
	for _, x := range c.exchanges {
		if x.code != gate.ErrInvalidContinuation && x.code != gate.ErrStartUnknown {
			continue
		}
		giver, id := c.given[x.token], c.interactionOf(x)
		removed := func() bool { return c.any(id, 0, x.end, does(checkpoint.ActionRemoved)) }
		switch {
		case x.code == gate.ErrStartUnknown:
			for _, id := range c.starts[[2]string{x.scope, x.start}] {
				if x.start != "" && c.of[id][0].at < x.begin {
					c.breaks("exchange %d was told that its start ID was never used", x.number)
				}
			}
		case x.kind == "answer":
			if giver := c.shown[roundOf{x.about, x.round}]; giver != nil && !removed() {
				c.breaks("exchange %d was told that there is no round %d of %s", x.number, x.round, x.about)
			}
		case giver == nil || giver.binding != x.binding || removed():
		case c.any(id, giver.begin, x.end, does(checkpoint.ActionRejoined)), !c.holds(giver, x.end): // it may be void
		case c.turned(giver.begin, x.end, "keys") && !c.keysHeld(giver.begin, x.end):
		default:
			c.breaks("exchange %d was refused token %s, which is its own", x.number, x.token)
		}
	}
	for key, ids := range c.starts {
		if key[1] != "" && len(ids) > 1 {
			c.breaks("start ID %q of %s began %v", key[1], key[0], ids)
		}
	}
}

// keysHeld reports whether every key that was in the ring at from was in it up to to.
func (c *checker) keysHeld(from, to int) bool {
	var had []string
	for _, t := range c.turns {
		switch {
		case t.at <= from:
			had = t.keys
		case t.at < to:
			for _, key := range had {
				if !slices.Contains(t.keys, key) {
					return false
				}
			}
		}
	}
	return true
}

// keyGone reports whether no key that there was in (given's interaction's begin, given) is in the
// ring at all in (from, to).
func (c *checker) keyGone(giver *exchange, from, to int) bool {
	var could, can []string
	for _, t := range c.turns {
		if t.at < giver.end {
			could = append(could, t.keys...)
		}
	}
	for i, t := range c.turns {
		last := i+1 == len(c.turns) || c.turns[i+1].at > from
		if t.at < to && last {
			can = append(can, t.keys...)
		}
	}
	return !slices.ContainsFunc(can, func(key string) bool { return slices.Contains(could, key) })
}

func (c *checker) nobodyElse() {
	scopes := map[checkpoint.ID]string{}
	for _, x := range c.exchanges {
		got := x.end > 0 && (x.prompt != nil || x.result != "") || len(c.runsOf[x.number]) > 0
		if id := c.interactionOf(x); got && !id.IsZero() {
			if scope, ok := scopes[id]; ok && scope != x.scope {
				c.breaks("exchange %d of %s got what is %s's", x.number, x.scope, scope)
			}
			scopes[id] = x.scope
		}
		if x.prompt != nil {
			if giver := c.given[x.prompt.token]; giver.binding != x.binding {
				c.breaks("exchanges %d and %d got one token for %+v and %+v", giver.number, x.number, giver.binding, x.binding)
			}
		}
		if x.kind == "answer" {
			if owner := c.owners[x.about]; x.code == "" && x.end > 0 && (owner == nil || owner.scope != x.scope) {
				c.breaks("exchange %d of %s answered for another scope", x.number, x.scope)
			}
			continue
		}
		if x.token == "" || x.end == 0 {
			continue
		}
		giver := c.given[x.token]
		foreign := giver == nil || giver.binding != x.binding
		switch refused := []gate.Code{gate.ErrInvalidContinuation, gate.ErrUnavailable, "given up"}; {
		case foreign && !slices.Contains(refused, x.code):
			c.breaks("exchange %d with token %s, which is not its own, brought %s", x.number, x.token, x.outcome())
		case foreign || !got:
		case c.void(x, giver), !c.holds(x, x.begin) && !c.holds(x, x.end):
			c.breaks("exchange %d with token %s, which is void, brought %s", x.number, x.token, x.outcome())
		case c.keyGone(giver, x.begin, x.end):
			c.breaks("exchange %d with token %s, whose key is gone, brought %s", x.number, x.token, x.outcome())
		}
	}
}

// holds reports whether the latest prompt at a position was for the session and face of x: who
// rejoins, or has the handler run, from elsewhere takes the interaction over.
func (c *checker) holds(x *exchange, at int) bool {
	holder := x
	for _, k := range c.of[c.interactionOf(x)] {
		if y := c.exchange(k.exchange); k.at < at && y != nil && does(checkpoint.ActionAsked, checkpoint.ActionRejoined)(k) {
			holder = y
		}
	}
	return holder.session == x.session && holder.face == x.face
}

// void reports whether a later token of the same round was given out before the exchange began.
func (c *checker) void(x, giver *exchange) bool {
	return slices.ContainsFunc(c.exchanges, func(y *exchange) bool {
		p := y.prompt
		return p != nil && p.interaction == giver.prompt.interaction && p.round == giver.prompt.round && p.token != x.token &&
			y.end < x.begin && c.madeAt(x.token) > 0 && c.madeAt(p.token) > c.madeAt(x.token)
	})
}

// madeAt is where a token came to be, if the request that was first given it also made it; 0: it is
// not known.
func (c *checker) madeAt(token string) (at int) {
	giver := c.given[token]
	for _, k := range c.of[giver.prompt.interaction] {
		if k.exchange == giver.number && k.at < giver.end && does(checkpoint.ActionAsked, checkpoint.ActionRejoined)(k) {
			at = k.at
		}
	}
	return at
}

func (c *checker) deadlines() {
	for _, k := range c.commits {
		p := c.shown[roundOf{k.entry.Interaction, k.entry.Round - 1}]
		if k.entry.Action == checkpoint.ActionAsked && p != nil && !k.entry.Time.Before(p.expires) {
			c.breaks("exchange %d asked round %d of %s at %s, after %s", k.exchange, k.entry.Round, k.entry.Interaction, k.entry.Time, p.expires)
		}
	}
	for _, x := range c.exchanges {
		if x.prompt == nil {
			continue
		}
		p := x.prompt
		if first := c.shown[roundOf{p.interaction, p.round}]; !first.expires.Equal(p.expires) || first.arguments != p.arguments {
			c.breaks("exchange %d was shown round %d of %s until %s, and before until %s", x.number, p.round, p.interaction, p.expires, first.expires)
		}
		for round := range p.round {
			if parent := c.shown[roundOf{p.interaction, round}]; parent != nil && p.expires.After(parent.expires) {
				c.breaks("exchange %d: round %d expires at %s, after round %d", x.number, p.round, p.expires, round)
			}
		}
		if now, _ := c.clocks(x.begin); !now.Before(p.expires) && !c.turned(x.begin, x.end, "clock") {
			c.breaks("exchange %d was shown round %d of %s at %s, after %s", x.number, p.round, p.interaction, now, p.expires)
		}
		if c.any(p.interaction, 0, x.begin, does(checkpoint.ActionExpired)) {
			c.breaks("exchange %d was shown %s, which had expired", x.number, p.interaction)
		}
	}
	for _, x := range c.exchanges {
		at, _ := c.roundOf(x)
		now, _ := c.clocks(x.begin)
		if p := c.shown[at]; p == nil || x.end == 0 || now.Before(p.expires) || c.turned(x.begin, x.end, "clock") {
			continue
		}
		switch x.code {
		case gate.ErrExpired, gate.ErrInvalidContinuation, gate.ErrUnavailable, gate.ErrUnauthorized, gate.ErrBusy, "given up":
		default:
			c.breaks("exchange %d for round %v came at %s, too late, and brought %s", x.number, at, now, x.outcome())
		}
	}
	for at, k := range c.winners {
		x, p := c.exchange(k.exchange), c.shown[at]
		if x == nil || p == nil || k.entry.Remembered {
			continue
		}
		if now, _ := c.clocks(x.begin); !now.Before(p.expires) && !c.turned(x.begin, k.at, "clock") {
			c.breaks("exchange %d answered round %v at %s, after %s", x.number, at, now, p.expires)
		}
	}
}

// silent: a gate that left writes nothing any more, and one that only reads nothing ever.
func (c *checker) silent() {
	for _, k := range c.commits {
		x := c.exchange(k.exchange)
		if x == nil {
			continue
		}
		if left := c.leftAt(x.gate); left > 0 && k.at > left {
			c.breaks("exchange %d committed %s at gate %d, which had left", x.number, k.entry.Action, x.gate)
		}
		if c.readOnly[x.gate] {
			c.breaks("exchange %d committed %s at gate %d, which only reads", x.number, k.entry.Action, x.gate)
		}
	}
	for _, r := range c.runs {
		if x := c.exchange(r.exchange); c.readOnly[x.gate] {
			c.breaks("exchange %d ran at gate %d, which only reads", x.number, x.gate)
		}
	}
}
