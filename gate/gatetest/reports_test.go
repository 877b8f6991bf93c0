package gatetest_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/gate/gatetest"
	"github.com/parley-go/parley/interrupt"
)

type none struct{}

// tool makes a tool without arguments anew for each process.
func tool(handle func(ctx context.Context) (string, error), opts *gate.ToolOptions) func() *gate.Tool {
	return func() *gate.Tool {
		return gate.NewTool("work", func(ctx context.Context, _ none) (string, error) { return handle(ctx) }, opts)
	}
}

// permit asks for a permission with that title.
func permit(ctx context.Context, title string) error {
	_, err := interrupt.Ask(ctx, interrupt.ToolPermission("work", title))
	return err
}

func form(message string) *interrupt.FormInterrupt {
	return interrupt.Form(message, json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`))
}

func script(code gate.Code, answers ...gatetest.Answer) gatetest.Script {
	return gatetest.Script{Arguments: `{}`, Code: code, Answers: answers}
}

const advice = "; a question that is not the same in every run is not found again when it is answered: " +
	"give it a Key, or leave out what changes"

// R2: the double run names the question that changes between runs, and what in it does.
func TestDoubleRunReports(t *testing.T) {
	var clock gatetest.Clock
	n := 0 // the world
	count := func() int { n++; return n }
	for _, tt := range []struct {
		name   string
		handle func(ctx context.Context) (string, error)
		want   string // with # where the text is another one each time
	}{
		{"a time", func(ctx context.Context) (string, error) {
			return "", permit(ctx, "Deploy at "+clock.Now().Format("15:04"))
		}, `round 1: question 1 (tool_permission) is not the same in every run: ` +
			`/title is "Deploy at 00:00" in one and "Deploy at 01:01" in another`},
		{"a random id", func(ctx context.Context) (string, error) {
			return "", permit(ctx, "Deploy "+rand.Text())
		}, `round 1: question 1 (tool_permission) is not the same in every run: /title is #`},
		{"a counter", func(ctx context.Context) (string, error) {
			if err := permit(ctx, "Plan"); err != nil {
				return "", err
			}
			_, err := interrupt.Ask(ctx, form(fmt.Sprint("Attempt ", count())))
			return "", err
		}, `round 2: question 1 (form) is not the same in every run: /message is "Attempt 1" in one and "Attempt 2" in another`},
		{"a number of options", func(ctx context.Context) (string, error) {
			choices := make([]interrupt.UserChoice, 1+count())
			for i := range choices {
				choices[i].Title = fmt.Sprint(i)
			}
			_, err := interrupt.Ask(ctx, interrupt.UserSelection(choices...))
			return "", err
		}, `round 1: question 1 (user_selection) is not the same in every run: ` +
			`/options/2 is absent in one and {"title":"2","description":"","isRecommended":false} in another`},
		{"an option that is not shown", func(ctx context.Context) (string, error) {
			options := interrupt.DefaultPermissionOptions()
			_, err := interrupt.Ask(ctx, interrupt.ToolPermission("work", "Work", options[:2+count()]...))
			return "", err
		}, `round 1: question 1 (tool_permission) is not the same in every run: ` + `#`},
		{"a type", func(ctx context.Context) (string, error) {
			if count() > 1 {
				return "", permit(ctx, "Work")
			}
			_, err := interrupt.Ask(ctx, form("Work"))
			return "", err
		}, `round 1: question 1 (form) is not the same in every run: its type is form in one and tool_permission in another`},
		{"a key", func(ctx context.Context) (string, error) {
			question := form("Work")
			question.Key = fmt.Sprint("work ", count())
			_, err := interrupt.Ask(ctx, question)
			return "", err
		}, `round 1: question 1 (form) is not the same in every run: its key is "work 1" in one and "work 2" in another`},
		{"an order", func(ctx context.Context) (string, error) {
			var questions []interrupt.Interrupt
			for name := range map[string]bool{"a": true, "b": true, "c": true, "d": true, "e": true, "f": true, "g": true} {
				questions = append(questions, form(name))
			}
			_, err := interrupt.AskAll(ctx, questions...)
			return "", err
		}, `round 1: its questions change their order: question #`},
		{"a number of questions", func(ctx context.Context) (string, error) {
			var questions []interrupt.Interrupt
			for i := range count() {
				questions = append(questions, form(fmt.Sprint(i)))
			}
			_, err := interrupt.AskAll(ctx, questions...)
			return "", err
		}, `round 1: the number of its questions is 1 in one run and 2 in another`},
		{"a question that is not asked", func(ctx context.Context) (string, error) {
			if count() > 1 {
				return "done", nil
			}
			return "", permit(ctx, "Work")
		}, `round 1: one run asks tool_permission #`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock, n = gatetest.Clock{}, 0
			s := script("", gatetest.Allow(), gatetest.Fill(`{"n":1}`))
			s.Clock = &clock
			reports := record(t, tool(tt.handle, nil), s)
			want, _, open := strings.Cut("gatetest: the double run: "+tt.want, "#")
			if !open && !strings.Contains(tt.want, "ends with") {
				want += advice
			}
			if len(reports) != 1 || !strings.HasPrefix(reports[0], want) || (!open && reports[0] != want) {
				t.Errorf("want\n%s\nhave\n%s", want, strings.Join(reports, "\n"))
			}
		})
	}
}

