package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A server asks with forms and URLs only.
var canAsk = []interrupt.Facility{interrupt.FacilityForm, interrupt.FacilityURL}

// converse runs the agent, and puts what is asked to the person, until it ends.
func converse(ctx context.Context, a *agent.Agent, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	run, err := show(a.Start(ctx, agent.Start{
		Scope: "me", Facilities: canAsk, Messages: []*schema.Message{schema.UserMessage("Please.")},
	}), out)
	for err == nil && run.Status == agent.Waiting && len(run.Questions) > 0 {
		var answers []agent.Answer
		for _, q := range run.Questions {
			given := gate.Answers{}
			for _, one := range q.Prompt.Questions {
				if given[one.ID], err = ask(one, lines, out); err != nil {
					return err
				}
			}
			answers = append(answers, agent.Answer{Interaction: q.Interaction, Token: q.Prompt.Token, Answers: given})
		}
		resumed, refused := show(a.Resume(ctx, agent.Resume{Scope: "me", Facilities: canAsk, Run: run.ID, Answers: answers}), out)
		if errors.Is(refused, gate.ErrInvalidAnswer) { // the questions are open still
			fmt.Fprintln(out, printable(refused.Error()))
			continue
		}
		run, err = resumed, refused
	}
	switch {
	case err != nil:
		return err
	case len(run.Problems) > 0:
		return run.Problems[0].Err
	case run.Status == agent.Failed:
		return errors.New("the run failed: " + run.Message)
	}
	return nil
}

// show prints how tools end, and returns where the run stands then.
func show(events *agent.Events, out io.Writer) (run *agent.Run, err error) {
	for event, err := range events.All() {
		if err != nil {
			return nil, err
		}
		switch e := event.(type) {
		case agent.ToolEnded:
			fmt.Fprintf(out, "%s: %s\n", e.Tool, printable(e.Result))
		case agent.RunWaiting:
			run = e.Run
		case agent.RunFinished:
			run = e.Run
		case agent.RunFailed:
			run = e.Run
		}
	}
	return run, nil
}

// printable is the text without what could do something to the terminal: it is a server's.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, text)
}

// ask shows a question and reads the answer: the fields of a form as JSON, an empty line for a
// page that may be opened, or a no.
func ask(q gate.Question, lines *bufio.Scanner, out io.Writer) (json.RawMessage, error) {
	asked, err := q.Interrupt()
	if err != nil {
		return nil, err
	}
	switch asked := asked.(type) {
	case *interrupt.FormInterrupt:
		fmt.Fprintf(out, "\n%s\n%s\nAnswer as JSON, or no: ", printable(asked.Message), printable(string(asked.Schema)))
	case *interrupt.URLInterrupt:
		fmt.Fprintf(out, "\n%s\n%s\nOpen it and press enter, or no: ", printable(asked.Message), printable(asked.URL))
	}
	if !lines.Scan() {
		return nil, errors.New("there is nobody to answer")
	}
	switch text := strings.TrimSpace(lines.Text()); text {
	case "no":
		return json.RawMessage(`{"action":"decline"}`), nil
	case "":
		return json.RawMessage(`{}`), nil
	default:
		return json.RawMessage(`{"content":` + text + `}`), nil
	}
}
