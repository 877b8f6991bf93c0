package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// repeat sends the last answer again: the end is the same, or told to be over.
func (c *client) repeat(until time.Time) {
	t := c.replicas.t
	for time.Now().Before(until) {
		again, err := c.together(c.last.prompt.round, []request{c.last})
		switch {
		case err != nil:
			t.Errorf("%s %s: once more: %v", c.tool, c.on, err)
			return
		case again.end == end{}:
			time.Sleep(20 * time.Millisecond)
			continue
		}
		unknown := again.end.code == gate.ErrOutcomeUnknown && c.tool == "deploy" // an onboarding is repeatable
		if code := again.end.code; code != "" && code != gate.ErrAlreadyCompleted && again.end != c.end && !unknown {
			t.Errorf("%s %s: ended with %+v, and once more with %+v", c.tool, c.on, c.end, again.end)
		}
		return
	}
	t.Errorf("%s %s: the same again brings no end", c.tool, c.on)
}

// kind is a result or a code.
func (e end) kind() string {
	if e.result != "" {
		return "result"
	}
	return string(e.code)
}

// verify holds what the store has against what clients were told and what the world saw.
func (x *experiment) verify(s store) {
	defer func() {
		if err := s.Close(); err != nil {
			x.Error(err)
		}
	}()
	x.verifyJournal()
	entries := x.auditEntries(s)
	for _, c := range x.clients {
		if c.interaction != "" {
			x.verifyRecord(s, c, entries)
		}
	}
	x.verifyOpen(s)
}

// verifyJournal: an effect is there once, where its client was told so, and never twice; a tool that
// never runs again ran once for its answer, and a repeatable one once for each attempt.
func (x *experiment) verifyJournal() {
	text, err := os.ReadFile(x.file("journal"))
	if err != nil {
		x.Fatal(err)
	}
	effects, runs := map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case words[0] != "run":
			effects[words[1]]++
		case words[3] != "0": // before it asked it may run once for each call (F1)
			runs[strings.Join(words[1:], " ")]++
			if words[1] == "deploy" && words[4] != "1" {
				x.Errorf("ran again: %s", line)
			}
		}
	}
	for run, n := range runs {
		if n > 1 {
			x.Errorf("%d times: %s", n, run)
		}
	}
	for _, c := range x.clients {
		n := effects[c.on]
		done := c.end.result != "" || c.end.code == gate.ErrAlreadyCompleted && c.end.ended == ""
		no := []gate.Code{gate.ErrRejected, gate.ErrDeclined}
		refused := slices.Contains(no, c.end.code) || slices.Contains(no, c.end.ended)
		if n > 1 || done && n != 1 || refused && n != 0 {
			x.Errorf("%s %s ended with %s and had its effect %d times", c.tool, c.on, c.end.kind(), n)
		}
	}
}

// verifyRecord: what was acknowledged is what is recorded and what the tool was given; each
// transition has its entry.
func (x *experiment) verifyRecord(s store, c *client, entries map[checkpoint.ID]int) {
	id, err := checkpoint.ParseID(c.interaction)
	if err != nil {
		x.Fatal(err)
	}
	record, err := s.Load(x.Context(), id)
	if err != nil {
		x.Errorf("%s %s: %v", c.tool, c.on, err)
		return
	}
	in, err := checkpoint.Decode(record)
	if err != nil {
		x.Fatal(err)
	}
	for round, choice := range c.taken {
		if in.Rounds[round-1].Answer == nil {
			x.Errorf("%s %s: the answer to round %d is lost", c.tool, c.on, round)
			continue
		}
		for _, payload := range in.Rounds[round-1].Answer.Payloads {
			if !said(payload, round, choice) {
				x.Errorf("%s %s: round %d was answered with %d, and %s is recorded", c.tool, c.on, round, choice, payload)
			}
		}
	}
	if n := entries[id]; uint64(n) != record.Revision {
		x.Errorf("%s %s: %d audit entries for %d transitions", c.tool, c.on, n, record.Revision)
	}
	if !record.Status.Ended() && c.tool == "onboard" { // deployments can stay under a claim that is dead, until a sweep
		x.Errorf("onboard %s: ended with %s, and it is %s", c.on, c.end.kind(), record.Status)
	}
	if c.tool == "onboard" && c.end.result != "" {
		want := colleague{
			Name: c.on, Team: []string{"platform", "product"}[c.taken[2]], Desk: 11 + c.taken[2],
			Tools: [][]string{{"laptop"}, {"badge", "phone"}}[c.taken[3]],
		}
		if got, err := json.Marshal(want); err != nil || string(got) != c.end.result {
			x.Errorf("onboard %s: %s, want %s", c.on, c.end.result, got)
		}
	}
}

// said reports whether the payload is that of the choice.
func said(payload json.RawMessage, round, choice int) bool {
	words := [][2][]string{
		{{`allow_once`}, {`reject_once`}},
		{{`"selectionIdx":0`, `"desk":11`}, {`"selectionIdx":1`, `"desk":12`}},
		{{`["laptop"]`}, {`["badge","phone"]`}},
		{{`"accept"`}, {`"decline"`}},
	}[round-1][choice]
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(string(payload), word) })
}

// auditEntries counts the entries of each interaction, and looks for holes.
func (x *experiment) auditEntries(s store) map[checkpoint.ID]int {
	counts := map[checkpoint.ID]int{}
	for after := uint64(0); ; {
		page, err := s.Audit(x.Context(), after, 1000)
		if err != nil {
			x.Fatal(err)
		}
		if len(page) == 0 {
			return counts
		}
		for _, stored := range page {
			if after++; stored.Seq != after {
				x.Fatalf("audit entry %d follows %d", stored.Seq, after-1)
			}
			e, err := checkpoint.DecodeEntry(stored.Data)
			if err != nil {
				x.Fatal(err)
			}
			counts[e.Interaction]++
		}
	}
}

// verifyOpen: what has not ended is a question that its person sees, or a run whose client was told
// that nobody knows its outcome.
func (x *experiment) verifyOpen(s store) {
	keys, err := gate.KeyFile(x.file("tokens.key"))
	if err != nil {
		x.Fatal(err)
	}
	g, err := gate.Open(x.Context(), s, &gate.Options{Tools: newTools(""), Keys: keys})
	if err != nil {
		x.Fatal(err)
	}
	defer g.Close(x.Context())
	ended := map[string]end{}
	for _, c := range x.clients {
		ended[c.interaction] = c.end
	}
	seen, open := 0, 0
	for _, user := range []string{"ann", "bob"} {
		for after, more := "", true; more; more = after != "" {
			page, err := g.List(x.Context(), gate.ListQuery{Scope: "user " + user, After: after, Limit: 1000})
			if err != nil {
				x.Fatal(err)
			}
			after = page.Next
			for _, i := range page.Interactions {
				seen++
				_, known := ended[i.ID.String()]
				switch {
				case i.Status == checkpoint.Open && i.Prompt != nil && !known:
					open++ // nobody was given its token, and it is in its person's list
				case i.Status == checkpoint.Running && i.Tool == "deploy" && known:
				default:
					x.Errorf("%s %s is %s, with prompt %+v, known to a client: %t", i.Tool, i.Arguments, i.Status, i.Prompt, known)
				}
			}
		}
	}
	all, err := s.Usage(x.Context(), checkpoint.Hash{})
	if err != nil || all.Active != seen {
		x.Errorf("the store has %d live interactions, and people see %d: %v", all.Active, seen, err)
	}
	x.Logf("%d questions are open whose callers never got them", open)
}
