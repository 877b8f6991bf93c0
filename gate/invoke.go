package gate

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/resume"
)

// maxRestarts bounds how often a request starts over because others wrote in between; then it is busy.
const maxRestarts = 8

// Invoke runs a tool, or goes on with one. It returns a result, or a prompt to put to a person, whose token and answers the next Invoke brings;
// any other end is an [*Error], which callers branch on with errors.Is and the codes.
//
// The tool's handler runs in the calling goroutine, at most once for one answer, except as the tool chose (see [Replay]). A prompt is durable before
// Invoke returns it, and an answer before the handler runs. Every request may be repeated: the same token with the same answer leads to
// where the interaction stands, and never to an ordinary second run. Cancelling ctx cancels the handler's context, and nothing that is being recorded.
func (f *Face) Invoke(ctx context.Context, call Call) (Outcome, error) {
	ctx, done, err := f.enter(ctx)
	if err != nil {
		return Outcome{}, err
	}
	defer done()
	ctx = outside(ctx)
	r, err := f.admit(ctx, call)
	if err != nil {
		return Outcome{}, err
	}
	f.gate.sweep(ctx)
	for range maxRestarts {
		outcome, again, err := r.serve(ctx)
		if !again {
			return outcome, err
		}
	}
	return Outcome{}, busy(checkpoint.ID{})
}

// outside hides a handler's own resume from what a nested call runs (R3).
func outside(ctx context.Context) context.Context { return resume.With(ctx, nil) }

// serve makes the checks from 4 on, once. again: somebody else wrote in between (N6).
func (r *request) serve(ctx context.Context) (_ Outcome, again bool, _ error) {
	in, round, err := r.locate(ctx)
	if err != nil {
		return Outcome{}, false, err
	}
	if in == nil {
		return r.fresh(ctx)
	}
	m, err := r.decide(ctx, in, round, false)
	if err != nil {
		return Outcome{}, false, err
	}
	if !m.needsClaim() {
		return r.perform(ctx, in, m)
	}
	release, ok := r.gate.claims.hold(in.ID) // check 7
	if !ok {
		return Outcome{}, false, busy(in.ID)
	}
	defer release()
	held, round, err := r.locate(ctx) // as it is now that nobody else in the process is at it
	if err != nil {
		return Outcome{}, false, err
	}
	if held == nil || held.ID != in.ID {
		return Outcome{}, true, nil
	}
	if m, err = r.decide(ctx, held, round, true); err != nil {
		return Outcome{}, false, err
	}
	return r.perform(ctx, held, m)
}

// decide makes checks 5 and 6 and finds the row.
func (r *request) decide(ctx context.Context, in *checkpoint.Interaction, round int, inProcess bool) (move, error) {
	g := r.gate
	now := g.now()
	if overdue(in, round, now) {
		return move{}, g.expired(ctx, in, now)
	}
	a := arrival{round: round, replay: r.tool.opts.Replay, owner: g.member.Owner(), now: now, lookAgain: now.Add(r.patience())}
	if len(r.call.Answers) > 0 {
		answer, action, err := g.verify(ctx, in, round, r.call.Answers)
		if err != nil {
			return move{}, err
		}
		if in.Rounds[round-1].Answer == nil {
			if err := g.keptOpen(in, action); err != nil { // P4
				return move{}, err
			}
		}
		answer.Time, answer.Face = now, r.name
		a.answer = answer
	}
	if in.Status == checkpoint.Open {
		a.mint = r.remint(in)
	}
	var err error
	if a.held, a.unused, err = g.claimHeld(ctx, in, inProcess); err != nil {
		return move{}, g.unavailable(ctx, "look at claim", err)
	}
	m := arrive(in, a)
	if m.usesTool() && !r.tool.accepts(in.Version) {
		return move{}, fail(ErrRevisionChanged, "tool %q changed since it asked", in.Tool).on(in.ID)
	}
	return m, nil
}

