package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// The tools of a simulation: one for every choice that the rules give one, with rounds of one
// question and of several.

// A simInput is what a tool is called with.
type simInput struct {
	Ends string `json:"ends"` // how: well, fails, breaks with a panic, or asks in recovery
	Work int    `json:"work"`
}

var (
	selection  = func() interrupt.Interrupt { return choose("left", "right") }
	permission = func() interrupt.Interrupt { return interrupt.ToolPermission("act", "Act") }
	form       = func() interrupt.Interrupt {
		return interrupt.Form("How many?", []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`))
	}
)

// A simRound is what one prompt of a tool asks.
type simRound []func() interrupt.Interrupt

func (s *simulation) makeTools() (tools []*gate.Tool) {
	two := []simRound{{selection}, {permission, selection}}
	for name, tool := range map[string]struct {
		rounds []simRound
		opts   gate.ToolOptions
	}{
		"never":   {two, gate.ToolOptions{}},
		"kept":    {[]simRound{{permission}}, gate.ToolOptions{KeepOpen: true, KeepResult: true}},
		"repeat":  {two, gate.ToolOptions{Replay: gate.Repeatable, KeepResult: true}},
		"short":   {[]simRound{{form}, {selection}}, gate.ToolOptions{Replay: gate.Repeatable, Lifetime: 3 * time.Minute}},
		"recover": {two, gate.ToolOptions{Replay: gate.Recover, KeepResult: true}},
		"mend": {[]simRound{{form, permission}}, gate.ToolOptions{
			Replay: gate.Recover, Recover: s.handler([]simRound{{form, permission}}),
		}},
		"always": {[]simRound{{permission}, {selection}}, gate.ToolOptions{
			KeepResult: true, Remember: &gate.RememberOptions{AnyArguments: true, Lifetime: 20 * time.Minute},
		}},
		"steps": {two, gate.ToolOptions{Replay: gate.Repeatable}},
	} {
		tool.opts.Authorize = s.authorize
		s.history.tools[name] = tool.opts
		handler := s.handler(tool.rounds)
		if name == "steps" {
			handler = s.stepping(tool.rounds)
		}
		tools = append(tools, gate.NewRawTool(name, handler, &tool.opts))
	}
	return tools
}

var errForbidden = errors.New("the host forbids it")

func (s *simulation) authorize(ctx context.Context, _ gate.Execution) error {
	if a := actorOf(ctx); a != nil && a.stop("authorize") != goOn {
		return errForbidden
	}
	return nil
}

// handler asks every round, has its effect, and ends as its arguments say.
func (s *simulation) handler(rounds []simRound) gate.Handler { return s.handle(rounds, nil) }

// stepping is handler with a recorded step before every round; the first one can be done once only.
func (s *simulation) stepping(rounds []simRound) gate.Handler {
	return s.handle(rounds, func(ctx context.Context, round int) error {
		a, idempotent := actorOf(ctx), round > 0
		d := stepDone{exchange: a.number, key: fmt.Sprint("step ", round), idempotent: idempotent}
		result, err := interrupt.Once(ctx, d.key, func(context.Context, string) (string, error) {
			a.stop("step")
			d.result = fmt.Sprintf("of exchange %d", a.number)
			s.stepped(d)
			a.stop("step done")
			return d.result, nil
		}, &interrupt.OnceOptions[string]{Idempotent: idempotent})
		if err == nil {
			d.result, d.given = result, true
			s.stepped(d)
		}
		return err
	})
}

// stepped keeps a step.
func (s *simulation) stepped(d stepDone) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.at = s.history.next()
	s.history.steps = append(s.history.steps, d)
}

func (s *simulation) handle(rounds []simRound, before func(ctx context.Context, round int) error) gate.Handler {
	return func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		a := actorOf(ctx)
		var in simInput
		if err := json.Unmarshal(arguments, &in); err != nil {
			return nil, err
		}
		r := s.runs(ctx, a, string(arguments))
		a.stop("handler")
		for i, round := range rounds {
			if before != nil {
				if err := before(ctx, i); err != nil {
					s.ran(r, "step refused")
					return nil, err
				}
			}
			read, err := askRound(ctx, round)
			if read != "" {
				r.read = append(r.read, read)
			}
			if err != nil {
				s.ran(r, "asked or refused")
				return nil, err
			}
		}
		if in.Ends == "asks" && r.recovery {
			s.ran(r, "asks in recovery")
			return nil, interrupt.ToolPermission("more", "More")
		}
		a.stop("before the effect")
		s.effect(r)
		a.stop("after the effect")
		s.ran(r, in.Ends)
		switch in.Ends {
		case "fails":
			return nil, errPrivate
		case "breaks":
			panic(errPrivate)
		}
		return json.Marshal(strings.Join(r.read, ", "))
	}
}

// askRound asks a round and returns the words for what was answered; none, where it was asked.
func askRound(ctx context.Context, round simRound) (read string, err error) {
	var questions []interrupt.Interrupt
	for _, question := range round {
		questions = append(questions, question())
	}
	if len(questions) == 1 {
		questions[0], err = interrupt.Ask(ctx, questions[0])
	} else {
		questions, err = interrupt.AskAll(ctx, questions...)
	}
	if err != nil && interrupt.Classify(err).Kind == interrupt.KindPrompt {
		return "", err
	}
	resumed, _ := interrupt.ResumeFrom(ctx)
	var words []string
	for i, q := range questions {
		switch q := q.(type) {
		case *interrupt.UserSelectionInterrupt:
			if q.ConfirmedChoice != nil {
				words = append(words, q.ConfirmedChoice.Title)
				continue
			}
		case *interrupt.ToolPermissionInterrupt:
			if word, ok := optionWords[q.SelectedKind]; ok && q.Action == interrupt.ActionAccept {
				words = append(words, word)
				continue
			}
		case *interrupt.FormInterrupt:
			if err == nil {
				words = append(words, "fill")
				continue
			}
		}
		// A no: which one is in the answer itself, which is that of the latest round.
		words = append(words, wordFor(resumed.Answers[i]))
	}
	return strings.Join(words, "+"), err
}

// wordFor is the word for a recorded answer.
func wordFor(a interrupt.Answered) string {
	var payload struct {
		Action, OptionID string
		SelectionIdx     *int
		Content          json.RawMessage
	}
	if err := json.Unmarshal(a.Payload, &payload); err != nil {
		return err.Error()
	}
	switch {
	case payload.Action != "accept":
		return payload.Action
	case payload.SelectionIdx != nil:
		return []string{"left", "right"}[*payload.SelectionIdx]
	case payload.Content != nil:
		return "fill"
	}
	return optionWords[payload.OptionID]
}

// optionWords are the words for the options of a permission.
var optionWords = map[string]string{
	"allow_once": "allow", "reject_once": "reject", "allow_always": "always", "reject_always": "reject always",
}

// runs, effect and ran keep what a handler does.
func (s *simulation) runs(ctx context.Context, a *actor, arguments string) *handlerRun {
	r := &handlerRun{exchange: a.number, arguments: arguments}
	resumed, _ := interrupt.ResumeFrom(ctx)
	r.round, r.attempt, r.recovery = resumed.Round, resumed.Attempt, resumed.Recovery
	if len(resumed.Answers) > 0 {
		id, _, _ := strings.Cut(resumed.Answers[0].InterruptID, ".")
		if err := r.interaction.UnmarshalText([]byte(id)); err != nil {
			s.Errorf("question id: %v", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.begin = s.history.next()
	s.history.runs = append(s.history.runs, r)
	return r
}

func (s *simulation) effect(r *handlerRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.effect = s.history.next()
}

func (s *simulation) ran(r *handlerRun, ending string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.end, r.ending = s.history.next(), ending
}

// payload writes the answer of a word to a question.
func payload(q gate.Question, word string, named bool) (json.RawMessage, bool) {
	id := ""
	if named {
		id = fmt.Sprintf(`"interruptId":%q,`, q.ID)
	}
	switch word {
	case "left":
		return fmt.Appendf(nil, `{%s"selectionIdx":0}`, id), true
	case "right":
		return fmt.Appendf(nil, `{"selectionIdx": 1, %s"action":"accept"}`, id), true
	case "allow", "reject":
		return fmt.Appendf(nil, `{%s"optionId":"%s_once"}`, id, word), true
	case "always", "reject always":
		return fmt.Appendf(nil, `{%s"optionId":%q}`, id, map[string]string{"always": "allow_always", "reject always": "reject_always"}[word]), true
	case "fill":
		return fmt.Appendf(nil, `{%s"content":{"n":1}}`, id), true
	case "decline", "cancel":
		return fmt.Appendf(nil, `{%s"action":%q}`, id, word), true
	case "bad value":
		return json.RawMessage(`{"selectionIdx":7,"optionId":"none","content":{"n":"1"}}`), true
	case "bad id":
		return json.RawMessage(`{"interruptId":"another","action":"decline"}`), true
	}
	return nil, false // a bad answer that is missing
}
