package agent

import (
	"context"
	"errors"
	"sync"

	"github.com/cloudwego/eino/adk"
)

// A Build makes an agent of eino's, with its sub-agents. It returns a new one each time, because an
// agent of eino's v0.7 must not be in two runs at once: it compiles its graph anew, in place, for
// every run. The agents can share their models and tools, which are then used concurrently; what
// takes long to make is made before. Build itself can be called from several goroutines.
type Build func(ctx context.Context) (adk.Agent, error)

// A pool holds the agents of one Build that are in no run, until the garbage collector takes those
// that are not used.
type pool struct {
	build Build
	idle  sync.Pool
}

// take returns an agent that is in no run, and builds one where there is none.
func (p *pool) take(ctx context.Context) (adk.Agent, error) {
	if eino, ok := p.idle.Get().(adk.Agent); ok {
		return eino, nil
	}
	eino, err := p.build(ctx)
	if err == nil && eino == nil {
		err = errors.New("build: there is no agent")
	}
	return eino, err
}

func (p *pool) put(eino adk.Agent) { p.idle.Put(eino) }
