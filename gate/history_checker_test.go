package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

var (
	noon      = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	anns      = binding{tool: "never", arguments: `{"work":0}`, scope: "ann", session: "s1", start: "start 0"}
	storyID   = checkpoint.ID{1}
	storyHash = checkpoint.Hash{1}
)

// story is a good history: a call with a start ID asks, is answered, has its effect, and is
// repeated. Positions leave room between them.
func story() *history {
	shown := &promptSeen{storyID, 1, "t1", anns.arguments, noon.Add(10 * time.Minute)}
	entry := func(action checkpoint.Action, status checkpoint.Status, round int, attempt uint32) checkpoint.Entry {
		return checkpoint.Entry{
			Time: noon, Interaction: storyID, Action: action, Status: status, Round: round, Attempt: attempt, Tool: "never", Scope: storyHash,
		}
	}
	h := &history{
		at: 1000, tools: map[string]gate.ToolOptions{"never": {}}, readOnly: map[int]bool{},
		turns: []turn{{at: 1, what: "clock", now: noon, keys: []string{"key 1"}}},
		exchanges: []*exchange{
			{number: 1, begin: 10, end: 100, gate: 1, kind: "invoke", binding: anns, facilities: "all", prompt: shown, interaction: storyID},
			{number: 2, begin: 200, end: 300, gate: 1, kind: "invoke", binding: anns, facilities: "all", token: "t1", answers: "left",
				result: `"left"`, interaction: storyID},
			{number: 3, begin: 400, end: 500, gate: 2, kind: "invoke", binding: anns, facilities: "all", token: "t1", answers: "left",
				code: gate.ErrAlreadyCompleted, interaction: storyID},
		},
		runs: []*handlerRun{
			{exchange: 1, begin: 30, end: 40, arguments: anns.arguments, ending: "asked or refused"},
			{exchange: 2, begin: 230, end: 250, effect: 240, interaction: storyID, round: 1, attempt: 1, arguments: anns.arguments,
				read: []string{"left"}, ending: "well"},
		},
		commits: []commit{
			{20, 1, entry(checkpoint.ActionStarted, checkpoint.Started, 0, 1)},
			{50, 1, entry(checkpoint.ActionAsked, checkpoint.Open, 1, 0)},
			{220, 2, entry(checkpoint.ActionAnswered, checkpoint.Running, 1, 1)},
			{260, 2, entry(checkpoint.ActionEnded, checkpoint.Finished, 1, 1)},
		},
	}
	h.retell()
	return h
}

// retell lets the trail and the observers tell what the commits do.
func (h *history) retell() {
	h.audit, h.told = nil, nil
	for _, k := range h.commits {
		h.audit, h.told = append(h.audit, k.entry), append(h.told, k.entry)
	}
}

// more adds a copy of an exchange that is changed.
func (h *history) more(of int, change func(x *exchange)) {
	x := *h.exchanges[of-1]
	x.number = len(h.exchanges) + 1
	change(&x)
	h.exchanges = append(h.exchanges, &x)
}

