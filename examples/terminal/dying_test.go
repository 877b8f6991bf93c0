package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
)

func (p *process) dies() {
	p.t.Helper()
	p.cmd.Wait()
	if code := p.cmd.ProcessState.ExitCode(); code == exitFailed || p.errors.Len() > 0 {
		p.t.Fatalf("it did not come to its death: %d, %q", code, p.errors.String())
	}
}

// dieAt makes the call with the program's own tool, and dies where it is told to.
func dieAt(when string) {
	tool := releaseTool(".")
	opts := tool.Options()
	dying := gate.NewTool(tool.Name(), func(ctx context.Context, r release) (report, error) {
		if when == "before the first question" {
			die()
		}
		done, err := handler(".")(ctx, r)
		if err == nil {
			die()
		}
		return done, err
	}, &opts)
	err := callOnce(dying)
	fmt.Fprintln(os.Stderr, "still alive:", err)
	os.Exit(exitFailed)
}

func callOnce(tool *gate.Tool) error {
	ctx := context.Background()
	store, err := boltstore.Open("parley-demo.db", nil)
	if err != nil {
		return err
	}
	keys, err := gate.KeyFile("demo.key")
	if err != nil {
		return err
	}
	g, err := gate.Open(ctx, store, &gate.Options{Tools: []*gate.Tool{tool}, Keys: keys})
	if err != nil {
		return err
	}
	call, err := callFor(release{"shop", "1.0.0"})
	if err != nil {
		return err
	}
	outcome, err := g.Invoke(ctx, call)
	if err != nil {
		return err
	}
	call.Token = outcome.Prompt.Token
	call.Answers = gate.Answers{outcome.Prompt.Questions[0].ID: json.RawMessage(`{}`)}
	_, err = g.Invoke(ctx, call)
	return err
}

func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		self.Kill()
	}
	select {}
}
