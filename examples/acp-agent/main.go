// Acp-agent is an agent for editors that speak the Agent Client Protocol, over standard input and
// output. It edits files of the directory that it is started in, runs commands, asks which branch
// to work on and what to write into a commit, and sends its person to a page. Nothing of that
// happens before a person allowed it, and what it asked is not lost where the editor is closed:
// open the session again, and it asks again.
//
//	go install -C examples/acp-agent .
//
// The model is scripted, so that nothing here needs a network: it does what a word of the message
// names (edit, run, branch, commit, sign in). With OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL
// set it is the one of that endpoint.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cloudwego/eino/components/model"

	"github.com/parley-go/parley/agent"
	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
)

func main() {
	key := flag.String("key", "", "file of the key, which the first run makes (default: one in the user's configuration)")
	state := flag.String("state", "", "directory of sessions and questions (default: one in the user's cache)")
	flag.Parse()
	// Standard output is the protocol's. What there is to say beside goes to standard error.
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err := run(context.Background(), *state, *key); err != nil {
		fmt.Fprintln(os.Stderr, "acp-agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, state, key string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if state == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(root))
		state = filepath.Join(cache, "parley-acp-agent", hex.EncodeToString(sum[:8]))
	}
	if key == "" {
		if key, err = gate.DefaultKeyFile("acp-agent"); err != nil { // not beside the data: who can read both can make tokens
			return err
		}
	}
	m, err := chooseModel(ctx, os.Getenv)
	if err != nil {
		return err
	}
	return serve(ctx, options{root: root, state: state, key: key, model: m, in: os.Stdin, out: os.Stdout})
}

type options struct {
	root  string // the directory of the work
	state string
	key   string // the file of the secret
	model model.ToolCallingChatModel
	in    io.Reader
	out   io.Writer
	// authorize is nil for standard input and output, whose client is served as "local".
	authorize func(context.Context, acpbridge.Request) (acpbridge.Grant, error)
}

// serve serves one editor until it goes.
func serve(ctx context.Context, o options) (err error) {
	if err := os.MkdirAll(o.state, 0o700); err != nil {
		return err
	}
	keys, err := gate.KeyFile(o.key)
	if err != nil {
		return err
	}
	store, err := boltstore.Open(filepath.Join(o.state, "parley.db"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	w := workspace{o.root}
	tools := []*gate.Tool{w.edit(), w.command(), branch(), commit(), signIn()}
	g, err := gate.Open(ctx, store, &gate.Options{Tools: tools, Keys: keys, Lifetime: 24 * time.Hour})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close(ctx)) }()
	bridge, err := acpbridge.New(g, &acpbridge.Options{View: w.view, Authorize: o.authorize})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bridge.Close(ctx)) }()
	a, err := agent.New(ctx, g, build(o.model, tools), &agent.Options{Streaming: true, Fits: bridge.Fits})
	if err != nil {
		return err
	}
	conn, err := bridge.Connect(&editorAgent{bridge: bridge, agent: a, sessions: sessions{o.state}, root: o.root}, o.out, o.in)
	if err != nil {
		return err
	}
	<-conn.Done()
	return nil
}
