package acpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/elicit"
	"github.com/parley-go/parley/interrupt"
)

// A Call is a call of one of the gate's tools.
type Call struct {
	// ID is the tool call's in the editor, and makes the start ID of the gate's call (R31): it is
	// unique in the session, also over restarts.
	ID        acp.ToolCallId
	Tool      string
	Arguments json.RawMessage // a JSON object; nil: one without members
}

func (c Call) arguments() json.RawMessage {
	if c.Arguments == nil {
		return json.RawMessage("{}")
	}
	return c.Arguments
}

// CallTool makes a call and shows it in the editor: what it asks is put to the person, and it
// returns the tool's result. Any other end is a [*gate.Error], and the turn goes on, unless
// [Turn.Cancelled]. The code is unavailable where the connection or the bridge is gone, or ctx has
// ended; a question that was open then waits.
//
// A call that comes again with its ID, in this turn or a later one, after a restart too, joins what
// it began: an open question is put again, work that is going on in another window is waited for,
// and work that is done is not done again.
func (t *Turn) CallTool(ctx context.Context, c Call) (json.RawMessage, error) {
	leave, err := t.enter()
	if err != nil {
		return nil, unavailable(err)
	}
	defer leave()
	if t.ctx.Err() != nil || ctx.Err() != nil {
		return nil, t.stopped(ctx)
	}
	shown, err := t.show(c, true)
	if err != nil {
		return nil, err
	}
	result, err := t.converse(ctx, shown)
	if failed := shown.Ended(result, err); failed != nil && err == nil {
		t.bridge.opts.Logger.WarnContext(ctx, "the end of a call was not shown", "tool", c.Tool, "err", failed)
	}
	return result, err
}

// converse makes the gate's call, round by round.
func (t *Turn) converse(ctx context.Context, shown *ShownCall) (json.RawMessage, error) {
	over, stop := context.WithCancel(t.ctx)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	// What is being recorded is not broken off. The handler is told, by Over.
	recording := context.WithoutCancel(ctx)
	progress := &gate.Progress{Sink: func(_ context.Context, u interrupt.Update) error { return shown.Progress(u) }}
	defer func() {
		for _, err := range progress.Errors() {
			t.bridge.opts.Logger.DebugContext(ctx, "progress was not shown", "tool", shown.call.Tool, "err", err)
		}
	}()
	request := gate.Call{
		Tool: shown.call.Tool, Arguments: shown.call.arguments(), Session: string(t.sessionID), Over: over.Done(),
		StartID: startID(t.sessionID, shown.call.ID), Progress: progress,
	}
	var asked *gate.Prompt
	for {
		if request.Answers == nil && over.Err() != nil {
			return nil, t.stopped(ctx)
		}
		var err error
		if request.Scope, err = t.bridge.scope(recording, t.sessionID, request.Tool); err != nil {
			return nil, err
		}
		request.Facilities = t.Facilities()
		if request.Answers != nil && over.Err() != nil { // while the host was asked
			if !t.Cancelled() {
				return nil, waits(context.Cause(over), asked)
			}
			request.Answers = cancelled(asked)
		}
		outcome, err := t.invoke(over, shown.Answered(recording), request)
		prompt, refused := outcome.Prompt, error(nil)
		var e *gate.Error
		switch errors.As(err, &e); {
		case err != nil && e == nil: // it was waiting
			return nil, t.stopped(ctx)
		case err == nil && prompt == nil:
			return outcome.Result, nil
		case err == nil && outcome.OutOfBand:
			return nil, elsewhere(outcome)
		case err == nil:
			asked = prompt
		case request.Answers != nil && late(ctx, shown, e):
			request.Answers = nil // the other one counts
			continue
		case e.Code == gate.ErrBusy && request.Token == "" && !e.Interaction.IsZero(): // another window is at work with it
			select {
			case <-time.After(t.bridge.opts.PollInterval):
			case <-over.Done():
			}
			continue
		case asked != nil && request.Answers != nil && elicit.AskAgain(e):
			prompt, refused = asked, e
		default:
			return nil, err
		}
		request.Token = prompt.Token
		if request.Answers, err = shown.Ask(ctx, request.Scope, prompt, refused); err != nil {
			return nil, err
		}
	}
}

// invoke makes a request of the gate. One that goes on with an answer by another road waits where
// somebody else is at it already, such as another window.
func (t *Turn) invoke(over, recording context.Context, request gate.Call) (gate.Outcome, error) {
	if request.Token == "" || request.Answers != nil {
		return t.bridge.face.Invoke(recording, request)
	}
	waiting, stop := context.WithCancel(recording)
	defer stop()
	defer context.AfterFunc(over, stop)()
	return t.bridge.face.Wait(waiting, request)
}

// late reports whether the question was answered by another road, or in another window that is at
// work with the same answer.
func late(ctx context.Context, shown *ShownCall, e *gate.Error) bool {
	switch e.Code {
	case gate.ErrAlreadyAnswered, gate.ErrAnswerConflict:
		return true
	case gate.ErrBusy:
		return shown.asked.elsewhere(ctx) // else there is no room for the answer
	}
	return false
}
