package gate

import (
	"bytes"
	"context"
	"errors"
	"math"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/resume"
)

// Invoke runs a tool, or goes on with one. It returns a result, or a prompt to put to a person,
// whose token and answers the next Invoke brings; any other end is an [*Error], which callers
// branch on with errors.Is and the codes.
//
// The tool's handler runs in the calling goroutine, at most once for one answer, except as the tool
// chose (see [Replay]). A prompt is durable before Invoke returns it, and an answer before the
// handler runs. Every request may be repeated, until the token's deadline: the same token with the
// same answer leads to where the interaction stands, and never to an ordinary second run.
// Cancelling ctx cancels the handler's context, and nothing that is being recorded.
func (f *Face) Invoke(ctx context.Context, call Call) (outcome Outcome, err error) {
	ctx, done, err := f.enter(ctx)
	if err != nil {
		return Outcome{}, err
	}
	var r *request
	defer func() { r.after(done) }()
	ctx = outside(ctx)
	r, err = f.admit(ctx, call)
	if err != nil {
		return Outcome{}, err
	}
	f.gate.sweep(ctx)
	err = restarting(func() error {
		outcome, err = r.serve(ctx)
		return err
	})
	return outcome, err
}

// outside hides a handler's own resume from what a nested call runs (R3).
func outside(ctx context.Context) context.Context { return resume.With(ctx, nil) }

// errRestart is returned inside the gate where somebody else wrote in between (N6): the request
// starts over at check 4.
var errRestart = errors.New("written in between")

// maxRestarts bounds how often a request starts over; then it is busy.
const maxRestarts = 8

func restarting(request func() error) error {
	for range maxRestarts {
		if err := request(); err != errRestart {
			return err
		}
	}
	return busy(checkpoint.ID{})
}

// serve makes the checks from 4 on.
func (r *request) serve(ctx context.Context) (Outcome, error) {
	defer func() { r.view.end() }()
	in, round, err := r.locate(ctx)
	if err != nil {
		return Outcome{}, err
	}
	if in == nil {
		return r.fresh(ctx)
	}
	m, err := r.decide(ctx, in, round)
	if err != nil {
		return Outcome{}, err
	}
	if !m.needsClaim() {
		return r.perform(ctx, in, m)
	}
	release, ok := r.gate.claims.hold(in.ID) // check 7
	if !ok {
		return Outcome{}, busy(in.ID)
	}
	defer r.after(release)
	// Now that nobody else in the process is at it: is it still what was decided on? What another
	// process does is found out by the commit.
	if r.view.fresh() {
		return r.perform(ctx, in, m)
	}
	record, err := r.gate.store.Load(ctx, in.ID)
	switch {
	case errors.Is(err, checkpoint.ErrNotFound), err == nil && record.Revision != in.Revision:
		return Outcome{}, errRestart
	case err != nil:
		return Outcome{}, unavailable(err)
	}
	return r.perform(ctx, in, m)
}

// decide makes checks 5 and 6 and finds the row.
func (r *request) decide(ctx context.Context, in *checkpoint.Interaction, round int) (move, error) {
	g := r.gate
	now := g.now()
	if overdue(in, round, now) {
		return move{}, g.expired(ctx, r.origin(), in, now, r.call.StartID)
	}
	a := r.arrival(now)
	a.round = round
	var err error
	changed := fail(ErrRevisionChanged, "tool %q changed since it asked", in.Tool).on(in.ID)
	if len(r.call.Answers) > 0 {
		if in.Rounds[round-1].Answer == nil && !r.tool.accepts(in.ToolRevision) {
			return move{}, changed
		}
		if a.answer, err = g.verify(in, round, r.call.Answers); err != nil {
			return move{}, err
		}
		a.answer.Time, a.answer.Face, a.answer.Fallback = now, r.name, resume.ToFallback(ctx)
	}
	if in.Status == checkpoint.Open {
		if a.mint, err = r.remint(in); err != nil {
			return move{}, err
		}
	}
	if a.held, err = g.claimHeld(ctx, in.ID, in.Claim); err != nil {
		return move{}, unavailable(err)
	}
	m := arrive(in, a)
	if m.usesTool() && !r.tool.accepts(in.ToolRevision) {
		return move{}, changed
	}
	return m, nil
}

