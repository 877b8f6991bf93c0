// Acp-by-hand is an agent for editors that makes its tool calls itself: no framework, and no model.
// The message "deploy api" is a call of its one tool, which asks before it deploys.
//
//	go run ./examples/acp-by-hand
//
// Close the editor while it asks, load the session again and say anything: the same question is
// asked, and what was allowed is done once. How the agent does that is in agent.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

func main() {
	dir := flag.String("dir", "acp-by-hand", "the directory of calls and questions")
	key := flag.String("key", "", "the file with the key of the tokens (default: in the user's configuration)")
	flag.Parse()
	if err := run(context.Background(), *dir, *key); err != nil {
		log.Fatal(err) // on standard error: standard output is the protocol's
	}
}

func run(ctx context.Context, dir, key string) (err error) {
	if key == "" {
		if key, err = gate.DefaultKeyFile("acp-by-hand"); err != nil { // not beside the data
			return err
		}
	}
	keys, err := gate.KeyFile(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	store, err := boltstore.Open(filepath.Join(dir, "parley.db"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	g, err := gate.Open(ctx, store, &gate.Options{Tools: []*gate.Tool{deploy}, Keys: keys})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close(ctx)) }()
	bridge, err := acpbridge.New(g, nil) // the person at standard input and output is served as "local"
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bridge.Close(ctx)) }()
	conn, err := bridge.Connect(&agent{bridge, &calls{file: filepath.Join(dir, "calls.json")}}, os.Stdout, os.Stdin)
	if err != nil {
		return err
	}
	<-conn.Done()
	return nil
}

type deployInput struct {
	Service string `json:"service"`
}

// deploy asks, and is run again with the answer. Nothing is really deployed.
var deploy = gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
	if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", fmt.Sprintf("Deploy %s to production", in.Service))); err != nil {
		return "", err
	}
	return in.Service + " is deployed", nil
}, &gate.ToolOptions{Title: "Deploy"})
