package mcpbridge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
)

// A Bridge puts tools of a gate on an MCP server. It is safe for concurrent use. Several bridges,
// of one process or many, may stand on one gate or one store; those of one name serve each other's
// rounds.
type Bridge struct {
	server *mcp.Server
	gate   *gate.Gate
	opts   Options
	faces  map[wire]*gate.Face
	// text is the name in _meta under which the bridge's transport hands on what a client wrote, as
	// it wrote it. It is random, so that nobody else can.
	text string

	closing context.Context // ends when Close begins
	close   context.CancelFunc
	calls   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	tools   map[string]bool
	closed  bool
	waits   map[string]map[*wait]bool // by session: questions that are with its client, over HTTP
	leaving map[visit]int             // what is being ended, and by how many requests
}

// New makes a bridge from the gate to the server. It adds a middleware to the server, and nothing
// else: tools come with [Bridge.AddTool]. Gate and server stay the caller's.
func New(server *mcp.Server, g *gate.Gate, opts *Options) (*Bridge, error) {
	if server == nil || g == nil {
		return nil, errors.New("make bridge: server and gate must not be nil")
	}
	o, err := opts.complete()
	if err != nil {
		return nil, fmt.Errorf("make bridge: %w", err)
	}
	b := &Bridge{server: server, gate: g, opts: o, faces: map[wire]*gate.Face{}, text: "parley/" + rand.Text(), tools: map[string]bool{}}
	b.waits, b.leaving = map[string]map[*wait]bool{}, map[visit]int{}
	for _, w := range wires {
		fits := func(p *gate.Prompt) error { return b.fits(w, p) }
		face, err := g.NewFace(o.Name, &gate.FaceOptions{MaxPrompts: w.maxPrompts(o), Fits: fits})
		if err != nil {
			return nil, fmt.Errorf("make bridge: %w", err)
		}
		b.faces[w] = face
	}
	b.closing, b.close = context.WithCancel(context.Background())
	server.AddReceivingMiddleware(lowerInitialize)
	server.AddSendingMiddleware(b.keepAnswers)
	return b, nil
}

// Close stops the bridge and leaves the gate, its other faces and the server alone (R32): there are
// no new calls and no new prompts, questions that a session waits with are broken off and stay open
// in the ledger, and handlers that run are waited for. Where ctx ends first, their contexts are
// cancelled and Close returns ctx's error.
func (b *Bridge) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.close()
	errs := make([]error, len(wires))
	var faces sync.WaitGroup
	for i, w := range wires {
		faces.Go(func() { errs[i] = b.faces[w].Close(ctx) })
	}
	faces.Wait()
	done := make(chan struct{})
	go func() {
		b.calls.Wait()
		close(done)
	}()
	select {
	case <-done:
		return errors.Join(errs...)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter begins a call; done ends it.
func (b *Bridge) enter() (done func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, shuttingDown()
	}
	b.calls.Add(1)
	return b.calls.Done, nil
}

// has reports whether the bridge put a tool of that name on its server.
func (b *Bridge) has(tool string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tools[tool]
}