// remint returns a new mint for the open round, where the recorded one is for another session or face, or its key has left
// the ring (P1m). A request by token got here only where it is good.
func (r *request) remint(in *checkpoint.Interaction) *checkpoint.Mint {
	old := in.Last().Mint
	_, alive := r.gate.ring.Load().find(old.Key)
	if r.call.Token != "" || (alive && old.Face == r.name && old.Session == r.sess) {
		return nil
	}
	mint := r.mint(old.Count + 1)
	return &mint
}

// patience is how long a sweep leaves a claim alone.
func (r *request) patience() time.Duration {
	if lifetime := r.lifetime(); lifetime > 0 {
		return lifetime.Truncate(time.Millisecond)
	}
	return 10 * time.Minute
}

// perform carries a row out: check 8, the commit of check 9, and what comes then.
func (r *request) perform(ctx context.Context, in *checkpoint.Interaction, m move) (_ Outcome, again bool, _ error) {
	g := r.gate
	if m.then == refuse {
		return Outcome{}, false, refused(m, in, r.call.StartID)
	}
	recorded := in
	if m.next != nil {
		recorded = m.next
	}
	elsewhere := false
	if m.then == showPrompt {
		var err error
		if elsewhere, err = r.canShow(recorded.Last().Questions); err != nil {
			return Outcome{}, false, err
		}
	}
	if err := r.authorize(ctx, recorded, m.then == runRecovery); err != nil {
		return Outcome{}, false, err
	}
	if m.next != nil || m.then == runHandler || m.then == runRecovery {
		if g.opts.ReadOnly {
			return Outcome{}, false, readOnly()
		}
		if again, err := r.record(ctx, in, m); again || err != nil {
			return Outcome{}, again, err
		}
	}
	switch m.then {
	case showPrompt:
		prompt, err := r.show(recorded)
		return Outcome{Interaction: in.ID, Prompt: prompt, Elsewhere: elsewhere}, false, err
	case tellResult:
		return Outcome{Interaction: in.ID, Result: bytes.Clone(in.Ending.Result)}, false, nil
	default:
		outcome, err := r.run(ctx, recorded, m.then == runRecovery)
		return outcome, false, err
	}
}

// record is check 9: once more the shutdown and the deadline, then the one commit.
func (r *request) record(ctx context.Context, in *checkpoint.Interaction, m move) (again bool, _ error) {
	g := r.gate
	if r.closing() {
		return false, closing()
	}
	if now := g.now(); overdue(in, len(in.Rounds), now) && waiting(in.Status) {
		return false, g.expired(ctx, in, now)
	}
	if m.next == nil { // a claim of ours that was not used
		g.claims.started(in.ID)
		return false, nil
	}
	switch v, err := g.commit(ctx, in, m.next); v {
	case applied:
		g.claims.started(in.ID)
		return false, nil
	case conflict:
		if err != nil && !isConflict(err) {
			return false, g.unavailable(ctx, "record", err)
		}
		return true, nil
	case unknown:
		if m.then == runHandler || m.then == runRecovery {
			g.claims.notStarted(m.next.ID, m.next.Claim.Epoch, m.then)
		}
		return false, g.unavailable(ctx, "record", err)
	default:
		return false, g.unavailable(ctx, "record", err)
	}
}

// fresh is a call without an interaction: rows F1 and F2.
func (r *request) fresh(ctx context.Context) (_ Outcome, again bool, _ error) {
	g := r.gate
	if err := r.hasFacilities(); err != nil {
		return Outcome{}, false, err
	}
	if g.opts.ReadOnly {
		return Outcome{}, false, readOnly()
	}
	now := g.now()
	id, err := checkpoint.NewID(now, g.opts.Random)
	if err != nil {
		return Outcome{}, false, g.unavailable(ctx, "make interaction id", err)
	}
	in := &checkpoint.Interaction{
		ID: id, Scope: r.scope, Start: r.start, Tool: r.tool.name, Version: r.tool.opts.Revision, Arguments: r.args, Created: now,
	}
	if err := r.authorize(ctx, in, false); err != nil {
		return Outcome{}, false, err
	}
	if r.start.IsZero() { // F1
		outcome, err := r.run(ctx, in, false)
		return outcome, false, err
	}
	release, ok := g.claims.hold(id)
	if !ok {
		return Outcome{}, false, busy(id)
	}
	defer release()
	m := start(in, arrival{owner: g.member.Owner(), now: now, lookAgain: now.Add(r.patience())}) // F2
	if again, err := r.record(ctx, in, m); again || err != nil {                                 // again: F3, somebody else's call created it
		return Outcome{}, again, err
	}
	outcome, err := r.run(ctx, m.next, false)
	return outcome, false, err
}

