package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/crash"
	"github.com/parley-go/parley/interrupt"
)

const killChildEnv = "PARLEY_KILL_CHILD"

// killTools are the demo's tool under each of the choices of R27. Each run that comes to its effect
// leaves a line in a file.
func killTools(dir string) []*gate.Tool {
	var tools []*gate.Tool
	for name, replay := range map[string]gate.Replay{"never": gate.NeverAgain, "recover": gate.Recover, "repeat": gate.Repeatable} {
		handle := handler(dir)
		tools = append(tools, gate.NewTool(name, func(ctx context.Context, r release) (report, error) {
			done, err := handle(ctx, r)
			if err != nil {
				return done, err
			}
			return done, logEffect(ctx, dir, name, r)
		}, &gate.ToolOptions{Schema: json.RawMessage(releaseSchema), Replay: replay}))
	}
	return tools
}

type effect struct {
	Tool, Version string
	Recovery      bool
}

// logEffect appends with one write: what a process wrote stays when it is killed.
func logEffect(ctx context.Context, dir, tool string, r release) error {
	resume, _ := interrupt.ResumeFrom(ctx)
	line, err := json.Marshal(effect{tool, r.Version, resume.Recovery})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// A killRequest is a call with its token, which a call's own JSON form leaves out.
type killRequest struct {
	Call  gate.Call
	Token gate.Token
}

// A killReply is what the child answers: an outcome, or a code.
type killReply struct {
	Token   gate.Token
	Code    gate.Code
	Message string
	Result  *report
	Prompt  *gate.Prompt
}

func killChild(dir string) error {
	ctx := context.Background()
	store, err := boltstore.Open(filepath.Join(dir, "db"), nil)
	if err != nil {
		return err
	}
	g, err := gate.Open(ctx, store, &gate.Options{
		Tools: killTools(dir), Keys: [][]byte{bytes.Repeat([]byte("k"), 32)}, Lifetime: gate.NoExpiry,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	return crash.Serve(os.Stdin, os.Stdout, func(request json.RawMessage) any {
		var r killRequest
		if err := json.Unmarshal(request, &r); err != nil {
			return killReply{Code: "bad request", Message: err.Error()}
		}
		r.Call.Token = r.Token
		outcome, err := g.Invoke(ctx, r.Call)
		reply := killReply{Prompt: outcome.Prompt}
		if outcome.Prompt != nil {
			reply.Token = outcome.Prompt.Token
		}
		var e *gate.Error
		if errors.As(err, &e) {
			reply.Code, reply.Message = e.Code, e.Message
		}
		if outcome.Result != nil {
			reply.Result = new(report)
			if err := json.Unmarshal(outcome.Result, reply.Result); err != nil {
				return killReply{Code: "bad result", Message: err.Error()}
			}
		}
		return reply
	})
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(killChildEnv); dir != "" {
		if err := killChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
