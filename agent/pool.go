package agent

import (
	"context"
	"errors"
	"sync"

	"github.com/cloudwego/eino/adk"
)

// A Build makes an agent of eino's, with its sub-agents. It returns a new one each time, because an
// agent of eino's v0.7 must not be in two runs at once: it compiles its graph anew, in place, for
// every run. The agents can share their models and tools, which are then used concurrently. Build
// itself can be called from several goroutines.
type Build func(ctx context.Context) (adk.Agent, error)

// A pool holds the agents of one Build that are in no run. It has no bound: there are never more of
// them than runs went on at the same time.
type pool struct {
	build Build

	mu   sync.Mutex // guards idle
	idle []adk.Agent
}

// take returns an agent that is in no run, and builds one where there is none.
func (p *pool) take(ctx context.Context) (adk.Agent, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		eino := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return eino, nil
	}
	p.mu.Unlock()
	eino, err := p.build(ctx)
	if err == nil && eino == nil {
		err = errors.New("build: there is no agent")
	}
	return eino, err
}

func (p *pool) put(eino adk.Agent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, eino)
}
