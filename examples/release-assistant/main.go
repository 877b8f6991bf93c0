// Release-assistant is an agent of eino's that plans a release and asks before it acts: two of its
// tools ask in the same turn. Stop it at any question, or kill it, and start it again: it goes on
// where it was. The model is scripted, so that nothing here needs a network.
//
//	go run ./examples/release-assistant
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

func main() {
	dir, err := os.UserCacheDir()
	if err == nil {
		err = assist(context.Background(), filepath.Join(dir, "parley-release-assistant"), os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// assist goes on with the run that waits in dir, or starts one, until it ends or nobody answers.
func assist(ctx context.Context, dir string, in io.Reader, out io.Writer) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	keys, err := gate.KeyFile(filepath.Join(dir, "key"))
	if err != nil {
		return err
	}
	store, err := boltstore.Open(filepath.Join(dir, "parley.db"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	tools := []*gate.Tool{changes(), asking("migrate", "Migrate the database of", "migrated"), asking("deploy", "Deploy", "deployed")}
	g, err := gate.Open(ctx, store, &gate.Options{Tools: tools, Keys: keys, Lifetime: gate.NoExpiry})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close(ctx)) }()
	a, err := agent.New(ctx, g, func(ctx context.Context) (adk.Agent, error) {
		faces := compose.ToolsNodeConfig{Tools: []tool.BaseTool{agent.Tool(tools[0]), agent.Tool(tools[1]), agent.Tool(tools[2])}}
		return adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
			Name: "release", Description: "releases services", Model: agent.Model(scripted.Func(script)),
			ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: faces},
		})
	}, nil)
	if err != nil {
		return err
	}
	run, err := begin(ctx, a)
	lines := bufio.NewScanner(in)
	for err == nil && run.Status == agent.Waiting && len(run.Questions) > 0 {
		q := run.Questions[0]
		fmt.Fprintf(out, "%s %s (%d open) - allow? [y/n] ", q.Tool, q.Prompt.Arguments, len(run.Questions))
		if !lines.Scan() {
			fmt.Fprintln(out, "\nIt waits. Start it again to go on.")
			return lines.Err()
		}
		option := interrupt.PermissionRejectOnce
		if lines.Text() == "y" {
			option = interrupt.PermissionAllowOnce
		}
		payload, _ := json.Marshal(map[string]string{"optionId": option}) // strings: it cannot fail
		run, err = a.Resume(ctx, agent.Resume{Scope: "me", Run: run.ID, Facilities: canAsk, Answers: []agent.Answer{{
			Interaction: q.Interaction, Token: q.Prompt.Token, Answers: gate.Answers{q.Prompt.Questions[0].ID: payload},
		}}})
	}
	if err == nil {
		fmt.Fprintln(out, run.Message)
	}
	return err
}

var canAsk = []interrupt.Facility{interrupt.FacilityPermission}

// begin returns the run that waits, with the tokens of its questions, or a new one.
func begin(ctx context.Context, a *agent.Agent) (*agent.Run, error) {
	page, err := a.Runs(ctx, gate.RunQuery{Scope: "me"})
	if err != nil {
		return nil, err
	}
	if len(page.Runs) > 0 {
		return a.Resume(ctx, agent.Resume{Scope: "me", Run: page.Runs[0].ID, Facilities: canAsk})
	}
	return a.Start(ctx, agent.Start{Scope: "me", Facilities: canAsk, Messages: []*schema.Message{schema.UserMessage("Release the API.")}})
}
