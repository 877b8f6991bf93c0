package acpagent

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/cloudwego/eino/schema"
	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/agent"
	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// conversation is the name of a session to the agent.
func conversation(session acp.SessionId) string { return "acp/" + string(session) }

// Start runs the agent with these messages until its run has ended, and returns it. Questions are
// put to the person one after the other. Where the turn was cancelled, so was the run, and the
// error matches [gate.ErrCancelled]. After any other error a run that came with it waits: [GoOn]
// goes on with it.
func Start(ctx context.Context, turn *acpbridge.Turn, a *agent.Agent, messages []*schema.Message) (*agent.Run, error) {
	r, err := begin(ctx, turn, a)
	if err != nil {
		return nil, err
	}
	return r.toEnd(a.Start(ctx, agent.Start{
		Scope: r.scope, Messages: messages, Facilities: turn.Facilities(), Conversation: conversation(turn.Session()),
	}).All())
}

// GoOn goes on with the run that an earlier turn of the session left, to its end, as [Start] does;
// its questions are put again. A run that another window goes on with is waited for until it stops.
// GoOn returns nil where there is none.
func GoOn(ctx context.Context, turn *acpbridge.Turn, a *agent.Agent) (*agent.Run, error) {
	r, err := begin(ctx, turn, a)
	if err != nil {
		return nil, err
	}
	left, err := find(ctx, a, r.scope, turn.Session())
	if err != nil || left == nil {
		return nil, err
	}
	return r.toEnd(r.whenFree(ctx, agent.Resume{Scope: r.scope, Run: left.ID, Facilities: turn.Facilities()}))
}

// End ends the run that an earlier turn of the session left, for good, as a turn that is cancelled
// does: for one with which [GoOn] fails and which would hold up every message. Where there is none
// it does nothing.
func End(ctx context.Context, turn *acpbridge.Turn, a *agent.Agent) error {
	r, err := begin(ctx, turn, a)
	if err != nil {
		return err
	}
	left, err := find(ctx, a, r.scope, turn.Session())
	if err != nil || left == nil {
		return err
	}
	run, err := r.show(a.Cancel(context.WithoutCancel(ctx), r.scope, left.ID).All())
	r.settle(run, true)
	return err
}

// Waiting shows the calls of the session that wait for a person in the editor as pending, and
// returns their questions without tokens. It is for session/load and session/resume. Nothing runs.
func Waiting(ctx context.Context, b *acpbridge.Bridge, a *agent.Agent, session acp.SessionId) ([]agent.Question, error) {
	scope, err := b.Scope(ctx, session)
	if err != nil {
		return nil, err
	}
	left, err := find(ctx, a, scope, session)
	if err != nil || left == nil {
		return nil, err
	}
	for _, q := range left.Questions {
		if err := b.ShowWaiting(session, callOf(q)); err != nil {
			return nil, err
		}
	}
	return left.Questions, nil
}

// callOf is the call that a question is of. The arguments are as they were shown.
func callOf(q agent.Question) acpbridge.Call {
	return acpbridge.Call{ID: acp.ToolCallId(q.StartID), Tool: q.Tool, Arguments: q.Prompt.Arguments}
}

// find returns the session's run that has not ended.
func find(ctx context.Context, a *agent.Agent, scope string, session acp.SessionId) (*agent.Run, error) {
	query := gate.RunQuery{Scope: scope}
	for {
		page, err := a.Runs(ctx, query)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(page.Runs, func(r *agent.Run) bool { return r.Conversation == conversation(session) })
		if i >= 0 {
			return page.Runs[i], nil
		}
		if query.After = page.Next; query.After == "" {
			return nil, nil
		}
	}
}

// A running is one run in one turn.
type running struct {
	ctx   context.Context
	turn  *acpbridge.Turn
	agent *agent.Agent
	scope string
	shown map[string]*acpbridge.ShownCall // by start ID
	over  map[string]bool                 // the calls that have a terminal status
	left  map[string]bool                 // the calls whose questions wait for another turn
	id    checkpoint.ID                   // zero: it has not begun
	// messages begins the ids of the model's messages. It is this turn's: what is told again after
	// a crash is another message, since an editor adds to those that it has.
	messages string
}