// hasFacilities is the last part of check 3: what the tool cannot do without.
func (r *request) hasFacilities() error {
	for _, needed := range r.tool.opts.Needs {
		if _, err := r.canShow([]checkpoint.Question{{Type: string(needed)}}); err != nil {
			return err
		}
	}
	return nil
}

// authorize is check 8.
func (r *request) authorize(ctx context.Context, in *checkpoint.Interaction, recovery bool) error {
	if r.tool.opts.Authorize == nil {
		return nil
	}
	e := Execution{
		Tool: in.Tool, Arguments: bytes.Clone(in.Arguments), Scope: r.call.Scope, Session: r.call.Session, StartID: r.call.StartID,
		Recovery: recovery, Answers: Answers{},
	}
	for n := len(in.Rounds); n > 0; n-- {
		round := &in.Rounds[n-1]
		if round.Answer == nil {
			continue
		}
		e.Round = n
		for i, q := range round.Questions {
			e.Answers[q.ID] = bytes.Clone(round.Answer.Payloads[i])
		}
		break
	}
	if err := r.tool.opts.Authorize(ctx, e); err != nil {
		return fail(ErrUnauthorized, "tool %q is not authorized", in.Tool).because(hideInterrupts(err)).on(in.ID)
	}
	return nil
}

// refused says a row's code in words.
func refused(m move, in *checkpoint.Interaction, startID string) *Error {
	key := "look the work up under the application's own key"
	if startID != "" {
		key += ", start id " + strconv.Quote(startID)
	}
	var e *Error
	switch m.code {
	case ErrBusy:
		e = busy(in.ID)
	case ErrAnswerConflict:
		e = fail(m.code, "the round has another answer")
	case ErrAlreadyAnswered:
		e = fail(m.code, "the round was answered by another road")
	case ErrAlreadyCompleted:
		e = fail(m.code, "%s", completed(Code(in.Ending.Code), key))
	case ErrOutcomeUnknown:
		e = fail(m.code, "an attempt was made and may have had its effects: %s", key)
	case ErrExpired:
		e = fail(m.code, "the time to answer is over")
	default:
		e = fail(m.code, "the token is not good for this request")
	}
	if in.Ending != nil && (m.code == ErrAlreadyCompleted || m.code == ErrOutcomeUnknown) {
		e.Ended = Code(in.Ending.Code)
	}
	return e.on(in.ID)
}

// completed says how the work ended that is done.
func completed(ended Code, key string) string {
	switch ended {
	case ErrRejected:
		return "the person rejected it"
	case ErrDeclined:
		return "the person declined to answer"
	case ErrCancelled:
		return "the person broke off"
	}
	return "the work is done and its result was not kept: " + key
}

func busy(id checkpoint.ID) *Error { return fail(ErrBusy, "another request is at it").on(id) }

// readOnly is V3.
func readOnly() *Error {
	return fail(ErrUnavailable, "this gate only reads: send the request to one that writes")
}

// expired marks an interaction whose deadline has passed (X1), where that is not done yet, and says so.
func (g *Gate) expired(ctx context.Context, in *checkpoint.Interaction, now time.Time) *Error {
	if waiting(in.Status) && past(in.Last().Deadline, now) && !g.opts.ReadOnly {
		g.mark(ctx, in, expire(in, now, g.opts.Retention))
	}
	return fail(ErrExpired, "the time to answer is over").on(in.ID)
}

// facilities as the run keeps them.
func (r *request) facilities() []string {
	names := make([]string, len(r.call.Facilities))
	for i, f := range r.call.Facilities {
		names[i] = string(f)
	}
	return names
}
