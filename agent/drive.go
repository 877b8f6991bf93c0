package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/gate"
)

// An end is how a drive of an agent of eino's ended.
type end struct {
	interrupted bool                                  // it stopped and can be resumed
	foreign     bool                                  // something raised an interrupt that is none of ours
	asking      map[string]bool                       // the agents whose calls wait, by their addresses
	message     string                                // the last one
	unread      *schema.StreamReader[*schema.Message] // a tool's result that may be the last one
	err         error
}

// drive runs an agent of eino's until it stops: from the checkpoint with that id where there is
// one, else from the messages that input returns. When it returns, nothing of the agent writes a
// stream.
func (g *going) drive(ctx context.Context, agents *pool, id string, input func() ([]*schema.Message, error)) (e end) {
	e.asking = map[string]bool{}
	open := &streams{}
	defer open.end()
	ctx = context.WithValue(ctx, streamsKey{}, open)
	defer func() {
		if value := recover(); value != nil { // eino panics where it does not understand a checkpoint
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
		// Without targets, eino enters every call that waits, and the gate decides what becomes of
		// it.
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
	agents.put(eino) // not after a panic, which leaves it in an unknown state
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

// take takes one event of eino's. Of several errors it keeps the first.
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
		e.unread = output.MessageStream // not read here: other events must not wait for the tool that writes it
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

// drop closes the stream of a tool's result that is not the last message.
func (e *end) drop() {
	if e.unread != nil {
		e.unread.Close()
		e.unread = nil
	}
}

// readLast reads the stream that is the last message, where there is one: eino lets a tool's result
// be the agent's (return directly).
func (e *end) readLast() {
	defer e.drop()
	if e.unread == nil || e.err != nil || e.interrupted {
		return
	}
	whole, err := schema.ConcatMessageStream(e.unread)
	if e.unread = nil; err != nil { // concatenating has closed it
		e.err = err
		return
	}
	e.message = whole.Content
}

// askingAgent is the address of the agent that made the call at address.
func askingAgent(address adk.Address) string {
	for len(address) > 0 && address[len(address)-1].Type != adk.AddressSegmentAgent {
		address = address[:len(address)-1]
	}
	return address.String()
}

// textOf returns the text of a model or a tool. It is told elsewhere ([turn.tell]): eino's events
// come too late for that, when the calls that the text announces have begun already.
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
		if piece != nil { // eino says what is wrong with one that is
			text += piece.Content
		}
	}
}
