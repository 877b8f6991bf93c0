package mcpbridge_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

const (
	modern   = "2026-07-28"
	legacy   = "2025-11-25"
	oldest   = "2025-06-18"
	allow    = `{"decision":"allow_once"}`
	reject   = `{"decision":"reject_once"}`
	minInt53 = -(1<<53 - 1)
)

var testKey = []byte("0123456789abcdef0123456789abcdef")

func logger(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// openGate opens a gate that the test's end closes.
func openGate(t *testing.T, store checkpoint.Store, opts gate.Options) *gate.Gate {
	t.Helper()
	if opts.Keys == nil {
		opts.Keys = [][]byte{testKey}
	}
	opts.Logger = logger(t)
	g, err := gate.Open(t.Context(), store, &opts)
	if err != nil {
		t.Fatalf("open gate: %v", err)
	}
	t.Cleanup(func() { g.Close(context.Background()) })
	return g
}

// A site is one server with its bridge.
type site struct {
	server *mcp.Server
	bridge *mcpbridge.Bridge
}

func newSite(t *testing.T, g *gate.Gate, opts *mcpbridge.Options, tools ...*gate.Tool) *site {
	t.Helper()
	if opts == nil {
		opts = &mcpbridge.Options{}
	}
	if opts.Logger == nil {
		opts.Logger = logger(t)
	}
	s := &site{server: mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, nil)}
	var err error
	if s.bridge, err = mcpbridge.New(s.server, g, opts); err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		if err := s.bridge.AddTool(tool, nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.bridge.Close(ctx); err != nil {
			t.Errorf("close bridge: %v", err)
		}
		for session := range s.server.Sessions() { // not every client ends its own
			session.Close()
		}
	})
	return s
}

// memSite is a site on a gate and a store of its own.
func memSite(t *testing.T, opts *mcpbridge.Options, tools ...*gate.Tool) *site {
	t.Helper()
	return newSite(t, openGate(t, memstore.New(), gate.Options{Tools: tools}), opts, tools...)
}

// both are the capabilities of a client that can do both modes.
func both() *mcp.ClientCapabilities {
	return &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
		Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
	}}
}

// connect connects a client in process, over the bridge's transport. p may be nil: nobody can be
// asked.
func connect(t *testing.T, s *site, version string, p *person, change ...func(*mcp.ClientOptions)) *mcp.ClientSession {
	t.Helper()
	there, here := mcp.NewInMemoryTransports()
	return dial(t, s, s.bridge.Transport(there), here, version, p, change...)
}

// connectBare is connect without the bridge's transport.
func connectBare(t *testing.T, s *site, version string, p *person, change ...func(*mcp.ClientOptions)) *mcp.ClientSession {
	t.Helper()
	there, here := mcp.NewInMemoryTransports()
	return dial(t, s, there, here, version, p, change...)
}

func dial(t *testing.T, s *site, there, here mcp.Transport, version string, p *person, change ...func(*mcp.ClientOptions)) *mcp.ClientSession {
	t.Helper()
	ss, err := s.server.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	cs := client(t, here, version, p, change...)
	t.Cleanup(func() {
		cs.Close()
		ss.Wait()
	})
	return cs
}

func client(t *testing.T, here mcp.Transport, version string, p *person, change ...func(*mcp.ClientOptions)) *mcp.ClientSession {
	t.Helper()
	opts := &mcp.ClientOptions{}
	if p != nil {
		opts.ElicitationHandler, opts.Capabilities = p.elicit, both()
	}
	for _, c := range change {
		c(opts)
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, opts).
		Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// byHand makes the client return what the server asks.
func byHand(o *mcp.ClientOptions) { o.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true} }

func call(t *testing.T, cs *mcp.ClientSession, tool, arguments string) *mcp.CallToolResult {
	t.Helper()
	return send(t, cs, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
}

func send(t *testing.T, cs *mcp.ClientSession, params *mcp.CallToolParams) *mcp.CallToolResult {
	t.Helper()
	result, err := cs.CallTool(t.Context(), params)
	if err != nil {
		t.Fatalf("call %s: %v", params.Name, err)
	}
	return result
}

// A counter counts effects.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *counter) want(t *testing.T, n int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n != n {
		t.Errorf("%d effects, want %d", c.n, n)
	}
}

// A clock that only moves when it is told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

// newClock begins now: the SDK compares the expiration of tokens with its own clock.
func newClock() *clock { return &clock{now: time.Now().UTC().Truncate(time.Second)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
