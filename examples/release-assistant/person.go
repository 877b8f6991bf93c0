package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/interrupt"
)

var (
	errInterrupted = errors.New("interrupted")
	errNobody      = errors.New("the input ended") // nobody is answered for
)

// A person reads what happens and answers line by line.
type person struct {
	lines   chan string // closed where the input ends
	out     io.Writer
	talking bool // the model is in the middle of a line
}

// newPerson reads until the input ends or ctx does. A reader that blocks is left behind.
func newPerson(ctx context.Context, in io.Reader, out io.Writer) *person {
	p := &person{lines: make(chan string), out: out}
	go func() {
		defer close(p.lines)
		for scan := bufio.NewScanner(in); scan.Scan(); {
			select {
			case p.lines <- scan.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return p
}

// show puts on the screen what happens, and returns where the run stands then.
func (p *person) show(events *agent.Events) (*agent.Run, error) {
	defer p.endLine()
	var run *agent.Run
	for event, err := range events.All() {
		if err != nil {
			return run, err
		}
		switch e := event.(type) {
		case agent.ModelText:
			p.talking = true
			fmt.Fprint(p.out, printable(e.Text))
		case agent.ToolStarted:
			p.say("  %s %s", e.Tool, e.Arguments)
		case agent.ToolProgress:
			if e.Update.Total != nil {
				p.say("  %s: step %v of %v", e.Tool, e.Update.Completed, *e.Update.Total)
			}
		case agent.ToolEnded:
			p.say("  %s: %s", e.Tool, e.Result)
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

func (p *person) endLine() {
	if p.talking {
		fmt.Fprintln(p.out)
	}
	p.talking = false
}

func (p *person) say(format string, args ...any) {
	p.endLine()
	fmt.Fprintln(p.out, printable(fmt.Sprintf(format, args...)))
}

// answer puts a question to the person until it is answered, and returns the option.
func (p *person) answer(ctx context.Context, q agent.Question, open int) (string, error) {
	asked, err := q.Prompt.Questions[0].Interrupt()
	if err != nil {
		return "", err
	}
	title := q.Tool
	if permission, ok := asked.(*interrupt.ToolPermissionInterrupt); ok {
		title = permission.Title
	}
	for {
		fmt.Fprint(p.out, printable(fmt.Sprintf("%s, with %s? (%d open) [y/n] ", title, q.Prompt.Arguments, open)))
		select {
		case line, ok := <-p.lines:
			switch strings.ToLower(strings.TrimSpace(line)) {
			case "y", "yes":
				return interrupt.PermissionAllowOnce, nil
			case "n", "no":
				return interrupt.PermissionRejectOnce, nil
			}
			if !ok {
				fmt.Fprintln(p.out)
				return "", errNobody
			}
		case <-ctx.Done():
			return "", errInterrupted
		}
	}
}

// printable takes from a text what could lead a terminal: a model wrote it, or a tool.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
