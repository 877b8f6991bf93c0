package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

type commandInput struct {
	Command string `json:"command" jsonschema:"a command for the shell"`
}

// command runs a command where the person allows it. "Always" is for exactly this command.
func (w workspace) command() *gate.Tool {
	return gate.NewTool("run_command", func(ctx context.Context, in commandInput) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("run_command", "Run "+in.Command)); err != nil {
			return "", err
		}
		// Where the process dies here, nobody knows whether the command ran: the step says so, and
		// does not run it again.
		return interrupt.Once(ctx, "run", func(ctx context.Context, _ string) (string, error) {
			cmd := exec.CommandContext(ctx, "sh", "-c", in.Command)
			cmd.Dir = w.root
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return "", err
			}
			return fmt.Sprintf("%s(exit code %d)", clip(string(out)), cmd.ProcessState.ExitCode()), nil
		}, nil)
	}, &gate.ToolOptions{
		Title: "Run a command", Description: "Runs a command in the directory of the work.", Remember: &gate.RememberOptions{},
	})
}

// clip bounds what a model gets to read.
func clip(s string) string {
	const most = 16 << 10
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "\n…\n"
	}
	return s
}

type branchInput struct {
	Branches []string `json:"branches" jsonschema:"names of branches, two or more"`
}

// branch asks which branch to work on.
func branch() *gate.Tool {
	return gate.NewTool("pick_branch", func(ctx context.Context, in branchInput) (string, error) {
		var choices []interrupt.UserChoice
		for i, name := range in.Branches {
			choices = append(choices, interrupt.UserChoice{Title: name, IsRecommended: i == 0})
		}
		picked, err := interrupt.Ask(ctx, interrupt.UserSelection(choices...))
		if err != nil {
			return "", err
		}
		return picked.ConfirmedChoice.Title, nil
	}, &gate.ToolOptions{Title: "Pick a branch", Description: "Asks the person which branch to work on."})
}

// A message is what is asked for in the form of a commit.
type message struct {
	Subject string `json:"subject" description:"one line"`
	Body    string `json:"body,omitempty"`
	SignOff bool   `json:"signOff" description:"add Signed-off-by"`
}

type commitInput struct {
	Files []string `json:"files"`
}

// commit asks for the message of a commit. (It does not make one: the example has no repository.)
func commit() *gate.Tool {
	return gate.NewTool("commit", func(ctx context.Context, in commitInput) (string, error) {
		form, err := interrupt.Ask(ctx, interrupt.FormFor[message]("Commit "+strings.Join(in.Files, ", ")))
		if err != nil {
			return "", err
		}
		m, err := form.Value()
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(m)
		return "would commit with " + string(text), err
	}, &gate.ToolOptions{Title: "Commit", Description: "Asks the person for the message of a commit."})
}

// signIn sends the person to a page. Whether they signed in there stands in the page's own records.
func signIn() *gate.Tool {
	return gate.NewTool("sign_in", func(ctx context.Context, _ struct{}) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.URL("Sign in to the tracker of issues", "https://example.com/sign-in")); err != nil {
			return "", err
		}
		return "the person went to the page", nil
	}, &gate.ToolOptions{Title: "Sign in", Description: "Sends the person to the page where they sign in."})
}
