package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// An Agent runs an agent of eino's under a gate. It is safe for concurrent use; several runs go on
// at once.
type Agent struct {
	face   *gate.Face
	agents pool
	opts   Options
}

// Options are the options of an Agent. The zero field is the documented default.
type Options struct {
	// Name is the name of the agent's face. It stays the same over restarts: runs and tokens are
	// good for it alone. Default: "agent:" and the name of eino's agent.
	Name string
	// Streaming lets models and tools stream in the runs that are started here. A run stays as it
	// was started, whoever goes on with it.
	Streaming bool
	// PollInterval is how often Wait looks. Default: one second.
	PollInterval time.Duration
	// Fits is [gate.FaceOptions.Fits] of the agent's face: whether who shows the questions of its
	// tools can show them as they are. Default: all fit.
	Fits func(p *gate.Prompt) error
}

// New returns an Agent for eino's. It builds one at once, and later as many as there are runs at
// the same time. The gate has all tools that eino's agent was given with [Tool] and [Wrap]; its
// models are wrapped with [Model].
func New(ctx context.Context, g *gate.Gate, build Build, opts *Options) (*Agent, error) {
	if g == nil || build == nil {
		return nil, errors.New("make agent: a gate and a function that builds eino's agent are needed")
	}
	a := &Agent{agents: pool{build: build}}
	if opts != nil {
		a.opts = *opts
	}
	if a.opts.PollInterval < 0 {
		return nil, fmt.Errorf("make agent: poll interval %v is negative", a.opts.PollInterval)
	}
	if a.opts.PollInterval == 0 {
		a.opts.PollInterval = time.Second
	}
	eino, err := a.agents.take(ctx)
	if err != nil {
		return nil, fmt.Errorf("make agent: %w", err)
	}
	a.agents.put(eino)
	if a.opts.Name == "" {
		a.opts.Name = "agent:" + eino.Name(ctx)
	}
	if a.face, err = g.NewFace(a.opts.Name, &gate.FaceOptions{Fits: a.opts.Fits}); err != nil {
		return nil, fmt.Errorf("make agent: %w", err)
	}
	return a, nil
}

// Close lets no run begin or go on through this agent and waits for those that do, each of which
// stops at its next tool call. It is [gate.Face.Close].
func (a *Agent) Close(ctx context.Context) error { return a.face.Close(ctx) }

// A Start begins a run. Scope and Facilities are the host's grant (see [gate.Call]).
type Start struct {
	Scope      string
	Messages   []*schema.Message
	Facilities []interrupt.Facility
	// Conversation is the host's name for what the messages belong to. While a run of the same
	// conversation and scope has not ended, another one is ErrConversationOpen; with CancelOpen the
	// questions of that run are cancelled first, which its tools and its model are told, and it
	// goes on to its end; while somebody else goes on with it that is gate.ErrBusy. Empty: the run
	// stands alone.
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

// Inspect returns where a run stands, its open questions without tokens. Nothing runs.
func (a *Agent) Inspect(ctx context.Context, scope string, id checkpoint.ID) (*Run, error) {
	s, err := a.face.InspectRun(ctx, scope, id)
	if err != nil {
		return nil, fmt.Errorf("inspect run %s: %w", id, err)
	}
	return a.withQuestions(ctx, scope, s)
}

func (a *Agent) withQuestions(ctx context.Context, scope string, s gate.RunSummary) (*Run, error) {
	run, err := ofSummary(s)
	if err != nil {
		return run, fmt.Errorf("inspect run %s: %w", s.ID, err)
	}
	known, err := readNotes(s.Notes)
	if err != nil {
		return run, fmt.Errorf("inspect run %s: %w: %w", s.ID, ErrCheckpoint, err)
	}
	for _, e := range known.Calls {
		id, err := checkpoint.ParseID(e.Interaction)
		if err != nil {
			continue // the call waits for no person
		}
		in, err := a.face.InspectID(ctx, scope, id)
		if err != nil || in.Status != checkpoint.Open {
			continue // answered, expired or gone: it is no open question
		}
		run.Questions = append(run.Questions, Question{Origin: e.origin(), Outcome: gate.Outcome{Interaction: id, Prompt: in.Prompt}})
	}
	return run, nil
}

// A Page is one page of a listing. Next is empty on the last one.
type Page struct {
	Runs []*Run
	Next string
}

// Runs returns the runs of a scope page by page, oldest first, their open questions without tokens.
func (a *Agent) Runs(ctx context.Context, q gate.RunQuery) (Page, error) {
	list, err := a.face.Runs(ctx, q)
	if err != nil {
		return Page{}, fmt.Errorf("list runs: %w", err)
	}
	page := Page{Next: list.Next}
	for _, s := range list.Runs {
		run, err := a.withQuestions(ctx, q.Scope, s)
		if problem := errors.Join(s.Problem, err); problem != nil { // it is listed, and the others with it
			run.Problems = append(run.Problems, Problem{Err: problem})
		}
		page.Runs = append(page.Runs, run)
	}
	return page, nil
}
