package gatetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/gate/gatetest"
	"github.com/parley-go/parley/interrupt"
)

// The code of docs/handlers.md is that of this file; a test compares them.

type DeployInput struct {
	Service string `json:"service"`
	Version string `json:"version"`
}

type DeployOutput struct {
	URL string `json:"url"`
}

// A site is the world around the tools: what runs where, and some files.
type site struct {
	running map[string]string // version by service
	ships   int
	files   []string
}

func newSite() *site {
	return &site{running: map[string]string{"api": "1"}, files: []string{"a.log", "b.log", "c.txt"}}
}

func (s *site) ship(in DeployInput) (DeployOutput, error) {
	s.ships++
	s.running[in.Service] = in.Version
	return DeployOutput{URL: "https://" + in.Service + ".example.com"}, nil
}

func (s *site) deploy(ctx context.Context, in DeployInput) (DeployOutput, error) {
	// Reading is safe to repeat: it runs once for the call and once for each answer.
	if s.running[in.Service] == "" {
		return DeployOutput{}, fmt.Errorf("deploy %q: there is no such service", in.Service)
	}

	where, err := interrupt.Ask(ctx, interrupt.UserSelection(
		interrupt.UserChoice{Title: "staging"}, interrupt.UserChoice{Title: "production"}))
	if err != nil {
		return DeployOutput{}, err
	}
	if where.ConfirmedChoice.Title == "production" {
		ask := interrupt.ToolPermission("deploy", "Deploy "+in.Service+" "+in.Version+" to production")
		if _, err := interrupt.Ask(ctx, ask); err != nil {
			return DeployOutput{}, err
		}
	}

	// From here on nothing is asked any more.
	return s.ship(in)
}

func (s *site) restart(ctx context.Context, in DeployInput) (string, error) {
	ask := interrupt.ToolPermission("restart", "Restart "+in.Service+", which runs "+s.running[in.Service])
	ask.Key = "restart"
	if _, err := interrupt.Ask(ctx, ask); err != nil {
		return "", err
	}
	return "restarted", nil
}

func (s *site) clean(ctx context.Context, _ struct{}) (string, error) {
	var plan []string
	if resume, ok := interrupt.ResumeFrom(ctx); !ok {
		plan = s.old()
	} else if err := json.Unmarshal(resume.State, &plan); err != nil {
		return "", fmt.Errorf("read the plan: %w", err)
	}
	ask := interrupt.ToolPermission("clean", "Delete "+strings.Join(plan, ", "))
	if _, err := interrupt.Ask(ctx, ask); err != nil {
		state, _ := json.Marshal(plan)
		return "", interrupt.WithState(err, state)
	}
	return s.remove(plan)
}

func (s *site) old() []string {
	return slices.DeleteFunc(slices.Clone(s.files), func(name string) bool { return !strings.HasSuffix(name, ".log") })
}

func (s *site) remove(plan []string) (string, error) {
	s.files = slices.DeleteFunc(s.files, func(name string) bool { return slices.Contains(plan, name) })
	return fmt.Sprintf("%d files deleted", len(plan)), nil
}

func (s *site) recoverDeploy(_ context.Context, arguments json.RawMessage) (json.RawMessage, error) {
	var in DeployInput
	if err := json.Unmarshal(arguments, &in); err != nil {
		return nil, err
	}
	if s.running[in.Service] != in.Version {
		return nil, &interrupt.Failure{Text: in.Service + " was not deployed: begin again"}
	}
	return json.Marshal(DeployOutput{URL: "https://" + in.Service + ".example.com"})
}

func (s *site) migrate(ctx context.Context, in DeployInput) (DeployOutput, error) {
	backup, err := interrupt.Once(ctx, "backup", s.backup, &interrupt.OnceOptions[string]{Idempotent: true})
	if err != nil {
		return DeployOutput{}, err
	}
	ask := interrupt.ToolPermission("migrate", "Migrate "+in.Service+", of which there is "+backup)
	if _, err := interrupt.Ask(ctx, ask); err != nil {
		return DeployOutput{}, err
	}
	ship := func(context.Context, string) (DeployOutput, error) { return s.ship(in) }
	return interrupt.Once(ctx, "ship", ship, &interrupt.OnceOptions[DeployOutput]{Check: s.shipped(in)})
}