// R16: an invalid answer does not end the double run.
func TestDoubleRunGoesOnAfterInvalidAnswer(t *testing.T) {
	reports := record(t, tool(func(ctx context.Context) (string, error) {
		if err := permit(ctx, "Work"); err != nil {
			return "", err
		}
		_, err := interrupt.Ask(ctx, form(rand.Text()))
		return "", err
	}, nil), script("", gatetest.Invalid(`{}`), gatetest.Allow(), gatetest.Fill(`{}`)))
	want := "gatetest: the double run: round 2: question 1 (form) is not the same in every run"
	if len(reports) != 1 || !strings.HasPrefix(reports[0], want) {
		t.Errorf("want %s, have %q", want, reports)
	}
}

// A question with a key may change its text from run to run.
func TestKeyedQuestionMayChange(t *testing.T) {
	gatetest.Run(t, tool(func(ctx context.Context) (string, error) {
		question := interrupt.ToolPermission("work", rand.Text())
		question.Key = "work"
		_, err := interrupt.Ask(ctx, question)
		return "done", err
	}, nil), script("", gatetest.Allow()))
}

// What does not go as the script says is reported once, for the story as it is.
func TestStoryReports(t *testing.T) {
	one := func(ctx context.Context) (string, error) { return "done", permit(ctx, "Work") }
	for _, tt := range []struct {
		name   string
		handle func(ctx context.Context) (string, error)
		script gatetest.Script
		want   string
	}{
		{"no answer", one, script(""),
			`round 1, question 1 (tool_permission): the script has no answer for {"toolName":"work","title":"Work",#`},
		{"answers left", one, script("", gatetest.Allow(), gatetest.Allow()),
			`it ends after round 1 with result "done"; answers of the script left over: 1`},
		{"an answer for another question", one, script("", gatetest.Choose(1)),
			`round 1, question 1 (tool_permission): answer 1 of the script, Choose(1), is not for {"toolName":"work","title":"Work",#`},
		{"an answer that does not fit", func(ctx context.Context) (string, error) {
			_, err := interrupt.Ask(ctx, form("How many"))
			return "done", err
		}, script("", gatetest.Fill(`{"n":"many"}`)), `round 1: an answer does not fit: invalid_answer: #`},
		{"an answer that fits", one, script("", gatetest.Invalid(`{"optionId":"allow_once"}`)),
			"answer 1 of the script, Invalid(`{\"optionId\":\"allow_once\"}`), is to be refused, and brought result \"done\""},
		{"a result", one, gatetest.Script{Arguments: `{}`, Answers: []gatetest.Answer{gatetest.Allow()}, Result: `"shipped"`},
			`it ends with result "done"; the script wants "shipped"`},
		{"a code for a result", one, script("", gatetest.Reject()),
			`it ends with rejected: the person rejected it; the script wants a result`},
		{"a result for a code", one, script(gate.ErrRejected, gatetest.Allow()),
			`it ends with result "done"; the script wants rejected`},
		{"a private cause", func(context.Context) (string, error) { return "", errors.New("no route") }, script(""),
			`it ends with failed: the tool failed (cause: no route); the script wants a result`},
		{"a panic", func(context.Context) (string, error) { panic("out of paper") }, script(""),
			"it ends with failed: the tool failed (cause: panic: out of paper)\ngoroutine #"},
		{"a swallowed question", func(ctx context.Context) (string, error) {
			_ = permit(ctx, "Work")
			return "done", nil
		}, script("", gatetest.Allow()),
			`it ends with invalid_question: the tool asked a question and then returned a result; the script wants a result`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reports := record(t, tool(tt.handle, nil), tt.script)
			want, _, open := strings.Cut("gatetest: the story as it is: "+tt.want, "#")
			if len(reports) != 1 || !strings.HasPrefix(reports[0], want) || (!open && reports[0] != want) {
				t.Errorf("want\n%s\nhave\n%s", want, strings.Join(reports, "\n"))
			}
		})
	}
}

