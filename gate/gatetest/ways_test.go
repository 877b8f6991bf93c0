package gatetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/gate/gatetest"
	"github.com/parley-go/parley/interrupt"
)

// A line is a story as the tests here compare it.
func line(s *gatetest.Story) string {
	end := "result " + string(s.Result)
	var e *gate.Error
	if errors.As(s.Err, &e) {
		end = string(e.Code)
	}
	return fmt.Sprintf("%s | asked %d | runs %d, recoveries %d | %s", s.Way, len(s.Asked), s.Runs, s.Recoveries, end)
}

// play runs a script that nothing is wrong with, and returns its stories.
func play(t *testing.T, newTool func() *gate.Tool, script gatetest.Script) string {
	t.Helper()
	var lines []string
	script.After = func(s *gatetest.Story) error {
		lines = append(lines, line(s))
		return nil
	}
	story := gatetest.Run(t, newTool, script)
	if line(story) != lines[0] {
		t.Errorf("Run returns %s, After saw %s", line(story), lines[0])
	}
	return strings.Join(lines, "\n") + "\n"
}

// R26, R27: a tool's choice shows in the ways that a crash leaves open.
func TestChoices(t *testing.T) {
	work := func(ctx context.Context) (string, error) { return "done", permit(ctx, "Work") }
	// What a good recovery does: it looks whether the work was allowed, then finds it or does it.
	recovers := func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		if err := permit(ctx, "Work"); errors.As(err, new(interrupt.Interrupt)) {
			return nil, errors.New("nothing was begun")
		} else if err != nil {
			return nil, err
		}
		return json.RawMessage(`"done"`), nil
	}
	for _, tt := range []struct {
		name string
		opts gate.ToolOptions
		want string
	}{
		{"never again", gate.ToolOptions{}, `
the story as it is | asked 1 | runs 2, recoveries 0 | result "done"
a restart before every answer | asked 1 | runs 2, recoveries 0 | result "done"
every request sent twice | asked 1 | runs 2, recoveries 0 | result "done"
an invalid answer before every answer | asked 1 | runs 2, recoveries 0 | result "done"
a crash right before the call was recorded | asked 1 | runs 2, recoveries 0 | result "done"
a crash right after the call was recorded | asked 0 | runs 0, recoveries 0 | outcome_unknown
a crash right before the prompt of round 1 was recorded, when the handler had returned | asked 0 | runs 1, recoveries 0 | outcome_unknown
a crash right after the prompt of round 1 was recorded | asked 1 | runs 2, recoveries 0 | result "done"
a crash right before the answer of round 1 was recorded | asked 1 | runs 2, recoveries 0 | result "done"
a crash right after the answer of round 1 was recorded | asked 1 | runs 1, recoveries 0 | outcome_unknown
a crash right before the end was recorded, when the handler had returned | asked 1 | runs 2, recoveries 0 | outcome_unknown
a crash right after the end was recorded | asked 1 | runs 2, recoveries 0 | already_completed
`},
		{"recover", gate.ToolOptions{Replay: gate.Recover, Recover: recovers}, `
the story as it is | asked 1 | runs 2, recoveries 0 | result "done"
a restart before every answer | asked 1 | runs 2, recoveries 0 | result "done"
every request sent twice | asked 1 | runs 2, recoveries 1 | result "done"
an invalid answer before every answer | asked 1 | runs 2, recoveries 0 | result "done"
a crash right before the call was recorded | asked 1 | runs 2, recoveries 0 | result "done"
a crash right after the call was recorded | asked 0 | runs 0, recoveries 1 | failed
a crash right before the prompt of round 1 was recorded, when the handler had returned | asked 0 | runs 1, recoveries 1 | failed
a crash right after the prompt of round 1 was recorded | asked 1 | runs 2, recoveries 0 | result "done"
a crash right before the answer of round 1 was recorded | asked 1 | runs 2, recoveries 0 | result "done"
a crash right after the answer of round 1 was recorded | asked 1 | runs 1, recoveries 1 | result "done"
a crash right before the end was recorded, when the handler had returned | asked 1 | runs 2, recoveries 1 | result "done"
a crash right after the end was recorded | asked 1 | runs 2, recoveries 1 | result "done"
`},
		{"repeatable, result kept", gate.ToolOptions{Replay: gate.Repeatable, KeepResult: true}, `
the story as it is | asked 1 | runs 2, recoveries 0 | result "done"
a restart before every answer | asked 1 | runs 2, recoveries 0 | result "done"
every request sent twice | asked 1 | runs 2, recoveries 0 | result "done"
an invalid answer before every answer | asked 1 | runs 2, recoveries 0 | result "done"
a crash right before the call was recorded | asked 1 | runs 2, recoveries 0 | result "done"
a crash right after the call was recorded | asked 1 | runs 2, recoveries 0 | result "done"
a crash right before the prompt of round 1 was recorded, when the handler had returned | asked 1 | runs 3, recoveries 0 | result "done"
a crash right after the prompt of round 1 was recorded | asked 1 | runs 2, recoveries 0 | result "done"
a crash right before the answer of round 1 was recorded | asked 1 | runs 2, recoveries 0 | result "done"
a crash right after the answer of round 1 was recorded | asked 1 | runs 2, recoveries 0 | result "done"
a crash right before the end was recorded, when the handler had returned | asked 1 | runs 3, recoveries 0 | result "done"
a crash right after the end was recorded | asked 1 | runs 2, recoveries 0 | result "done"
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := script("", gatetest.Allow())
			s.Result = `"done"`
			have := play(t, tool(work, &tt.opts), s)
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), have); diff != "" {
				t.Errorf("stories (-want +have):\n%s", diff)
			}
		})
	}
}

// The kit counts runs by what the gate records; the handler knows them itself (R23).
func TestRunsAreThoseOfTheHandler(t *testing.T) {
	runs := 0
	s := script("", gatetest.Allow(), gatetest.Fill(`{"n":1}`))
	s.Before = func() { runs = 0 }
	s.After = func(s *gatetest.Story) error {
		if s.Runs != runs {
			return fmt.Errorf("the handler ran %d times, the story says %d", runs, s.Runs)
		}
		return nil
	}
	gatetest.Run(t, tool(func(ctx context.Context) (string, error) {
		runs++
		if err := permit(ctx, "Work"); err != nil {
			return "", err
		}
		_, err := interrupt.Ask(ctx, form("How many"))
		return "done", err
	}, &gate.ToolOptions{Replay: gate.Repeatable}), s)
}

// Each of the four kinds of question, and one of the application's own, alone and together (R18).
func TestAnswers(t *testing.T) {
	own := &mood{Ask: "How are you?"}
	selection := interrupt.UserSelection(interrupt.UserChoice{Title: "a"}, interrupt.UserChoice{Title: "b"})
	var questions []interrupt.Interrupt
	handle := func(ctx context.Context) (string, error) {
		answered, err := interrupt.AskAll(ctx, questions...)
		if err != nil {
			return "", err
		}
		var said []string
		for _, q := range answered {
			switch q := q.(type) {
			case *interrupt.ToolPermissionInterrupt:
				said = append(said, q.SelectedOptionID)
			case *interrupt.UserSelectionInterrupt:
				said = append(said, q.ConfirmedChoice.Title)
			case *interrupt.FormInterrupt:
				said = append(said, string(q.Content))
			case *interrupt.URLInterrupt:
				said = append(said, string(q.Action))
			case *mood:
				said = append(said, q.Mood)
			}
		}
		return strings.Join(said, " "), nil
	}
	odd := interrupt.ToolPermission("work", "Work", interrupt.PermissionOption{OptionID: "n", Name: "No", Kind: interrupt.PermissionRejectOnce},
		interrupt.PermissionOption{OptionID: "y", Name: "Yes", Kind: interrupt.PermissionAllowOnce})
	url := interrupt.URL("Sign in", "https://example.com/")
	for _, tt := range []struct {
		name      string
		questions []interrupt.Interrupt
		script    gatetest.Script
		result    string
	}{
		{"allow", []interrupt.Interrupt{odd}, script("", gatetest.Allow()), `"y"`},
		{"reject", []interrupt.Interrupt{odd}, script(gate.ErrRejected, gatetest.Reject()), ""},
		{"choose", []interrupt.Interrupt{selection}, script("", gatetest.Choose(1)), `"b"`},
		{"fill", []interrupt.Interrupt{form("How many")}, script("", gatetest.Fill(`{"n":2}`)), `"{\"n\":2}"`},
		{"visit", []interrupt.Interrupt{url}, script("", gatetest.Visit()), `"accept"`},
		{"decline", []interrupt.Interrupt{url}, script(gate.ErrDeclined, gatetest.Decline()), ""},
		{"cancel", []interrupt.Interrupt{form("How many")}, script(gate.ErrCancelled, gatetest.Cancel()), ""},
		{"payload", []interrupt.Interrupt{own}, script("", gatetest.Payload(`{"mood":"fine"}`)), `"fine"`},
		{"all at once", []interrupt.Interrupt{odd, selection, form("How many"), url},
			script("", gatetest.Allow(), gatetest.Choose(0), gatetest.Fill(`{}`), gatetest.Visit()), `"y a {} accept"`},
		{"invalid first", []interrupt.Interrupt{form("How many"), url},
			script("", gatetest.Invalid(`{"content":{"n":"two"}}`), gatetest.Visit(), gatetest.Fill(`{"n":2}`), gatetest.Visit()),
			`"{\"n\":2} accept"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			questions = tt.questions
			tt.script.Result = tt.result
			tt.script.Facilities = append(tt.script.Facilities, "mood", interrupt.FacilityPermission, interrupt.FacilitySelection,
				interrupt.FacilityForm, interrupt.FacilityURL)
			gatetest.Run(t, tool(handle, &gate.ToolOptions{Replay: gate.Repeatable}), tt.script)
		})
	}
}