// remint returns a new mint for the open round, where the recorded one is for another session or
// face, or its key has left the ring (P1m). A request by token got here only where it is good.
func (r *request) remint(in *checkpoint.Interaction) (*checkpoint.Mint, error) {
	old := in.Last().Mint
	_, alive := r.gate.ring.Load().find(old.Key)
	if r.call.Token != "" || (alive && old.Face == r.name && old.Session == r.sess) {
		return nil, nil
	}
	if old.Count == math.MaxUint16 { // one more would bring the first token back to life
		return nil, fail(ErrInteractionLimit, "the interaction was rejoined too often").on(in.ID)
	}
	mint := r.mint(old.Count + 1)
	return &mint, nil
}

// arrival is what a claim for this request takes, made now.
func (r *request) arrival(now time.Time) arrival {
	return arrival{replay: r.tool.opts.Replay, owner: r.owner, now: now, lookAgain: now.Add(r.patience())}
}

// patience is how long a sweep leaves a claim alone.
func (r *request) patience() time.Duration {
	if lifetime := r.lifetime(); lifetime > 0 {
		return lifetime.Truncate(time.Millisecond)
	}
	return 10 * time.Minute
}

// perform carries a row out: check 8, the commit of check 9, and what comes then.
func (r *request) perform(ctx context.Context, in *checkpoint.Interaction, m move) (Outcome, error) {
	if m.then == refuse {
		return Outcome{}, refused(m, in, r.call.StartID)
	}
	recorded := in
	if m.next != nil {
		recorded = m.next
	}
	outOfBand := false
	if m.then == showPrompt {
		var e *Error
		if outOfBand, e = r.canShow(recorded); e != nil {
			return Outcome{}, unended(in, e)
		}
	}
	if missing := r.missing(); m.then == runHandler && missing != "" {
		return Outcome{}, unended(in, r.needsPerson(missing))
	}
	who := Answerer{Scope: r.call.Scope, SameScope: true, Face: r.name, Interaction: in.ID, Tool: in.Tool}
	decisions, e := r.gate.toRemember(ctx, in, m.next, who)
	if e != nil {
		return Outcome{}, e
	}
	if e := r.authorize(ctx, recorded, m.then == runRecovery); e != nil {
		return Outcome{}, e.on(in.ID)
	}
	if m.then == runHandler { // recovery uses what is retained
		need := r.nextRound(recorded)
		need.Bytes += decisionsSize(decisions)
		room, e := r.gate.reserve(ctx, r.scope, need)
		if e != nil {
			return Outcome{}, e.on(in.ID)
		}
		defer r.after(room.release)
		r.room = room
	}
	if m.next != nil {
		if err := r.record(ctx, in, m.next, decisions); err != nil {
			return Outcome{}, err
		}
	}
	switch m.then {
	case showPrompt:
		prompt, err := r.show(recorded)
		outcome := r.prompts(prompt, outOfBand)
		if run := r.call.Run; run != nil && err == nil {
			run.find(outcome, recorded.Revision)
		}
		return outcome, err
	case tellResult:
		return Outcome{Interaction: in.ID, Result: bytes.Clone(in.Ending.Result)}, nil
	default:
		return r.run(ctx, recorded, m.then == runRecovery)
	}
}

// unended names the interaction in what refuses a request and leaves it as it was.
func unended(in *checkpoint.Interaction, e *Error) *Error {
	e.StillOpen = in.Status == checkpoint.Open
	return e.on(in.ID)
}

// record is check 9: once more the shutdown and the deadline, then the one commit.
func (r *request) record(ctx context.Context, in, next *checkpoint.Interaction, decisions []*checkpoint.Decision) error {
	g := r.gate
	if g.opts.ReadOnly {
		return readOnly()
	}
	if r.closing() {
		return closing()
	}
	now := g.now()
	if waiting(in.Status) && overdue(in, 0, now) {
		return g.expired(ctx, r.origin(), in, now, r.call.StartID)
	}
	return g.commitRow(ctx, r.origin(), in, next, decisions)
}

