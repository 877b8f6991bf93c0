// Command terminal is a small release assistant: one tool that asks a person four questions, one
// after the other, and then does one thing. It needs no network. What there is to see is that it
// can be killed at any moment, and goes on where it was.
//
//	go run ./examples/terminal
//
// Answer the first question, press Ctrl-C at the second (or kill -9 the process from another
// terminal), and run it again: it is at the second question, and the first one is not asked again.
// The end is a file, release-shop-1.0.0.json, in the working directory; the next run begins 1.0.1.
// What waits for an answer is listed by
//
//	go run ./examples/terminal -list
//
// Without a terminal it speaks JSON lines: every prompt is one line, and every line that it reads
// is one answer.
//
//	echo '{"optionId":"allow_once"}' | go run ./examples/terminal
//
// ACCESSIBLE=1 asks in plain lines, for screen readers. The questions are in questions.go, the tool
// in tool.go; the rest of the directory is what a host of the toolkit does: open a gate (here),
// call the tool (converse.go), put prompts to a person (person*.go).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "terminal:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (int, error) {
	o, err := parseFlags(args)
	if err != nil {
		return usageCode(err), nil // the flag package has said it
	}
	err = assist(ctx, o)
	switch {
	case errors.Is(err, errTold):
		return exitFailed, nil
	case errors.Is(err, errInterrupted):
		return exitInterrupted, errInterrupted
	case errors.Is(err, errInputEnded):
		return exitDone, errInputEnded
	case err != nil:
		return exitFailed, err
	}
	return exitDone, nil
}

// assist is the toolkit in twenty lines: a store, keys, a gate with its tools, and a person for
// what the tools ask.
func assist(ctx context.Context, o *options) (err error) {
	store, err := boltstore.Open(o.db, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	keys, err := gate.KeyFile(o.key)
	if err != nil {
		return err
	}
	g, err := gate.Open(ctx, store, &gate.Options{Tools: []*gate.Tool{releaseTool(".")}, Keys: keys, Lifetime: 24 * time.Hour})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close(context.WithoutCancel(ctx))) }()

	if o.list {
		return list(ctx, g, os.Stdout)
	}
	release, err := pickRelease(ctx, g, o)
	if err != nil {
		return err
	}
	call, err := callFor(release)
	if err != nil {
		return err
	}
	return converse(ctx, g, call, somebody())
}
