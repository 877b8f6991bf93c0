package gate_test

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// The rules about what callers are told. See history_check_test.go.

// replays: the same request again, with nothing in between, brings the same, or what R27 says of
// the end that it made itself.
func (c *checker) replays() {
	for i, first := range c.exchanges {
		for _, second := range c.exchanges[i+1:] {
			if !first.same(second) || first.end == 0 || second.end == 0 || first.end > second.begin {
				continue
			}
			quiet := !c.turned(first.begin, second.end, "clock", "keys", "left", "closing", "fault") &&
				!c.overlapped(first, first.begin, second.end, second)
			id := c.interactionOf(second)
			swept := c.any(id, first.begin, second.end, does(sweepActions...))
			if quiet && !swept && !id.IsZero() && !c.limited && !c.readOnly[first.gate] && !c.readOnly[second.gate] {
				c.again(first, second)
			}
		}
	}
}

// same reports whether two calls are one call, made twice.
func (x *exchange) same(y *exchange) bool {
	return x.kind == "invoke" && y.kind == "invoke" && x.binding == y.binding && x.token == y.token && x.answers == y.answers &&
		x.facilities == y.facilities && (x.token != "" || x.start != "")
}

func (c *checker) again(first, second *exchange) {
	tool, ran := c.tools[first.tool], len(c.runsOf[first.number]) > 0
	want := first.outcome()
	switch {
	case first.code.Retryable():
		return // another time, or at another gate, it can be otherwise
	case first.prompt != nil, !ran: // R26, or nothing happened
	case first.code.Decision():
		want = string(gate.ErrAlreadyCompleted) + "/" + string(first.code)
	case tool.Replay == gate.Repeatable && first.code != "":
		return // it ran again, for better or worse
	case tool.Replay == gate.Recover && (first.code != "" || !tool.KeepResult || c.recovered(first)):
		return
	case first.code != "":
		want = string(gate.ErrOutcomeUnknown) + "/" + string(first.code)
	case !tool.KeepResult:
		want = string(gate.ErrAlreadyCompleted)
	}
	if have := second.outcome(); have != want {
		c.breaks("exchange %d brought %s; exchange %d, the same again, brought %s and not %s", first.number, first.outcome(), second.number, have, want)
	}
	if len(c.runsOf[second.number]) > 0 {
		c.breaks("exchange %d ran again what exchange %d brought", second.number, first.number)
	}
}

func (c *checker) recovered(x *exchange) bool {
	return slices.ContainsFunc(c.runsOf[x.number], func(r *handlerRun) bool { return r.recovery })
}

// codes: what a caller is told is so.
func (c *checker) codes() {
	for _, x := range c.exchanges {
		if x.end == 0 {
			continue
		}
		if unfit(x.answers) && x.code == "" {
			c.breaks("exchange %d answered %q and was not refused", x.number, x.answers)
		}
		if why := c.untrue(x); why != "" {
			c.breaks("exchange %d was told %s, and %s", x.number, x.outcome(), why)
		}
	}
}

