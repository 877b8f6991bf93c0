package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A Start begins a run. Scope and Facilities are the host's grant (see [gate.Call]).
type Start struct {
	Scope      string
	Messages   []*schema.Message
	Facilities []interrupt.Facility
	// Conversation is the host's name for what the messages belong to. While a run of the same
	// conversation and scope has not ended, another one is ErrConversationOpen; with CancelOpen the
	// questions of that run are cancelled first, which its tools and its model are told, and it
	// goes on to its end. Empty: the run stands alone.
	Conversation string
	CancelOpen   bool
}

// Start runs the agent until it stops: it finished, or people are needed. Nothing happens before
// its events are ranged over. Cancelling ctx breaks off what models and tools do; the run stops
// there, and what it asked until then is kept.
func (a *Agent) Start(ctx context.Context, s Start) Events {
	return eventsOf(ctx, func(ctx context.Context, tell func(Event)) (*Run, error) { return a.start(ctx, s, tell) })
}

func (a *Agent) start(ctx context.Context, s Start, tell func(Event)) (*Run, error) {
	input, err := encodeMessages(s.Messages)
	if err != nil {
		return nil, fmt.Errorf("start run: %w", err)
	}
	noted, err := json.Marshal(notes{V: notesVersion, Conversation: s.Conversation, Streaming: a.opts.Streaming})
	if err != nil {
		return nil, fmt.Errorf("start run: %w", err)
	}
	begun := gate.RunStart{Scope: s.Scope, Key: s.Conversation, Notes: noted, Keep: map[string][]byte{inputName: input}}
	run, err := a.begin(ctx, s, begun, tell)
	if err != nil {
		return nil, fmt.Errorf("start run: %w", err)
	}
	g := a.going(ctx, run, s.Scope, s.Facilities, tell)
	g.begun = s.Messages
	return a.goOn(ctx, g)
}

// A Resume goes on with a run.
type Resume struct {
	Scope      string
	Run        checkpoint.ID
	Answers    []Answer
	Facilities []interrupt.Facility
}

// Resume gives the answers and goes on with the run until it stops again. Questions without an
// answer stay open with the tokens they have. Without answers it goes on with what was answered by
// another road meanwhile, and tries again what could not go on.
//
// A run that has ended is returned as it is, and nothing runs. One that goes on elsewhere is
// [gate.ErrBusy], an unknown one and one of another scope or agent [gate.ErrInvalidContinuation].
// An answer that is refused is a [Problem] of the run, with the question still open. One with a
// token is recorded when its call goes on: a run that stops before leaves the question open, too.
// One to a call that has ended since is the problem [gate.ErrAlreadyAnswered], so that the same
// Resume can be made again.
func (a *Agent) Resume(ctx context.Context, r Resume) Events {
	return eventsOf(ctx, func(ctx context.Context, tell func(Event)) (*Run, error) { return a.resume(ctx, r, tell) })
}

func (a *Agent) resume(ctx context.Context, r Resume, tell func(Event)) (*Run, error) {
	s, err := a.face.InspectRun(ctx, r.Scope, r.Run)
	if err != nil {
		return nil, fmt.Errorf("resume run %s: %w", r.Run, err)
	}
	if s.Status == checkpoint.RunEnded {
		return ended(s)
	}
	known, err := readNotes(s.Notes)
	if err != nil {
		return nil, fmt.Errorf("resume run %s: %w: %w", r.Run, ErrCheckpoint, err)
	}
	answers, refused, err := a.give(ctx, r, known)
	if err != nil {
		return nil, fmt.Errorf("resume run %s: %w", r.Run, err)
	}
	run, err := a.face.ResumeRun(ctx, r.Scope, r.Run)
	if errors.Is(err, gate.ErrAlreadyCompleted) { // it ended meanwhile
		if s, err = a.face.InspectRun(ctx, r.Scope, r.Run); err == nil {
			return ended(s)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("resume run %s: %w", r.Run, err)
	}
	g := a.going(ctx, run, r.Scope, r.Facilities, tell)
	g.answers, g.refused = answers, refused
	return a.goOn(ctx, g)
}

// ended is a run that has ended, to whoever wants to go on with it.
func ended(s gate.RunSummary) (*Run, error) {
	run, err := ofSummary(s)
	if err != nil {
		err = fmt.Errorf("resume run %s: %w", s.ID, err)
	}
	return run, err
}