// What goes well as it is and not in another way is reported with that way (R26, R27).
func TestWayReports(t *testing.T) {
	shipped := 0
	ship := func(ctx context.Context) (string, error) {
		if err := permit(ctx, "Ship"); err != nil {
			return "", err
		}
		shipped++
		return "shipped", nil
	}
	once := func(*gatetest.Story) error {
		if shipped > 1 {
			return fmt.Errorf("shipped %d times", shipped)
		}
		return nil
	}
	recovering := func(recover gate.Handler) *gate.ToolOptions {
		return &gate.ToolOptions{Replay: gate.Recover, Recover: recover}
	}
	const (
		callLost   = "a crash right after the call was recorded"
		promptLost = "a crash right before the prompt of round 1 was recorded, when the handler had returned"
		answerLost = "a crash right after the answer of round 1 was recorded"
		endLost    = "a crash right before the end was recorded, when the handler had returned"
		endNoted   = "a crash right after the end was recorded"
	)
	processes := 0
	for _, tt := range []struct {
		name    string
		newTool func() *gate.Tool
		script  gatetest.Script
		want    []string
	}{
		{"an effect before the first question", tool(func(ctx context.Context) (string, error) {
			shipped++
			return "shipped", permit(ctx, "Keep it?")
		}, nil), script("", gatetest.Allow()),
			// It is seen in the story as it is, which ends the test.
			[]string{"the story as it is: after the story: shipped 2 times"}},
		{"an effect that is not safe to repeat", tool(ship, &gate.ToolOptions{Replay: gate.Repeatable}),
			script("", gatetest.Allow()),
			[]string{endLost + ": after the story: shipped 2 times"}},
		{"memory of the process", func() *gate.Tool {
			plan := "" // of this process
			return tool(func(ctx context.Context) (string, error) {
				if _, ok := interrupt.ResumeFrom(ctx); !ok {
					plan = "plan"
				}
				if err := permit(ctx, "Work"); err != nil {
					return "", err
				}
				return plan, nil
			}, nil)()
		}, gatetest.Script{Arguments: `{}`, Answers: []gatetest.Answer{gatetest.Allow()}, Result: `"plan"`},
			[]string{"a restart before every answer; a crash right after the prompt of round 1 was recorded; " +
				`a crash right before the answer of round 1 was recorded: it ends with result ""; the script wants "plan"`}},
		{"a recovery that asks", tool(ship, recovering(nil)), script("", gatetest.Allow()),
			[]string{"every request sent twice; " + endLost + "; " + endNoted + ": after the story: shipped 2 times",
				callLost + "; " + promptLost + ": in recovery the tool asks; there it may only finish what was begun, or fail (R27)"}},
		{"a recovery that does not look at the answer", tool(ship,
			recovering(func(context.Context, json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(`"shipped"`), nil
			})),
			script(gate.ErrRejected, gatetest.Reject()),
			[]string{callLost + "; " + promptLost + `: recovery ends with result "shipped" before the person has answered everything: ` +
				"it has to look at what it resumes with, and to fail where nothing was begun",
				answerLost + "; " + endLost + `: recovery ends with result "shipped", though the person's answer was rejected: ` +
					"it has to look at what it resumes with"}},
		{"a recovery that mixes", tool(ship, recovering(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			if resume, ok := interrupt.ResumeFrom(ctx); ok && resume.Round == 0 {
				return nil, errors.New("nothing was begun")
			}
			return nil, errors.Join(interrupt.ToolPermission("work", "Again?"), errors.New("no route"))
		})), script("", gatetest.Allow()),
			[]string{"every request sent twice; " + answerLost + "; " + endLost + "; " + endNoted +
				": in recovery the tool ends with invalid_question: the tool raised a question and something else at once " +
				"(cause: beside the question: no route)"}},
		{"a recovery with another result", tool(ship, recovering(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			if resume, ok := interrupt.ResumeFrom(ctx); ok && resume.Round == 0 {
				return nil, errors.New("nothing was begun")
			}
			return json.RawMessage(`"who knows"`), nil
		})), gatetest.Script{Arguments: `{}`, Answers: []gatetest.Answer{gatetest.Allow()}, Result: `"shipped"`},
			[]string{"every request sent twice; " + answerLost + "; " + endLost + "; " + endNoted +
				`: it ends with result "who knows"; the script wants "shipped"`}},
		{"questions that a restart changes", func() *gate.Tool {
			processes++
			title := fmt.Sprint("Process ", processes)
			return tool(func(ctx context.Context) (string, error) { return "done", permit(ctx, title) }, nil)()
		}, script("", gatetest.Allow()),
			// Process 1 is that of the double run.
			[]string{`a restart before every answer: round 1: question 1 (tool_permission) is not the same in every run: ` +
				`/title is "Process 2" in one and "Process 3" in another` + advice}},
		{"a question of the second process only", func() *gate.Tool {
			known := false // to this process
			return tool(func(ctx context.Context) (string, error) {
				if _, ok := interrupt.ResumeFrom(ctx); !ok {
					known = true
				}
				if err := permit(ctx, "Work"); err != nil || known {
					return "done", err
				}
				_, err := interrupt.Ask(ctx, interrupt.URL("Sign in", "https://example.com/"))
				return "done", err
			}, nil)()
		}, script("", gatetest.Allow()),
			[]string{"a restart before every answer; a crash right after the prompt of round 1 was recorded; " +
				"a crash right before the answer of round 1 was recorded: " +
				`round 2 asks url {"message":"Sign in","url":"https://example.com/"}; the story as it is ended before that`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.script.Before = func() { shipped = 0 }
			tt.script.After = once
			reports := record(t, tt.newTool, tt.script)
			for i := range tt.want {
				tt.want[i] = "gatetest: " + tt.want[i]
			}
			if diff := cmp.Diff(tt.want, reports); diff != "" {
				t.Errorf("reports (-want +have):\n%s", diff)
			}
		})
	}
}

// A script that is none is reported before anything runs.
func TestScriptReports(t *testing.T) {
	fine := tool(func(context.Context) (string, error) { return "done", nil }, nil)
	for _, tt := range []struct {
		name    string
		newTool func() *gate.Tool
		script  gatetest.Script
	}{
		{"no tool", nil, script("")},
		{"a nil tool", func() *gate.Tool { return nil }, script("")},
		{"a tool without a handler", func() *gate.Tool { return gate.NewRawTool("work", nil, nil) }, script("")},
		{"no arguments", fine, gatetest.Script{}},
		{"a result that is not JSON", fine, gatetest.Script{Arguments: `{}`, Result: "done"}},
		{"two ends", fine, gatetest.Script{Arguments: `{}`, Result: `"done"`, Code: gate.ErrRejected}},
		{"an empty answer", fine, script("", gatetest.Answer{})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if reports := record(t, tt.newTool, tt.script); len(reports) != 1 {
				t.Errorf("want one report, have %q", reports)
			}
		})
	}
}
