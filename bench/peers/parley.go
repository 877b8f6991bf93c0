package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

func parleyInMemory() local {
	return local{setting: "in memory", open: func(ctx context.Context, _ string, deployed *atomic.Int64) (asker, error) {
		return openParley(ctx, memstore.New(), func() error { return nil }, deployed)
	}}
}

func parleyOnDisk() local {
	return local{setting: "bbolt, as shipped", open: func(ctx context.Context, dir string, deployed *atomic.Int64) (asker, error) {
		store, err := boltstore.Open(filepath.Join(dir, "ledger.db"), nil)
		if err != nil {
			return nil, err
		}
		return openParley(ctx, store, store.Close, deployed)
	}}
}

type parleyAsker struct {
	gate       *gate.Gate
	closeStore func() error
	call       gate.Call
}

type deployment struct {
	Note string `json:"note"`
}

func openParley(ctx context.Context, store checkpoint.Store, closeStore func() error, deployed *atomic.Int64) (asker, error) {
	choices := []interrupt.UserChoice{{Title: colours[0]}, {Title: colours[1]}}
	deploy := func(ctx context.Context, _ deployment) (string, error) {
		answered, err := interrupt.Ask(ctx, interrupt.UserSelection(choices...))
		if err != nil {
			return "", err
		}
		deployed.Add(1)
		return answered.ConfirmedChoice.Title, nil
	}
	g, err := gate.Open(ctx, store, &gate.Options{
		Tools: []*gate.Tool{gate.NewTool("deploy", deploy, nil)}, Keys: [][]byte{gate.NewKey()}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, errors.Join(err, closeStore())
	}
	arguments, err := json.Marshal(deployment{Note: strings.Repeat("x", stateSize)})
	return &parleyAsker{gate: g, closeStore: closeStore, call: gate.Call{
		Tool: "deploy", Arguments: arguments, Scope: "ann", Session: "s", Facilities: []interrupt.Facility{interrupt.FacilitySelection},
	}}, err
}

func (a *parleyAsker) close(ctx context.Context) error {
	return errors.Join(a.gate.Close(ctx), a.closeStore())
}

func (a *parleyAsker) raise(ctx context.Context) (question, error) {
	outcome, err := a.gate.Invoke(ctx, a.call)
	if err != nil {
		return nil, err
	}
	if outcome.Prompt == nil {
		return nil, errors.New("the tool did not ask")
	}
	call := a.call
	call.Token = outcome.Prompt.Token
	id := outcome.Prompt.Questions[0].ID
	return func(ctx context.Context, colour string) (string, error) {
		call := call // two answers can be on their way at once
		call.Answers = gate.Answers{id: fmt.Appendf(nil, `{"selectionIdx":%d}`, slices.Index(colours, colour))}
		var result string
		outcome, err := a.gate.Invoke(ctx, call)
		for isRetryable(err) && ctx.Err() == nil { // as the code asks for
			runtime.Gosched()
			outcome, err = a.gate.Invoke(ctx, call)
		}
		if err != nil {
			return "", err
		}
		err = json.Unmarshal(outcome.Result, &result)
		return result, err
	}, nil
}

func isRetryable(err error) bool {
	var e *gate.Error
	return errors.As(err, &e) && e.Code.Retryable()
}

// parleyCode returns the code of a gate's error.
func parleyCode(err error) (string, bool) {
	var e *gate.Error
	if !errors.As(err, &e) {
		return "", false
	}
	return string(e.Code), true
}