// untrue says why what an exchange was told is not so; empty: it is.
func (c *checker) untrue(x *exchange) string {
	id := c.interactionOf(x)
	at, _ := c.roundOf(x)
	winner := c.winners[at]
	answered := winner.at > 0 && winner.at < x.end
	ran := c.runsOf[x.number]
	var last handlerRun
	if len(ran) > 0 {
		last = *ran[len(ran)-1]
	}
	so := true
	why := ""
	switch x.code {
	case gate.ErrOutcomeUnknown:
		so = c.any(id, 0, x.end, func(k commit) bool { return isClaim(k.entry) }) || last.ending == "step refused" && c.faulted(x)
		why = "no attempt was made"
		if ended := c.before(id, x.begin); so && ended.entry.Status == checkpoint.Finished && c.before(id, x.end) == ended {
			return "it had finished"
		}
	case gate.ErrAlreadyCompleted:
		so = c.any(id, 0, x.end, func(k commit) bool {
			return k.entry.Status == checkpoint.Finished && gate.Code(k.entry.Code) == x.ended
		})
		why = "nothing had ended so"
	case gate.ErrAlreadyAnswered:
		so, why = answered && c.exchange(winner.exchange).kind == "answer", "it was not answered elsewhere"
	case gate.ErrAnswerConflict:
		so, why = answered, "it was not answered"
	case gate.ErrInvalidAnswer:
		so, why = unfit(x.answers), "its answer fits"
	case gate.ErrRejected, gate.ErrDeclined, gate.ErrCancelled:
		so, why = len(last.read) > 0 && no(last.read[len(last.read)-1]), "nobody said no"
		if len(ran) == 0 {
			so, why = c.tools[c.before(id, x.end).entry.Tool].KeepOpen && no(x.answers), "its tool does not keep its question open"
		}
	case gate.ErrRecoveryOnly:
		so, why = last.recovery && last.ending != "", "nothing was recovered"
	case gate.ErrFailed:
		so, why = last.ending == "fails" || last.ending == "breaks" || last.ending == "step refused", "nothing failed"
	case gate.ErrConfirmationRequired:
		so, why = x.facilities != "all", "it can ask everything"
	case gate.ErrStartConflict:
		so, why = strings.Contains(x.arguments, `"work":-1`), "its start ID is for this"
	case gate.ErrUnauthorized:
		so, why = x.scope == "eve" || c.turned(x.begin, x.end, "fault"), "it is authorized"
	case gate.ErrExpired:
		so, why = c.late(x), "it is in time"
	case gate.ErrBusy:
		so, why = c.limited || c.overlapped(x, x.begin, x.end) || c.disturbed(x) || c.swept(x) || c.gone(x), "nobody else is at it"
	case gate.ErrUnavailable:
		so = c.readOnly[x.gate] || c.turned(0, x.end, "fault", "left", "closing")
		why = "nothing is wrong"
	case gate.ErrInvalidArguments:
		so, why = x.kind == "revoke", "its arguments are good"
	case "", gate.ErrInvalidContinuation, gate.ErrStartUnknown, "given up": // see known, nobodyElse
	default:
		return "nothing calls for it"
	}
	if so {
		return ""
	}
	return why
}

// late reports whether a deadline of the exchange's interaction had passed when it ended. Of a round
// that nobody was shown the history knows only when it was committed.
func (c *checker) late(x *exchange) bool {
	began, _ := c.clocks(x.begin)
	_, latest := c.clocks(x.end)
	id := c.interactionOf(x)
	lifetime := cmp.Or(c.tools[x.tool].Lifetime, 10*time.Minute)
	if latest.Sub(began) >= lifetime && len(c.runsOf[x.number]) > 0 { // its question was too late before it was recorded
		return true
	}
	for at, p := range c.shown {
		if at.interaction == id && !latest.Before(p.expires) {
			return true
		}
	}
	return c.any(id, 0, x.end, func(k commit) bool {
		return k.entry.Action == checkpoint.ActionExpired || k.entry.Round == 1 && !latest.Before(k.entry.Time.Add(lifetime))
	})
}

// disturbed reports whether a fault can have left a claim of another gate that lives behind, for the
// same work. (Its own gate knows what it runs.)
func (c *checker) disturbed(x *exchange) bool {
	return slices.ContainsFunc(c.turns, func(t turn) bool {
		return t.what == "fault" && t.at < x.end && t.gate != x.gate && t.exchange > 0 && c.exchange(t.exchange).work == x.work
	})
}

// swept reports whether another request of the same gate can have been sweeping what is long due.
func (c *checker) swept(x *exchange) bool {
	began, _ := c.clocks(1)
	_, latest := c.clocks(x.end)
	return latest.Sub(began) >= 3*time.Minute && slices.ContainsFunc(c.exchanges, func(y *exchange) bool {
		return y != x && y.gate == x.gate && y.begin < x.end && c.until(y) > x.begin
	})
}

// gone reports whether the exchange's gate had left before it ended.
func (c *checker) gone(x *exchange) bool {
	left := c.leftAt(x.gate)
	return left > 0 && left < x.end
}
