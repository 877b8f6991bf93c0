package gate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// What people and their programs send in a simulation.

// An errand is one piece of work that somebody wants done.
type errand struct {
	number int
	call   gate.Call
	face   string
	seen   []seenPrompt
}

// A seenPrompt is a prompt with who got it.
type seenPrompt struct {
	*gate.Prompt
	session, face string
}

func (w *errand) saw(p *gate.Prompt, x *exchange) {
	for _, old := range w.seen {
		if old.Token == p.Token {
			return
		}
	}
	w.seen = append(w.seen, seenPrompt{p, x.session, x.face})
}

// A said is a call that was made, and can be made again.
type said struct {
	work       int
	face, kind string
	call       gate.Call
	answers    string
}

// alias is a token's name in the history.
func (s *simulation) alias(t gate.Token) string {
	if name := s.aliases[t]; name != "" {
		return name
	}
	return "forged"
}

// request makes one of the requests that there can be.
func (s *simulation) request() {
	var shown []*errand
	for _, w := range s.works {
		if len(w.seen) > 0 {
			shown = append(shown, w)
		}
	}
	if len(shown) == 0 || s.chance(6) {
		s.begin()
		return
	}
	w := shown[len(shown)-1-s.rand.IntN(min(3, len(shown)))]
	latest := w.seen[len(w.seen)-1]
	switch roll := s.rand.IntN(100); {
	case roll < 36:
		s.answer(w, latest, s.words(latest, 8))
	case roll < 54:
		s.again()
	case roll < 61: // an answer to any round, whatever was said before
		p := one(s, w.seen...)
		s.answer(w, p, s.words(p, 3))
	case roll < 67:
		s.lookAgain(w, one(s, w.seen...))
	case roll < 76:
		s.rejoin(w)
	case roll < 86:
		s.elsewhere(w, one(s, latest, one(s, w.seen...)))
	case roll < 92:
		s.steal(w, one(s, w.seen...))
	case roll < 96:
		s.wait(w, latest)
	case roll < 98:
		s.revoke(w)
	default:
		s.inspect(w)
	}
}

func (s *simulation) begin() {
	n := len(s.works)
	in := simInput{Work: n, Ends: one(s, "well", "well", "well", "well", "fails", "breaks", "asks")}
	arguments, err := json.Marshal(in)
	if err != nil {
		s.Fatal(err)
	}
	tool := one(s, "never", "never", "kept", "repeat", "short", "recover", "mend", "always", "always", "steps", "steps")
	w := &errand{number: n, call: call(tool, string(arguments)), face: one(s, simFaces...)}
	if s.chance(5) {
		w.call.Scope = "bob"
	}
	switch s.rand.IntN(5) {
	case 0, 1:
		w.call.StartID = fmt.Sprint("start ", n)
	case 2:
		w.call.Join = true
	}
	switch s.rand.IntN(20) {
	case 0:
		w.call.Facilities = nil
	case 1:
		w.call.Facilities = []interrupt.Facility{interrupt.FacilityOutOfBand}
	}
	s.works = append(s.works, w)
	s.invoke(said{n, w.face, "invoke", w.call, ""})
}

// rejoin comes again with the call that began it, perhaps from elsewhere.
func (s *simulation) rejoin(w *errand) {
	c, face := w.call, w.face
	if s.chance(3) {
		c.Session = "s2"
	}
	if s.chance(5) {
		face = one(s, simFaces...)
	}
	if s.chance(8) && c.StartID != "" {
		c.Arguments = json.RawMessage(`{"ends":"well","work":-1}`)
	}
	s.invoke(said{w.number, face, "invoke", c, ""})
}

// words draws an answer to every question; one in n is not the common one.
func (s *simulation) words(p seenPrompt, n int) string {
	var words []string
	for _, q := range p.Questions {
		word := map[string]string{
			interrupt.TypeToolPermission: "allow", interrupt.TypeUserSelection: one(s, "left", "left", "right"), interrupt.TypeForm: "fill",
		}[q.Type]
		if p.Tool == "always" && q.Type == interrupt.TypeToolPermission {
			word = one(s, "allow", "always", "always", "always", "reject always")
		}
		if s.chance(n) {
			word = one(s, "decline", "cancel", "bad value", "bad id", "bad for it is missing")
			if q.Type == interrupt.TypeToolPermission && s.chance(2) {
				word = "reject"
			}
		}
		words = append(words, word)
	}
	return strings.Join(words, "+")
}

// payloads are the answers of the words.
func (s *simulation) payloads(p seenPrompt, words string) gate.Answers {
	answers := gate.Answers{}
	for i, word := range strings.Split(words, "+") {
		if text, ok := payload(p.Questions[i], word, s.chance(2)); ok {
			answers[p.Questions[i].ID] = text
		}
	}
	if len(answers) == 0 { // else it would be none at all
		answers["unknown"] = json.RawMessage(`{}`)
	}
	return answers
}

// holding is the work's call with a prompt's token, from where the prompt was shown.
func (w *errand) holding(p seenPrompt) gate.Call {
	c := w.call
	c.Token, c.Session, c.Join = p.Token, p.session, false
	return c
}

