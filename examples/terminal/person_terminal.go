package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/parley-go/parley/gate"
)

// A terminal is a person at one. What they have to know is printed as plain text, which stays on
// the screen; huh asks only for the answer.
type terminal struct {
	in         io.Reader
	out        io.Writer
	accessible bool
	asked      bool // a question, in this process
}

func newTerminal(in io.Reader, out io.Writer, accessible bool) *terminal {
	return &terminal{in: in, out: out, accessible: accessible}
}

func (t *terminal) answer(ctx context.Context, p *gate.Prompt) (gate.Answers, error) {
	if !t.asked && p.Round > 1 {
		fmt.Fprintf(t.out, "\nGoing on where it stopped: what was answered before question %d is kept.\n", p.Round)
	}
	t.asked = true
	answers := gate.Answers{}
	for _, q := range p.Questions {
		t.card(p)
		question, err := q.Interrupt()
		if err != nil {
			return nil, err
		}
		payload, err := t.ask(ctx, q.ID, question)
		if err != nil {
			return nil, err
		}
		answers[q.ID] = payload
	}
	return answers, nil
}

// card shows what every question has in common: which tool asks, for what, and until when.
func (t *terminal) card(p *gate.Prompt) {
	fmt.Fprintf(t.out, "\n── %s · question %d ──\n", printable(cmp.Or(p.Title, p.Tool)), p.Round)
	t.arguments(p.Arguments)
	until := ""
	if !p.Expires.IsZero() {
		until = " until " + p.Expires.Local().Format("Mon 15:04")
	}
	fmt.Fprintf(t.out, "Ctrl-C leaves the question open%s.\n\n", until)
}

// arguments prints the members of a JSON object, a line each, in the order of their names.
func (t *terminal) arguments(arguments json.RawMessage) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &members); err != nil {
		fmt.Fprintln(t.out, printable(string(arguments)))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		fmt.Fprintf(t.out, "   %s: %s\n", printable(name), printable(string(members[name])))
	}
}

func (t *terminal) refused(e *gate.Error) error {
	_, err := fmt.Fprintf(t.out, "That answer does not fit: %s\n", printable(e.Message))
	return err
}

func (t *terminal) ended(result json.RawMessage, e *gate.Error) error {
	if e == nil {
		var r report
		if err := json.Unmarshal(result, &r); err != nil {
			return fmt.Errorf("read result: %w", err)
		}
		_, err := fmt.Fprintf(t.out, "\n%s %s is released (%s). The report is release-%s-%s.json.\n",
			r.Service, r.Version, r.Rollout, r.Service, r.Version)
		return err
	}
	words := map[gate.Code]string{
		gate.ErrRejected:  "You rejected it. Nothing was released.",
		gate.ErrDeclined:  "You declined to answer. Nothing was released.",
		gate.ErrCancelled: "You cancelled it. Nothing was released.",
		gate.ErrExpired:   "The time to answer is over. Nothing was released.",
	}
	text, ok := words[e.Code]
	if before, known := words[e.Ended]; known {
		text, ok = "This release came to its end before. "+before, true
	}
	if !ok {
		text = fmt.Sprintf("It came to no good end (%s): %s.", e.Code, printable(e.Message))
	}
	_, err := fmt.Fprintf(t.out, "\n%s\n", text)
	return err
}