// A mood is a question of an application's own type.
type mood struct {
	Ask  string `json:"ask"`
	Mood string `json:"-"`
}

func init() { interrupt.Register(func() interrupt.Interrupt { return new(mood) }) }

// moodsRead counts how often a mood was read back.
var moodsRead int

func (m *mood) UnmarshalJSON(body []byte) error {
	moodsRead++
	type plain mood
	return json.Unmarshal(body, (*plain)(m))
}

func (m *mood) TypeName() string           { return "mood" }
func (m *mood) Serialize() ([]byte, error) { return json.Marshal(m) }
func (m *mood) Error() string              { return m.Ask }
func (m *mood) Return(payload []byte) error {
	var p struct{ Mood string }
	if err := json.Unmarshal(payload, &p); err != nil {
		return err
	}
	m.Mood = p.Mood
	return nil
}

// R16: an invalid answer is really sent: a question is read back to check it.
func TestInvalidAnswerIsSent(t *testing.T) {
	read := map[string]int{}
	s := script("", gatetest.Payload(`{"mood":"fine"}`))
	s.Facilities = []interrupt.Facility{"mood"}
	s.Before = func() { moodsRead = 0 }
	s.After = func(s *gatetest.Story) error {
		read[s.Way] = moodsRead
		return nil
	}
	gatetest.Run(t, tool(func(ctx context.Context) (string, error) {
		_, err := interrupt.Ask(ctx, &mood{Ask: "How are you?"})
		return "done", err
	}, nil), s)
	if plain, bad := read["the story as it is"], read["an invalid answer before every answer"]; plain == 0 || bad <= plain {
		t.Errorf("a question was read back %d times, and with an invalid answer %d times", plain, bad)
	}
}

