// Release-assistant is an agent of eino's that plans a release and asks before it acts: two of its
// tools ask in the same turn. Stop it at any moment, with Ctrl-C or kill -9, and start it again: it
// goes on where it was, and what was answered is not asked again.
//
//	go run -C examples/release-assistant .
//
// The model is scripted, so that nothing here needs a network. With OPENAI_BASE_URL, OPENAI_API_KEY
// and OPENAI_MODEL set it is the one of that endpoint. The run is kept in the user's cache
// directory until it ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
)

// exitInterrupted is what a shell makes of an end by Ctrl-C.
const exitInterrupted = 130

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx)
	switch {
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(os.Stderr, "\nrelease-assistant: interrupted; start it again to go on")
		os.Exit(exitInterrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "release-assistant:", printable(err.Error()))
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	m, err := chooseModel(ctx, os.Getenv)
	if err != nil {
		return err
	}
	key, err := gate.DefaultKeyFile("release-assistant") // not beside the data: who can read both can make tokens
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, "parley-release-assistant")
	return assist(ctx, options{dir: dir, key: key, model: m, in: os.Stdin, out: os.Stdout, pace: time.Second})
}

type options struct {
	dir   string // of the run
	key   string // the file of the secret
	model model.ToolCallingChatModel
	in    io.Reader
	out   io.Writer
	pace  time.Duration // how long one step of a tool takes
}

// assist goes on with the run that waits in the directory, or starts one, until it ends or nobody
// answers.
func assist(ctx context.Context, o options) (err error) {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	keys, err := gate.KeyFile(o.key)
	if err != nil {
		return err
	}
	store, err := boltstore.Open(filepath.Join(o.dir, "parley.db"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	tools := []*gate.Tool{changes(), migrate(o.pace), deploy(o.pace)}
	g, err := gate.Open(ctx, store, &gate.Options{Tools: tools, Keys: keys, Lifetime: gate.NoExpiry})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close(context.WithoutCancel(ctx))) }()
	a, err := agent.New(ctx, g, func(ctx context.Context) (adk.Agent, error) {
		faces := compose.ToolsNodeConfig{}
		for _, one := range tools {
			faces.Tools = append(faces.Tools, tool.BaseTool(agent.Tool(one)))
		}
		return adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
			Name: "release", Description: "releases services", Instruction: instruction,
			Model: agent.Model(o.model), ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: faces},
		})
	}, &agent.Options{Streaming: true})
	if err != nil {
		return err
	}
	return converse(ctx, a, newPerson(ctx, o.in, o.out))
}
