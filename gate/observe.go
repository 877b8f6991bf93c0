package gate

import (
	"context"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// An Observer is told of transitions after they were committed: what a notifier or a metric needs,
// and nothing secret. [Options.Observer] says when it is called.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// An Event is a transition that was committed. It holds no arguments, no answers, no token and no
// word of a question; whoever needs more looks it up with [Face.InspectID].
type Event struct {
	// Entry is what the audit trail keeps: which interaction, what happened, by whom. Its Action
	// tells events apart: [checkpoint.ActionAsked] for a question that is open, ActionAnswered,
	// ActionEnded (finished where its Status is, else failed), ActionExpired, and the others.
	//
	// An attempt that ended is not the interaction's end where its tool recovers or repeats: an
	// ActionRecovered can follow. Nothing follows an ActionExpired but the removal.
	Entry checkpoint.Entry
	// Before is the state that the interaction left, zero where there was no record. A question was
	// open until now where it is [checkpoint.Open] and the entry's Status is another one, or the
	// Action ActionRemoved.
	Before checkpoint.Status
	// Since is when the transition before this one was committed, zero where there was none or it
	// cannot be told. Where Before is [checkpoint.Started] or Running, an attempt was claimed then,
	// and this is what it came to.
	Since time.Time
	// Scope is the interaction's scope, in the host's words; empty where a sweep or somebody of
	// another scope brought it about.
	Scope string
	// Questions are the types of the latest prompt's questions, Asked is when it was first shown,
	// and Deadline until when it can be answered. They are zero where there was no prompt.
	Questions []string
	Asked     time.Time
	Deadline  time.Time
}

// tell calls the observer, where there is one. A panic of its changes nothing.
func (g *Gate) tell(ctx context.Context, e Event) {
	if g.opts.Observer == nil {
		return
	}
	err := safely(func() error { g.opts.Observer.Observe(outside(ctx), e); return nil })
	if err != nil {
		g.log.ErrorContext(ctx, "observer", "interaction", e.Entry.Interaction, "action", e.Entry.Action, "error", err)
	}
}
