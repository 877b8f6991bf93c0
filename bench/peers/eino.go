package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cloudwego/eino/compose"
)

// einoInMemory is a graph of one node, with the interrupt that its documentation shows, over a
// checkpoint store in memory. eino ships no store: the interface is the application's to fill.
func einoInMemory() local {
	return local{setting: "in memory", open: func(ctx context.Context, _ string, deployed *atomic.Int64) (asker, error) {
		node := func(ctx context.Context, input string) (string, error) {
			_, _, state := compose.GetInterruptState[string](ctx)
			if state == "" {
				return "", compose.StatefulInterrupt(ctx, "which colour?", input)
			}
			targeted, answered, colour := compose.GetResumeContext[string](ctx)
			if !targeted || !answered {
				return "", compose.StatefulInterrupt(ctx, "which colour?", state)
			}
			deployed.Add(1)
			return colour, nil
		}
		graph := compose.NewGraph[string, string]()
		err := errors.Join(
			graph.AddLambdaNode("ask", compose.InvokableLambda(node)),
			graph.AddEdge(compose.START, "ask"),
			graph.AddEdge("ask", compose.END),
		)
		if err != nil {
			return nil, err
		}
		runnable, err := graph.Compile(ctx, compose.WithCheckPointStore(&einoStore{}))
		return &einoAsker{graph: runnable}, err
	}}
}

// An einoStore keeps checkpoints in memory.
type einoStore struct{ checkpoints sync.Map }

func (s *einoStore) Get(_ context.Context, id string) ([]byte, bool, error) {
	value, ok := s.checkpoints.Load(id)
	if !ok {
		return nil, false, nil
	}
	return value.([]byte), true, nil
}

func (s *einoStore) Set(_ context.Context, id string, checkpoint []byte) error {
	s.checkpoints.Store(id, checkpoint)
	return nil
}

type einoAsker struct {
	graph compose.Runnable[string, string]
	next  atomic.Int64
}

func (a *einoAsker) close(context.Context) error { return nil }

func (a *einoAsker) raise(ctx context.Context) (question, error) {
	checkpoint := compose.WithCheckPointID(fmt.Sprint(a.next.Add(1)))
	_, err := a.graph.Invoke(ctx, strings.Repeat("x", stateSize), checkpoint)
	raised, ok := compose.ExtractInterruptInfo(err)
	if !ok {
		return nil, fmt.Errorf("the graph did not ask: %w", err)
	}
	id := raised.InterruptContexts[0].ID
	return func(ctx context.Context, colour string) (string, error) {
		return a.graph.Invoke(compose.ResumeWithData(ctx, id, colour), "", checkpoint)
	}, nil
}