func begin(ctx context.Context, turn *acpbridge.Turn, a *agent.Agent) (*running, error) {
	if turn == nil || a == nil {
		return nil, errors.New("run agent: there is no turn, or no agent")
	}
	scope, err := turn.Scope(ctx)
	if err != nil {
		return nil, err
	}
	return &running{
		ctx: ctx, turn: turn, agent: a, scope: scope, messages: rand.Text(),
		shown: map[string]*acpbridge.ShownCall{}, over: map[string]bool{}, left: map[string]bool{},
	}, nil
}

// toEnd shows what happens and asks what is asked, until the run ends or can go on no more.
func (r *running) toEnd(events iter.Seq2[agent.Event, error]) (*agent.Run, error) {
	run, err := r.converse(events)
	r.settle(run, true)
	return run, err
}

func (r *running) converse(events iter.Seq2[agent.Event, error]) (*agent.Run, error) {
	var trouble error // why a question was left
	for {
		run, err := r.show(events)
		r.settle(run, false)
		if r.turn.Cancelled() {
			return r.cancel(run)
		}
		if err != nil || run == nil || run.Status != agent.Waiting {
			return run, err
		}
		i := slices.IndexFunc(run.Questions, func(q agent.Question) bool { return !r.left[q.StartID] })
		if i < 0 {
			return run, errors.Join(trouble, problemsOf(run))
		}
		q := run.Questions[i]
		answers, shown, err := r.ask(q, refusalOf(run, q))
		if r.turn.Cancelled() {
			return r.cancel(run)
		}
		if err != nil {
			r.left[q.StartID], trouble = true, errors.Join(trouble, err)
			if shown == nil || r.end(q.StartID, nil, err) != nil || r.ctx.Err() != nil {
				return run, trouble // nobody is there any more
			}
		}
		scope, refused := r.turn.Scope(context.WithoutCancel(r.ctx)) // anew in every round (R24)
		if refused != nil {
			return run, errors.Join(trouble, refused)
		}
		resume := agent.Resume{Scope: scope, Run: run.ID, Facilities: r.turn.Facilities()}
		switch {
		case answers != nil:
			resume.Answers = []agent.Answer{{Interaction: q.Interaction, Token: q.Prompt.Token, Answers: answers}}
			events = r.whenFree(shown.Answered(r.ctx), resume)
		default: // it was left, or answered by another road
			events = r.whenFree(r.ctx, resume)
		}
	}
}

// whenFree resumes the run when nobody else goes on with it, as another window of the session does
// whose person answered first. What is open then is asked here too: that window may be closed.
func (r *running) whenFree(ctx context.Context, resume agent.Resume) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for {
			busy := false
			for event, err := range r.agent.Resume(ctx, resume).All() {
				if busy = errors.Is(err, gate.ErrBusy); busy {
					break
				}
				if !yield(event, err) {
					return
				}
			}
			if !busy {
				return
			}
			select {
			case <-time.After(pollInterval):
			case <-r.ctx.Done():
				yield(nil, r.ctx.Err())
				return
			}
		}
	}
}

// pollInterval is how often it is looked whether a run that goes on elsewhere stands.
const pollInterval = time.Second

// ask puts a question of the run to the person.
func (r *running) ask(q agent.Question, refused error) (gate.Answers, *acpbridge.ShownCall, error) {
	shown, err := r.call(callOf(q))
	if err != nil {
		return nil, shown, err
	}
	if q.OutOfBand {
		return nil, shown, &gate.Error{Code: gate.ErrConfirmationRequired, Message: "a person has to answer first, elsewhere", Link: q.Link}
	}
	answers, err := shown.Ask(r.ctx, r.scope, q.Prompt, refused)
	return answers, shown, err
}

// refusalOf is why the answer before was refused, where one was.
func refusalOf(run *agent.Run, q agent.Question) error {
	for _, p := range run.Problems {
		if p.StartID == q.StartID {
			return p.Err
		}
	}
	return nil
}

// problemsOf are why the run waits that waits for no person.
func problemsOf(run *agent.Run) error {
	var errs []error
	for _, p := range run.Problems {
		errs = append(errs, p.Err)
	}
	return errors.Join(errs...)
}

// cancel ends the run of a turn that was cancelled.
func (r *running) cancel(run *agent.Run) (*agent.Run, error) {
	over := &gate.Error{Code: gate.ErrCancelled, Message: "the turn was cancelled"}
	if r.id.IsZero() || run != nil && run.Status != agent.Waiting {
		return run, over // there is nothing to end
	}
	run, failed := r.show(r.agent.Cancel(context.WithoutCancel(r.ctx), r.scope, r.id).All())
	return run, errors.Join(over, failed)
}