// R17: a question that the tool keeps open takes the next answer; without one it stays open.
func TestKeepOpen(t *testing.T) {
	work := func(ctx context.Context) (string, error) { return "done", permit(ctx, "Work") }
	newTool := tool(work, &gate.ToolOptions{KeepOpen: true})
	story := gatetest.Run(t, newTool, script("", gatetest.Decline(), gatetest.Cancel(), gatetest.Allow()))
	if len(story.Asked) != 1 || story.Runs != 2 {
		t.Errorf("want one round and two runs, have %s", line(story))
	}
	story = gatetest.Run(t, newTool, script(gate.ErrDeclined, gatetest.Decline()))
	if story.Runs != 1 {
		t.Errorf("want one run, have %s", line(story))
	}
}

// R30: what a person takes is time that passes, for the gate and for the tool.
func TestExpiry(t *testing.T) {
	var clock gatetest.Clock
	var asked time.Time
	work := func(ctx context.Context) (string, error) {
		err := permit(ctx, "Work")
		if errors.As(err, new(interrupt.Interrupt)) {
			asked = clock.Now()
		}
		return clock.Now().Sub(asked).String(), err
	}
	s := script("", gatetest.Allow().After(9*time.Minute).After(59*time.Second))
	s.Clock = &clock
	s.After = func(s *gatetest.Story) error {
		if s.Err == nil && string(s.Result) != `"9m59s"` {
			return fmt.Errorf("the tool's clock went on by %s", s.Result)
		}
		return nil
	}
	gatetest.Run(t, tool(work, &gate.ToolOptions{Replay: gate.Repeatable}), s)

	s = script(gate.ErrExpired, gatetest.Allow().After(10*time.Minute))
	gatetest.Run(t, tool(work, nil), s)

	s = script(gate.ErrExpired, gatetest.Allow().After(time.Minute))
	gatetest.Run(t, tool(work, &gate.ToolOptions{Lifetime: time.Minute}), s)
}

// R13: what the host cannot ask is not asked.
func TestFacilities(t *testing.T) {
	work := func(ctx context.Context) (string, error) { return "done", permit(ctx, "Work") }
	s := script(gate.ErrConfirmationRequired)
	s.Facilities = []interrupt.Facility{}
	story := gatetest.Run(t, tool(work, nil), s)
	if len(story.Asked) != 0 {
		t.Errorf("want no question, have %s", line(story))
	}
}