// The checker takes a good history, and finds in each bad one the rule that it breaks.
func TestCheckerOfHistories(t *testing.T) {
	if violations := story().check(); len(violations) > 0 {
		t.Fatalf("a good history: %v", violations)
	}
	later := func(x *exchange) { x.begin, x.end = 600, 700 }
	for name, bad := range map[string]struct {
		rule string
		edit func(h *history)
	}{
		"a round is answered twice": {"one winning answer", func(h *history) {
			h.more(2, func(x *exchange) { later(x); x.answers = "right" })
			k := h.commits[2]
			k.at, k.exchange = 620, 4
			h.commits = append(h.commits, k)
		}},
		"it runs with another answer": {"one winning answer", func(h *history) { h.runs[1].read[0] = "right" }},
		"another answer is taken":     {"one winning answer", func(h *history) { h.exchanges[2].answers = "right" }},
		"the same answer is a conflict": {"one winning answer", func(h *history) {
			h.exchanges[2].code = gate.ErrAnswerConflict
		}},
		"an unfit answer wins":       {"one winning answer", func(h *history) { h.exchanges[1].answers = "bad value" }},
		"it runs before the commit":  {"no run without", func(h *history) { h.commits[2].at = 235 }},
		"a first run has no record":  {"no run without", func(h *history) { h.commits[0].at = 35 }},
		"it runs as another attempt": {"no run without", func(h *history) { h.runs[1].attempt = 2 }},
		"it recovers what is no recovery": {"no run without", func(h *history) {
			h.runs[1].recovery = true
		}},
		"it runs twice": {"no second ordinary", func(h *history) {
			h.more(3, later)
			k, r := h.commits[2], *h.runs[1]
			k.at, k.exchange, k.entry.Action, k.entry.Attempt = 620, 4, checkpoint.ActionRecovered, 2
			r.exchange, r.begin, r.effect, r.end, r.attempt = 4, 630, 0, 640, 2
			h.commits, h.runs = append(h.commits, k), append(h.runs, &r)
		}},
		"two run at once": {"one run at a time", func(h *history) {
			h.more(3, func(x *exchange) { x.begin, x.end = 210, 280 })
			k, r := h.commits[2], *h.runs[1]
			k.at, k.exchange, k.entry.Action, k.entry.Attempt = 235, 4, checkpoint.ActionRecovered, 2
			r.exchange, r.begin, r.effect, r.end, r.attempt = 4, 245, 0, 270, 2
			h.commits, h.runs = append(h.commits, k), append(h.runs, &r)
		}},
		"what runs is abandoned": {"one run at a time", func(h *history) {
			k := h.commits[3]
			k.at, k.entry.Action, k.entry.Status = 245, checkpoint.ActionAbandoned, checkpoint.Abandoned
			h.commits = append(h.commits[:3:3], k)
		}},
		"what recovers asks": {"recovery asks nothing", func(h *history) {
			h.tools["never"] = gate.ToolOptions{Replay: gate.Recover}
			asked := h.commits[1]
			asked.at, asked.entry.Round = 255, 2
			h.commits[2].entry.Action = checkpoint.ActionRecovered
			h.commits = append(h.commits[:3:3], asked)
		}},
		"a tool that keeps open is answered no": {"one winning answer", func(h *history) {
			h.tools["never"] = gate.ToolOptions{KeepOpen: true}
			h.exchanges[1].answers, h.exchanges[2].answers = "cancel", "cancel"
		}},
		"asked too late": {"deadlines", func(h *history) {
			asked := h.commits[1]
			asked.at, asked.entry.Round, asked.entry.Time = 255, 2, noon.Add(10*time.Minute)
			h.commits = append(h.commits[:3:3], asked)
		}},
		"answered too late": {"deadlines", func(h *history) {
			h.turns = append(h.turns, turn{at: 150, what: "clock", now: noon.Add(10 * time.Minute), keys: []string{"key 1"}})
		}},
		"a decision that does not stand answers": {"decisions answer", func(h *history) {
			h.tools["never"] = gate.ToolOptions{Remember: &gate.RememberOptions{}}
			h.commits[2].entry.Remembered = true
		}},
		"a step is done twice": {"a step is done once", func(h *history) {
			h.steps = []stepDone{{at: 232, exchange: 2, key: "a", result: "1"}, {at: 234, exchange: 2, key: "a", result: "2"}}
		}},
		"a step is done again after its result was given": {"a step is done once", func(h *history) {
			h.steps = []stepDone{
				{at: 232, exchange: 2, key: "a", result: "1", given: true, idempotent: true}, {at: 234, exchange: 2, key: "a", result: "1", idempotent: true},
			}
		}},
		"a step has two results": {"a step is done once", func(h *history) {
			h.steps = []stepDone{{at: 232, exchange: 2, key: "a", result: "1", given: true}, {at: 234, exchange: 2, key: "a", result: "2", given: true}}
		}},
		"asked though a decision stands": {"decisions answer", func(h *history) {
			h.tools["never"] = gate.ToolOptions{Remember: &gate.RememberOptions{Lifetime: time.Hour}}
			h.more(1, func(x *exchange) { x.begin, x.end, x.kind, x.prompt, x.answers = 2, 4, "answer", nil, "always" })
			k := h.commits[0]
			k.at, k.exchange, k.entry.Interaction = 3, 4, checkpoint.ID{3}
			k.entry.Action, k.entry.Status = checkpoint.ActionRemembered, checkpoint.Remembered
			h.commits = append([]commit{k}, h.commits...)
		}},
		"an effect after a no": {"no effect after", func(h *history) {
			h.exchanges[1].answers, h.exchanges[2].answers, h.runs[1].read[0] = "decline", "decline", "decline"
		}},
		"other arguments run":   {"what is executed", func(h *history) { h.runs[1].arguments = `{"work":1}` }},
		"other arguments shown": {"what is executed", func(h *history) { h.exchanges[0].prompt.arguments = `{"work":1}` }},
		"what is refused is recorded": {"what is refused", func(h *history) {
			h.exchanges[1].code, h.runs = gate.ErrInvalidAnswer, h.runs[:1]
		}},
		"an answered round is still open": {"what is refused", func(h *history) { h.exchanges[2].stillOpen = true }},
		"shown before the commit":         {"durable before", func(h *history) { h.commits[1].at = 110 }},
		"told recorded, and not": {"durable before", func(h *history) {
			h.more(1, func(x *exchange) {
				x.begin, x.end = 110, 120
				x.kind, x.about, x.round, x.answers, x.prompt = "answer", storyID, 1, "left", nil
			})
		}},
		"back to an earlier round": {"durable before", func(h *history) {
			h.more(1, func(x *exchange) {
				x.begin, x.end = 110, 120
				p := *x.prompt
				p.round, p.token = 2, "t2"
				x.prompt = &p
			})
			h.more(1, later)
		}},
		"a good token is not known": {"what was given out", func(h *history) { h.exchanges[2].code = gate.ErrInvalidContinuation }},
		"a start ID is not known": {"what was given out", func(h *history) {
			h.more(1, func(x *exchange) { later(x); x.kind, x.code, x.prompt = "inspect", gate.ErrStartUnknown, nil })
		}},
		"a start ID begins twice": {"what was given out", func(h *history) {
			k := h.commits[0]
			k.at, k.entry.Interaction = 25, checkpoint.ID{2}
			h.commits = append(h.commits, k)
		}},
		"another session gets it": {"nobody else", func(h *history) { h.exchanges[2].session = "s2" }},
		"another scope gets it": {"nobody else", func(h *history) {
			h.more(1, func(x *exchange) { later(x); x.scope = "bob"; p := *x.prompt; p.token = "t2"; x.prompt = &p })
		}},
		"a token that never was": {"nobody else", func(h *history) { h.exchanges[2].token = "forged" }},
		"the key is gone": {"nobody else", func(h *history) {
			h.turns = append(h.turns, turn{at: 350, what: "keys", now: noon, keys: []string{"key 2"}})
			h.exchanges[2].code, h.exchanges[2].prompt = "", h.exchanges[0].prompt
		}},
		"another deadline": {"deadlines", func(h *history) {
			h.more(1, func(x *exchange) { later(x); p := *x.prompt; p.expires = noon.Add(time.Hour); x.prompt = &p })
		}},
		"a later round lasts longer": {"deadlines", func(h *history) {
			h.more(1, func(x *exchange) {
				later(x)
				p := *x.prompt
				p.round, p.token, p.expires = 2, "t2", noon.Add(time.Hour)
				x.prompt = &p
			})
		}},
		"shown too late": {"deadlines", func(h *history) {
			h.turns[0].now = noon.Add(11 * time.Minute)
		}},
		"a replay brings something else": {"equal replays", func(h *history) { h.exchanges[2].code, h.exchanges[2].ended = gate.ErrOutcomeUnknown, "" }},
		"unknown, and nothing was tried": {"codes", func(h *history) {
			h.exchanges[1].code, h.runs, h.commits = gate.ErrOutcomeUnknown, nil, h.commits[1:2]
		}},
		"unknown, and it had finished":     {"codes", func(h *history) { h.exchanges[2].code = gate.ErrOutcomeUnknown }},
		"expired, and in time":             {"codes", func(h *history) { h.exchanges[2].code = gate.ErrExpired }},
		"busy, and nobody is there":        {"codes", func(h *history) { h.exchanges[2].code = gate.ErrBusy }},
		"unavailable, and nothing wrong":   {"codes", func(h *history) { h.exchanges[2].code = gate.ErrUnavailable }},
		"declined, and nobody said no":     {"codes", func(h *history) { h.exchanges[2].code = gate.ErrDeclined }},
		"a code that nothing calls for":    {"codes", func(h *history) { h.exchanges[2].code = gate.ErrTooLarge }},
		"a gate that left writes":          {"who left", func(h *history) { h.turns = append(h.turns, turn{at: 225, what: "left", gate: 1, now: noon}) }},
		"a gate that only reads runs":      {"who left", func(h *history) { h.readOnly[1] = true }},
		"the trail has an entry less":      {"the audit trail", func(h *history) { h.audit = h.audit[:3] }},
		"the trail leaves its way":         {"the audit trail", func(h *history) { h.commits[2].entry.Round = 2 }},
		"the trail names another face":     {"the audit trail", func(h *history) { h.commits[2].entry.Face = "mcp" }},
		"the trail names another ending":   {"the audit trail", func(h *history) { h.commits[3].entry.Code = "failed" }},
		"the trail has an end from nobody": {"the audit trail", func(h *history) { h.runs = h.runs[:1] }},
		"time runs back in the trail":      {"the audit trail", func(h *history) { h.commits[3].entry.Time = noon.Add(-1) }},
		"a scope has two hashes":           {"the audit trail", func(h *history) { h.commits[3].entry.Scope = checkpoint.Hash{2} }},
		"an observer is told twice":        {"the audit trail", func(h *history) { h.told = append(h.told, h.told[3]) }},
		"an observer is not told":          {"the audit trail", func(h *history) { h.told = h.told[:3] }},
	} {
		h := story()
		told := bad.rule != "the audit trail" || !strings.Contains(name, "observer") && !strings.Contains(name, "less")
		bad.edit(h)
		if told {
			h.retell()
		}
		found := false
		for _, v := range h.check() {
			found = found || strings.HasPrefix(v.rule, bad.rule)
		}
		if !found {
			t.Errorf("%s: found only %v\n%s", name, h.check(), h)
		}
	}
}