func (s *simulation) answer(w *errand, p seenPrompt, words string) {
	c := w.holding(p)
	c.Answers = s.payloads(p, words)
	s.invoke(said{w.number, p.face, "invoke", c, words})
}

func (s *simulation) lookAgain(w *errand, p seenPrompt) {
	s.invoke(said{w.number, p.face, "invoke", w.holding(p), ""})
}

func (s *simulation) again() { s.invoke(one(s, s.said[max(0, len(s.said)-12):]...)) }

// wait waits for a prompt to be answered; one at a time does, so that no two wake at once.
func (s *simulation) wait(w *errand, p seenPrompt) {
	for _, a := range s.actors {
		if a.x != nil && a.x.kind == "wait" {
			return
		}
	}
	s.invoke(said{w.number, p.face, "wait", w.holding(p), ""})
}

// steal sends a good token as somebody for whom it is not, or one that never was.
func (s *simulation) steal(w *errand, p seenPrompt) {
	c, face := w.holding(p), p.face
	words := one(s, "", s.words(p, 8))
	if words != "" {
		c.Answers = s.payloads(p, words)
	}
	switch s.rand.IntN(7) {
	case 0:
		c.Scope = "eve"
	case 1:
		c.Session = one(s, "s1", "s2", "s9")
	case 2:
		face = one(s, simFaces...)
	case 3:
		c.Arguments = json.RawMessage(`{"ends":"well","work":-1}`)
	case 4:
		c.StartID += "x"
	case 5:
		c.Tool = one(s, "never", "repeat")
	default:
		flipped := []byte(c.Token)
		flipped[s.rand.IntN(42)] ^= 1
		c.Token = gate.Token(flipped)
	}
	s.invoke(said{w.number, face, "invoke", c, words})
}

// invoke makes a call at any gate.
func (s *simulation) invoke(c said) {
	s.said = append(s.said, c)
	x := s.exchange(c)
	g := one(s, s.gates...)
	if s.chance(4) && c.call.Token == "" { // the same in other bytes
		c.call.Arguments = json.RawMessage(strings.ReplaceAll(string(c.call.Arguments), ":", " : "))
	}
	face := g.faces[c.face]
	s.act(g, x, func(ctx context.Context) (gate.Outcome, error) {
		if c.kind == "wait" {
			return face.Wait(ctx, c.call)
		}
		return face.Invoke(ctx, c.call)
	})
}

func (s *simulation) exchange(c said) *exchange {
	x := &exchange{
		kind: c.kind, work: c.work, join: c.call.Join, answers: c.answers, facilities: "all",
		binding: binding{c.call.Tool, string(c.call.Arguments), c.call.Scope, c.call.Session, c.face, c.call.StartID},
	}
	switch len(c.call.Facilities) {
	case 0:
		x.facilities = "none"
	case 1:
		x.facilities = "inbox"
	}
	if c.call.Token != "" {
		x.token = s.alias(c.call.Token)
	}
	return x
}

// elsewhere answers by another road than the caller's.
func (s *simulation) elsewhere(w *errand, p seenPrompt) {
	words := s.words(p, 8)
	a := gate.AnswerRequest{
		Interaction: p.Interaction, Round: p.Round, Scope: w.call.Scope, By: one(s, "ann at home", "bob at work"), Answers: s.payloads(p, words),
	}
	if s.chance(8) {
		a.Scope = "eve"
	}
	g, face := one(s, s.gates...), one(s, simFaces...)
	x := &exchange{
		kind: "answer", work: w.number, answers: words, facilities: "all", about: p.Interaction, round: p.Round, by: a.By,
		binding: binding{scope: a.Scope, face: face},
	}
	s.act(g, x, func(ctx context.Context) (gate.Outcome, error) { return gate.Outcome{}, g.faces[face].Answer(ctx, a) })
}

func (s *simulation) inspect(w *errand) {
	g := one(s, s.gates...)
	x := &exchange{
		kind: "inspect", work: w.number, facilities: "all", binding: binding{scope: w.call.Scope, start: w.call.StartID, face: w.face},
	}
	s.act(g, x, func(ctx context.Context) (gate.Outcome, error) {
		summary, err := g.faces[w.face].Inspect(ctx, w.call.Scope, w.call.StartID)
		return gate.Outcome{Interaction: summary.ID}, err
	})
}

// revoke takes back whatever is remembered for a scope.
func (s *simulation) revoke(w *errand) {
	g := one(s, s.gates...)
	x := &exchange{kind: "revoke", work: w.number, facilities: "all", binding: binding{scope: w.call.Scope, face: w.face}}
	s.act(g, x, func(ctx context.Context) (gate.Outcome, error) {
		page, err := g.faces[w.face].Decisions(ctx, gate.DecisionQuery{Scope: w.call.Scope})
		for _, d := range page.Decisions {
			if err = g.faces[w.face].Revoke(ctx, w.call.Scope, d.ID); err != nil {
				break
			}
		}
		return gate.Outcome{}, err
	})
}
