package acpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/gate"
)

// A peer is what the bridge needs of the client's end: small, so that what the SDK adds to its
// connection does not matter here.
type peer interface {
	SessionUpdate(ctx context.Context, n acp.SessionNotification) error
	CallExtension(ctx context.Context, method string, params any) (json.RawMessage, error)
	NotifyExtension(ctx context.Context, method string, params any) error
	Done() <-chan struct{}
}

var _ peer = (*acp.AgentSideConnection)(nil)

// A Bridge puts a gate behind one ACP connection. It is safe for concurrent use. Several bridges,
// of one process or many, may stand on one gate or one store.
type Bridge struct {
	gate  *gate.Gate
	face  *gate.Face
	opts  Options
	metas string // the name in _meta under which a prompt brings its turn; nobody else knows it

	closing   chan struct{} // closed by Close
	connected chan struct{} // closed when the fields up to the blank line are set
	peer      peer
	out       *outbound
	whole     bool // the agent has all methods of the SDK's interface

	mu       sync.Mutex // guards what follows
	used     bool       // Connect was called
	closed   bool
	client   *acp.Implementation
	can      capabilities
	sessions map[acp.SessionId]*session
	count    int              // of all turns there were
	turns    map[string]*Turn // that were read and are not finished, by the key in their _meta
	owed     []*Turn          // that are over, and whose responses were not sent
	gone     bool             // no responses are sent any more
	alive    sync.WaitGroup   // turns, up to their responses
}

// A session is what the bridge knows of one that has a turn: its line of questions.
type session struct{ line line }

// New makes a bridge from the gate to a connection. The gate stays the caller's.
func New(g *gate.Gate, opts *Options) (*Bridge, error) {
	if g == nil {
		return nil, errors.New("make bridge: gate must not be nil")
	}
	o, err := opts.complete()
	if err != nil {
		return nil, fmt.Errorf("make bridge: %w", err)
	}
	b := &Bridge{
		gate: g, opts: o, metas: "parley/" + newKey(), closing: make(chan struct{}), connected: make(chan struct{}),
		sessions: map[acp.SessionId]*session{}, turns: map[string]*Turn{},
	}
	if b.face, err = g.NewFace(o.Name, &gate.FaceOptions{Fits: b.Fits}); err != nil {
		return nil, fmt.Errorf("make bridge: %w", err)
	}
	return b, nil
}

// Connect connects the agent with the client that writes to in and reads from out, as
// [acp.NewAgentSideConnection] does, and returns the connection for what the agent asks of the
// client beside. A bridge has one connection.
//
// The agent's Prompt finds the turn with [TurnOf], and its context ends with the turn, whatever the
// SDK makes of it. There is nothing to do in Cancel and CloseSession.
//
// Writing does not wait for the client to read. Where out is closed, or its reader is gone, the
// connection is lost.
func (b *Bridge) Connect(agent Agent, out io.Writer, in io.Reader) (*acp.AgentSideConnection, error) {
	if agent == nil || out == nil || in == nil {
		return nil, errors.New("connect: agent, out and in must not be nil")
	}
	local := out == io.Writer(os.Stdout) && in == io.Reader(os.Stdin)
	if b.opts.Authorize == nil && !local {
		return nil, errors.New("connect: not the process's own standard input and output: set Options.Authorize")
	}
	b.mu.Lock()
	used := b.used || b.closed
	b.used = true
	b.mu.Unlock()
	if used {
		return nil, errors.New("connect: the bridge is closed, or has a connection")
	}
	b.out = newOutbound(out, b.sent)
	whole, _ := agent.(acp.Agent)
	b.whole = whole != nil
	conn := acp.NewAgentSideConnection(&served{whole, agent, b}, b.out, newInbound(b, in))
	conn.SetLogger(b.opts.Logger)
	b.peer = conn
	go b.out.write(conn.Done(), b.closing)
	go func() { // the SDK gives up over a line that is too long, and reads no more
		<-conn.Done()
		b.lost()
	}()
	close(b.connected)
	return conn, nil
}

// Close lets no turn begin, breaks off those that go on without recording anything, waits for
// their handlers and for the agent's Prompt (R32), and until their responses are written. A client
// that takes no message for a second is given up, and the connection with it. Their questions stay
// open in the ledger. The gate and its other faces are left alone. Where ctx ends first, contexts
// of handlers are cancelled and Close returns ctx's error. The connection is the caller's, who ends
// it with in and out; a write that was given up goes on until then.
func (b *Bridge) Close(ctx context.Context) error {
	b.mu.Lock()
	if !b.closed {
		close(b.closing)
	}
	b.closed = true
	used := b.used
	for _, t := range b.turns {
		t.cancel(errClosing)
	}
	b.mu.Unlock()
	err := b.face.Close(ctx)
	done := make(chan struct{})
	go func() {
		b.alive.Wait()
		if used {
			<-b.connected // by a Connect that goes on at the same time
			b.out.wait(ctx, 0)
		}
		close(done)
	}()
	select {
	case <-done:
		return errors.Join(err, ctx.Err())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// session returns the session of that id. b.mu is held.
func (b *Bridge) session(id acp.SessionId) *session {
	s := b.sessions[id]
	if s == nil {
		s = &session{line: line{most: b.opts.MaxOpen}}
		b.sessions[id] = s
	}
	return s
}