// backup makes one backup for one ID.
func (s *site) backup(_ context.Context, stepID string) (string, error) {
	if !slices.Contains(s.files, stepID) {
		s.files = append(s.files, stepID)
	}
	return "a backup", nil
}

func (s *site) shipped(in DeployInput) func(context.Context, string) (DeployOutput, bool, error) {
	return func(context.Context, string) (DeployOutput, bool, error) {
		out := DeployOutput{URL: "https://" + in.Service + ".example.com"}
		return out, s.running[in.Service] == in.Version, nil
	}
}

func deployTool(s *site) *gate.Tool {
	return gate.NewTool("deploy", s.deploy, &gate.ToolOptions{Replay: gate.Recover, Recover: s.recoverDeploy})
}

func TestDeploy(t *testing.T) {
	var s *site
	story := gatetest.Run(t, func() *gate.Tool { return deployTool(s) }, gatetest.Script{
		Arguments: `{"service":"api","version":"2"}`,
		Answers:   []gatetest.Answer{gatetest.Choose(1), gatetest.Allow()},
		Result:    `{"url":"https://api.example.com"}`,
		Before:    func() { s = newSite() },
		After: func(story *gatetest.Story) error {
			if s.ships > 1 || story.Err == nil && s.ships != 1 {
				return fmt.Errorf("shipped %d times", s.ships)
			}
			return nil
		},
	})
	if len(story.Asked) != 2 {
		t.Errorf("want two rounds, have %d", len(story.Asked))
	}
}

func TestDeployRejected(t *testing.T) {
	var s *site
	gatetest.Run(t, func() *gate.Tool { return deployTool(s) }, gatetest.Script{
		Arguments: `{"service":"api","version":"2"}`,
		Answers:   []gatetest.Answer{gatetest.Choose(1), gatetest.Reject()},
		Code:      gate.ErrRejected,
		Before:    func() { s = newSite() },
		After: func(*gatetest.Story) error {
			if s.ships > 0 {
				return errors.New("shipped, though it was rejected")
			}
			return nil
		},
	})
}

func TestRestart(t *testing.T) {
	var s *site
	gatetest.Run(t, func() *gate.Tool {
		return gate.NewTool("restart", s.restart, &gate.ToolOptions{Replay: gate.Repeatable})
	},
		gatetest.Script{
			Arguments: `{"service":"api","version":""}`,
			Answers:   []gatetest.Answer{gatetest.Allow()},
			Before:    func() { s = newSite() },
		})
}

// R4: however often it runs, and wherever a process dies, there is one backup and one deployment.
func TestMigrate(t *testing.T) {
	var s *site
	newTool := func() *gate.Tool {
		return gate.NewTool("migrate", s.migrate, &gate.ToolOptions{Replay: gate.Repeatable})
	}
	gatetest.Run(t, newTool, gatetest.Script{
		Arguments: `{"service":"api","version":"2"}`,
		Answers:   []gatetest.Answer{gatetest.Allow()},
		Result:    `{"url":"https://api.example.com"}`,
		Before:    func() { s = newSite() },
		After: func(story *gatetest.Story) error {
			if s.ships > 1 || len(s.files) > 4 || story.Err == nil && (s.ships != 1 || len(s.files) != 4) {
				return fmt.Errorf("shipped %d times, the files are %v", s.ships, s.files)
			}
			return nil
		},
	})
}

// R6: what was approved is what is done, also where the world changed meanwhile.
func TestClean(t *testing.T) {
	var s *site
	newTool := func() *gate.Tool {
		return gate.NewTool("clean", func(ctx context.Context, in struct{}) (string, error) {
			if _, ok := interrupt.ResumeFrom(ctx); ok {
				s.files = append(s.files, "new.log") // which nobody approved
			}
			return s.clean(ctx, in)
		}, nil)
	}
	gatetest.Run(t, newTool, gatetest.Script{
		Arguments: `{}`,
		Answers:   []gatetest.Answer{gatetest.Allow()},
		Result:    `"2 files deleted"`,
		Before:    func() { s = newSite() },
		After: func(story *gatetest.Story) error {
			if story.Err == nil && !slices.Contains(s.files, "new.log") {
				return errors.New("a file was deleted that was not approved")
			}
			return nil
		},
	})
}
