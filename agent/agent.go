package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-go/parley/gate"
)

// An Agent runs an agent of eino's under a gate. It is safe for concurrent use, and several of its
// runs can go on at the same time.
type Agent struct {
	gate   *gate.Gate
	face   *gate.Face
	agents pool
	opts   Options
}

// Options are the options of an Agent. The zero field is the documented default.
type Options struct {
	// Name is the name of the agent's face. Runs and tokens are good for this name alone, so it
	// must stay the same over restarts. Default: "agent:" and the name of eino's agent.
	Name string
	// Streaming lets models and tools stream in the runs that this Agent starts. A run that it
	// resumes streams if it was started so.
	Streaming bool
	// PollInterval is how often Wait looks at the run. Default: one second.
	PollInterval time.Duration
	// Fits is [gate.FaceOptions.Fits] of the agent's face: it refuses prompts that the host cannot
	// show as they are. Default: all fit.
	Fits func(p *gate.Prompt) error
}

// New returns an Agent that runs the agents that build makes. It calls build at once, so that a
// mistake in it shows here, and again whenever a run goes on and no agent is left of a run before.
// The tools of those agents that come from [Tool] and [Wrap] must be tools of g, and their models
// must be wrapped with [Model]. The caller closes the gate, which ends what the Agent does.
func New(ctx context.Context, g *gate.Gate, build Build, opts *Options) (*Agent, error) {
	if g == nil || build == nil {
		return nil, errors.New("make agent: a gate and a function that builds eino's agent are needed")
	}
	a := &Agent{gate: g}
	a.agents.build = build
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

// Close is [gate.Face.Close] of the agent's face: from then on no run begins or is resumed, and
// those that go on stop at their next tool call. It waits for them; where ctx ends first, they are
// cancelled and Close returns ctx's error.
func (a *Agent) Close(ctx context.Context) error { return a.face.Close(ctx) }