// commitRow is the one commit of a row, with what is remembered of its answer.
func (g *Gate) commitRow(ctx context.Context, from origin, prev, next *checkpoint.Interaction, decisions []*checkpoint.Decision) error {
	writes, err := g.remember(ctx, from, decisions)
	if err != nil {
		return err
	}
	switch v, err := g.commit(ctx, from, prev, next, writes); v {
	case applied:
		return nil
	case conflict:
		return errRestart
	case rejected:
		return unended(prev, unavailable(err))
	default:
		return unavailable(err).on(prev.ID)
	}
}

// fresh is a call without an interaction: rows F1 and F2.
func (r *request) fresh(ctx context.Context) (Outcome, error) {
	g := r.gate
	if missing := r.missing(); missing != "" {
		return Outcome{}, r.needsPerson(missing)
	}
	if g.opts.ReadOnly {
		return Outcome{}, readOnly()
	}
	now := g.now()
	id, err := checkpoint.NewID(now, g.opts.Random)
	if err != nil {
		return Outcome{}, unavailable(err)
	}
	in := &checkpoint.Interaction{
		ID: id, Scope: r.scope, Start: r.start, Join: r.join, Tool: r.tool.name, ToolRevision: r.tool.opts.Revision, Arguments: r.args,
		Created: now,
	}
	if e := r.authorize(ctx, in, false); e != nil {
		return Outcome{}, e
	}
	room, e := g.reserve(ctx, r.scope, r.newInteraction())
	if e != nil {
		return Outcome{}, e
	}
	defer r.after(room.release)
	r.room = room
	release, ok := g.claims.hold(id) // for F1, too: a step makes its record (O1, O2), and so does H9
	if !ok {
		return Outcome{}, busy(id)
	}
	defer r.after(release)
	if r.start.IsZero() { // F1
		return r.run(ctx, in, false)
	}
	m := start(in, r.arrival(now))                         // F2
	if err := r.record(ctx, in, m.next, nil); err != nil { // errRestart: F3
		return Outcome{}, err
	}
	room.counted()
	return r.run(ctx, m.next, false)
}

// authorize is check 8.
func (r *request) authorize(ctx context.Context, in *checkpoint.Interaction, recovery bool) *Error {
	if r.tool.opts.Authorize == nil {
		return nil
	}
	e := Execution{
		Tool: in.Tool, Arguments: bytes.Clone(in.Arguments), Scope: r.call.Scope, Session: r.call.Session,
		StartID: r.call.StartID, Round: answeredRounds(in), Recovery: recovery, Answers: Answers{},
	}
	if e.Round > 0 {
		round := &in.Rounds[e.Round-1]
		e.Remembered = len(round.Answer.Remembered) > 0
		for i, q := range round.Questions {
			e.Answers[q.ID] = bytes.Clone(round.Answer.Payloads[i])
		}
	}
	if err := safely(func() error { return r.tool.opts.Authorize(ctx, e) }); err != nil {
		return fail(ErrUnauthorized, "tool %q is not authorized", in.Tool).because(hideInterrupts(err))
	}
	return nil
}

// answeredRounds is the latest round that has an answer. Only the last one can be without.
func answeredRounds(in *checkpoint.Interaction) int {
	n := len(in.Rounds)
	if n > 0 && in.Rounds[n-1].Answer == nil {
		n--
	}
	return n
}

// expired marks an interaction whose deadline has passed (X1), where that is not done yet, and says
// so.
func (g *Gate) expired(ctx context.Context, from origin, in *checkpoint.Interaction, now time.Time, startID string) *Error {
	if waiting(in.Status) && past(in.Last().Deadline, now) && !g.opts.ReadOnly {
		g.note(ctx, from, in, expire(in, now, g.opts.Retention))
	}
	return fail(ErrExpired, "the time to answer is over: %s", ownKey(startID)).on(in.ID)
}
