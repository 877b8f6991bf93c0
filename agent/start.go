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

// A Start says what a run begins with.
type Start struct {
	// Scope and Facilities are what the host grants to the run's calls, as in [gate.Call].
	Scope      string
	Messages   []*schema.Message
	Facilities []interrupt.Facility
	// Conversation is the host's name for the conversation to which the messages belong. While a
	// run of it in the same scope has not ended, Start is ErrConversationOpen, or does what
	// CancelOpen says. Empty: the run belongs to none.
	Conversation string
	// CancelOpen first brings the conversation's other run to its end: its open questions are
	// cancelled, its tools and its model are told so, and it goes on with that. Where one of the
	// tools keeps its question open (R17), the run is ended as with [Agent.Cancel]. Where somebody
	// else goes on with that run now, Start is [gate.ErrBusy].
	CancelOpen bool
}

// Start begins a run, which goes on until it ends or people are needed. Nothing happens before its
// events are taken. Cancelling ctx cancels what models and tools do; the run stops there, and
// keeps the questions that were asked until then.
//
// An error that comes without a run means that none began: [ErrConversationOpen], [ErrExtra], or
// one of the gate's. Other errors come with the run as it stands.
func (a *Agent) Start(ctx context.Context, s Start) *Events {
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

// A Resume says which run goes on, and with which answers. Scope and Facilities are those of
// [Start].
type Resume struct {
	Scope      string
	Run        checkpoint.ID
	Answers    []Answer // to any number of the run's questions
	Facilities []interrupt.Facility
}

// Resume gives the answers and goes on with the run until it stops again. Questions without an
// answer stay open, with the same tokens. Without answers, the run goes on with what was answered
// by another road, and tries again what had a problem.
//
// A run that has ended is told as it is, and nothing runs. A run that goes on elsewhere is
// [gate.ErrBusy], and no answer is recorded. An unknown run, and one of another scope or agent, is
// [gate.ErrInvalidContinuation].
//
// An answer that is refused is a [Problem] of the run, and its question is still open. An answer
// with a token is recorded when its call goes on; where the run stops before that, the question
// stays open too. An answer to a call that has gone on since is the problem
// [gate.ErrAlreadyAnswered], so whoever does not know whether a Resume arrived can repeat it. Of
// calls that have gone on long ago the run knows nothing more: [gate.ErrInvalidContinuation].
func (a *Agent) Resume(ctx context.Context, r Resume) *Events {
	return eventsOf(ctx, func(ctx context.Context, tell func(Event)) (*Run, error) { return a.resume(ctx, r, tell) })
}

func (a *Agent) resume(ctx context.Context, r Resume, tell func(Event)) (*Run, error) {
	run, ended, err := a.retake(ctx, r.Scope, r.Run)
	if err != nil {
		return ended, fmt.Errorf("resume run %s: %w", r.Run, err)
	}
	if ended != nil {
		return ended, nil
	}
	g := a.going(ctx, run, r.Scope, r.Facilities, tell)
	g.given = r.Answers
	return a.goOn(ctx, g)
}

// retake takes a run that has stopped. Where it has ended, it returns how.
func (a *Agent) retake(ctx context.Context, scope string, id checkpoint.ID) (run *gate.Run, ended *Run, err error) {
	run, err = a.face.ResumeRun(ctx, scope, id)
	if !errors.Is(err, gate.ErrAlreadyCompleted) {
		return run, nil, err
	}
	s, err := a.face.InspectRun(ctx, scope, id)
	if err != nil {
		return nil, nil, err
	}
	ended, err = ofSummary(s)
	return nil, ended, err
}
