package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/gate"
)

// A Build makes an agent of eino's with all that belongs to it, its sub-agents too. It returns a
// new one each time: an agent of eino's v0.7 is not safe in several runs at once, since it compiles
// its graph anew, in place, whenever it is run. Models and tools can be the same in all of them.
type Build func(ctx context.Context) (adk.Agent, error)

// A pool has agents of eino's of one kind, each of which is in one run at a time.
type pool struct {
	build Build
	mu    sync.Mutex
	idle  []adk.Agent
}

// take returns an agent that is in no run.
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

// An end is what an agent of eino's came to.
type end struct {
	interrupted bool
	foreign     bool                                  // with an interrupt that is none of ours
	asking      map[string]bool                       // the agents whose calls wait, by their addresses
	message     string                                // the last one
	unread      *schema.StreamReader[*schema.Message] // a tool's result that may be the last one
	err         error
}

// drive runs an agent of eino's to where it stops: from its checkpoint of that name, where there is
// one, else with what input returns.
func (g *going) drive(ctx context.Context, agents *pool, id string, input func() ([]*schema.Message, error)) (e end) {
	e.asking = map[string]bool{}
	open := &streams{}
	defer open.end()
	ctx = context.WithValue(ctx, streamsKey{}, open)
	defer func() {
		if value := recover(); value != nil { // eino panics on what it does not understand in a checkpoint
			e.err = fmt.Errorf("%w: %w", ErrCheckpoint, &gate.PanicError{Value: value, Stack: debug.Stack()})
		}
	}()
	eino, err := agents.take(ctx)
	if err != nil {
		return end{err: err}
	}
	runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: eino, EnableStreaming: g.noted.Streaming, CheckPointStore: &g.store})
	var events *adk.AsyncIterator[*adk.AgentEvent]
	if there, _ := g.store.has(id); there {
		// No targets: every call that waits is entered again, and the gate says what becomes of it.
		if events, err = runner.ResumeWithParams(ctx, id, &adk.ResumeParams{}); err != nil {
			return end{err: fmt.Errorf("%w: %w", ErrCheckpoint, err)}
		}
	} else {
		messages, err := input()
		if err != nil {
			return end{err: err}
		}
		events = runner.Run(ctx, messages, adk.WithCheckPointID(id))
	}
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		e.take(g, event)
	}
	e.readLast()
	agents.put(eino) // not after a panic: nobody knows what is left of it then
	if _, written := g.store.has(id); e.interrupted && !written && e.err == nil {
		e.err = fmt.Errorf("%w: eino stopped without one", ErrCheckpoint)
	}
	switch {
	case e.foreign:
		e.err = ErrForeignInterrupt
	case len(e.asking) > 1:
		e.err = ErrAgents
	}
	return e
}

// take takes one event of eino's. The first error stays.
func (e *end) take(g *going, event *adk.AgentEvent) {
	if event.Err != nil && e.err == nil {
		e.err = event.Err
	}
	if event.Action != nil && event.Action.Interrupted != nil {
		e.interrupted = true
		for _, point := range event.Action.Interrupted.InterruptContexts {
			if !point.IsRootCause {
				continue
			}
			e.foreign = !g.surfaces(point.Info) || e.foreign
			e.asking[askingAgent(point.Address)] = true
		}
	}
	if event.Output == nil || event.Output.MessageOutput == nil {
		return
	}
	output := event.Output.MessageOutput
	e.drop()
	switch {
	case output.Role == schema.Tool && output.MessageStream != nil:
		e.unread = output.MessageStream // while a tool writes, eino's other events are not to wait for it
	case output.Role == schema.Tool && output.Message != nil:
		e.message = output.Message.Content
	default:
		text, err := textOf(output)
		if err != nil && e.err == nil {
			e.err = err
		}
		e.message = text
	}
}

// drop closes a stream that was not the last message.
func (e *end) drop() {
	if e.unread != nil {
		e.unread.Close()
		e.unread = nil
	}
}

// readLast reads the stream that is the last message: that of a tool whose result is returned
// directly.
func (e *end) readLast() {
	defer e.drop()
	if e.unread == nil || e.err != nil || e.interrupted {
		return
	}
	whole, err := schema.ConcatMessageStream(e.unread)
	if e.unread = nil; err != nil { // it is closed
		e.err = err
		return
	}
	e.message = whole.Content
}

// askingAgent is the address of the agent whose call stands at an address.
func askingAgent(address adk.Address) string {
	for len(address) > 0 && address[len(address)-1].Type != adk.AddressSegmentAgent {
		address = address[:len(address)-1]
	}
	return address.String()
}

// textOf returns the text of a model or a tool. It is not told here: eino's events come late, when
// what the text announced has begun already.
func textOf(output *adk.MessageVariant) (string, error) {
	if !output.IsStreaming {
		if output.Message == nil {
			return "", nil
		}
		return output.Message.Content, nil
	}
	defer output.MessageStream.Close()
	text := ""
	for {
		piece, err := output.MessageStream.Recv()
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return text, err
		}
		text += piece.Content
	}
}
