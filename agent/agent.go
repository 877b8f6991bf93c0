package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-go/parley/gate"
)

// An Agent runs an agent of eino's under a gate. It is safe for concurrent use; several runs go on
// at once.
type Agent struct {
	face   *gate.Face
	agents pool
	opts   Options
}

// Options are the options of an Agent. The zero field is the documented default.
type Options struct {
	// Name is the name of the agent's face. It stays the same over restarts: runs and tokens are
	// good for it alone. Default: "agent:" and the name of eino's agent.
	Name string
	// Streaming lets models and tools stream in the runs that are started here. A run stays as it
	// was started, whoever goes on with it.
	Streaming bool
	// PollInterval is how often Wait looks. Default: one second.
	PollInterval time.Duration
	// Fits is [gate.FaceOptions.Fits] of the agent's face: whether who shows the questions of its
	// tools can show them as they are. Default: all fit.
	Fits func(p *gate.Prompt) error
}

// New returns an Agent for eino's. It builds one at once, and later as many as there are runs at
// the same time. The gate has all tools that eino's agent was given with [Tool] and [Wrap]; its
// models are wrapped with [Model].
func New(ctx context.Context, g *gate.Gate, build Build, opts *Options) (*Agent, error) {
	if g == nil || build == nil {
		return nil, errors.New("make agent: a gate and a function that builds eino's agent are needed")
	}
	a := &Agent{agents: pool{build: build}}
	if opts != nil {
		a.opts = *opts
	}
	if a.opts.PollInterval < 0 {
		return nil, fmt.Errorf("make agent: poll interval %v is negative", a.opts.PollInterval)
	}
	if a.opts.PollInterval == 0 {
		a.opts.PollInterval = time.Second
	}
	eino, err := a.agents.take(ctx)
	if err != nil {
		return nil, fmt.Errorf("make agent: %w", err)
	}
	a.agents.put(eino)
	if a.opts.Name == "" {
		a.opts.Name = "agent:" + eino.Name(ctx)
	}
	if a.face, err = g.NewFace(a.opts.Name, &gate.FaceOptions{Fits: a.opts.Fits}); err != nil {
		return nil, fmt.Errorf("make agent: %w", err)
	}
	return a, nil
}

// Close lets no run begin or go on through this agent and waits for those that do, each of which
// stops at its next tool call. It is [gate.Face.Close].
func (a *Agent) Close(ctx context.Context) error { return a.face.Close(ctx) }
