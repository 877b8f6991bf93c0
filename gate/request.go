package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// A request is a call on its way through the checks of docs/transitions.md (R24).
type request struct {
	*Face
	call  Call
	tool  *Tool
	args  json.RawMessage // canonical
	scope checkpoint.Hash
	sess  checkpoint.Hash
	start checkpoint.Hash // zero: no start ID
	join  checkpoint.Hash // zero: the call joins nothing

	// held is set where the request's prompt waits for the commit of its run.
	held *heldCall

	view  *view  // of what it is served by; nil: it was not known before it was read
	owner string // of its claims

	// room is what the request has reserved, from when a handler is to run; reports takes the
	// progress of its latest run.
	room    *reservation
	reports *reports
}

// origin is what the audit trail keeps of where the request came from.
func (r *request) origin() origin { return origin{r.name, r.call.Scope, r.owner} }

// admit makes checks 1 to 3.
func (f *Face) admit(ctx context.Context, call Call) (*request, error) {
	g := f.gate
	if err := g.bound(call); err != nil {
		return nil, err
	}
	if err := g.granted(ctx, call); err != nil {
		return nil, err
	}
	r := &request{Face: f, call: call, tool: g.tools[call.Tool], owner: g.member.Owner()}
	if r.tool == nil && call.Token != "" {
		return nil, r.invalid(ctx, "tool", checkpoint.ID{})
	}
	if r.tool == nil {
		return nil, fail(ErrUnknownTool, "there is no tool %.64q", call.Tool)
	}
	var err error
	limits := &canon.Limits{Bytes: g.opts.Limits.Arguments, Depth: g.opts.Limits.Depth}
	if r.args, err = canon.JSON(call.Arguments, limits); err != nil {
		return nil, fail(ErrInvalidArguments, "tool %q: %v", call.Tool, err)
	}
	if call.Token == "" { // a token's are compared with those that it was made for
		if err := r.tool.fits(r.args); err != nil {
			return nil, err
		}
	}
	r.scope = g.hash("scope", call.Scope)
	if e := r.inRun(); e != nil {
		return nil, e
	}
	r.sess = g.hash("session", call.Scope, call.Session)
	if call.StartID != "" {
		r.start = g.hash("start", call.Scope, call.StartID)
	} else if call.Join {
		r.join = g.hash("join", call.Scope, call.Tool, r.tool.opts.Revision, string(r.args))
	}
	return r, nil
}

// bound is check 1, as far as it needs no look at what the words mean.
func (g *Gate) bound(call Call) error {
	limits := g.opts.Limits
	for _, word := range []struct{ name, value string }{
		{"tool", call.Tool}, {"scope", call.Scope}, {"session", call.Session}, {"start id", call.StartID},
	} {
		if err := g.boundName(word.name, word.value); err != nil {
			return err
		}
	}
	if len(call.Arguments) > limits.Arguments {
		return fail(ErrTooLarge, "arguments have %d bytes, the limit is %d", len(call.Arguments), limits.Arguments)
	}
	return g.boundAnswers(call.Answers)
}

func (g *Gate) boundName(name, value string) error {
	if most := g.opts.Limits.Name; len(value) > most {
		return fail(ErrTooLarge, "%s has %d bytes, the limit is %d", name, len(value), most)
	}
	if !utf8.ValidString(value) {
		return fail(ErrInvalidArguments, "%s is not valid UTF-8", name)
	}
	return nil
}

// scopeOf is the hash of the scope that the host names, where there is no call beside it.
func (g *Gate) scopeOf(scope string) (checkpoint.Hash, error) {
	if scope == "" {
		return checkpoint.Hash{}, fail(ErrUnauthorized, "the host names no scope")
	}
	if err := g.boundName("scope", scope); err != nil {
		return checkpoint.Hash{}, err
	}
	return g.hash("scope", scope), nil
}

func (g *Gate) boundAnswers(answers Answers) error {
	total := 0
	for id, payload := range answers {
		total += len(id) + len(payload)
	}
	if total > g.opts.Limits.Answer {
		return fail(ErrTooLarge, "answers have %d bytes, the limit is %d", total, g.opts.Limits.Answer)
	}
	return nil
}

// granted is check 2.
func (g *Gate) granted(ctx context.Context, call Call) error {
	if call.Scope == "" {
		return fail(ErrUnauthorized, "the host names no scope")
	}
	if call.Session == "" {
		return fail(ErrUnauthorized, "the host names no session")
	}
	if g.opts.Authorize == nil {
		return nil
	}
	if err := safely(func() error { return g.opts.Authorize(ctx, call) }); err != nil {
		return fail(ErrUnauthorized, "the request is not authorized").because(hideInterrupts(err))
	}
	return nil
}

// hideInterrupts keeps a cause from looking like a question to somebody who searches it with
// errors.As.
func hideInterrupts(err error) error {
	if interrupt.Classify(err).Kind == interrupt.KindFailure {
		return err
	}
	return errors.New("the callback returned a question, which only a handler can")
}

// locate finds the interaction of the request and makes check 4: by token, or by start ID. It
// returns nil for a fresh call.
func (r *request) locate(ctx context.Context) (in *checkpoint.Interaction, round int, err error) {
	switch {
	case r.call.Token != "":
		return r.byToken(ctx)
	case len(r.call.Answers) > 0:
		return nil, 0, fail(ErrInvalidAnswer, "answers come with the token of their round")
	case r.call.StartID != "":
		in, err := r.byStart(ctx)
		return in, 0, err
	case r.call.Join:
		in, err := r.byJoin(ctx)
		return in, 0, err
	}
	return nil, 0, nil
}

func (r *request) byToken(ctx context.Context) (*checkpoint.Interaction, int, error) {
	g := r.gate
	name, ok := g.ring.Load().open(g.ledger, r.call.Token)
	if !ok {
		return nil, 0, r.invalid(ctx, "the token is malformed, forged, of another ledger, or of a key that left the ring", checkpoint.ID{})
	}
	r.view = g.claims.look(name.id)
	in, err := g.load(ctx, name.id)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return nil, 0, r.invalid(ctx, "there is no such interaction", name.id)
	}
	if err != nil {
		return nil, 0, err
	}
	if cause := r.mismatch(in, name); cause != "" {
		return nil, 0, r.invalid(ctx, cause, name.id)
	}
	return in, name.round, nil
}

// mismatch compares all that a token is bound to (R21). It returns what differs, or nothing.
func (r *request) mismatch(in *checkpoint.Interaction, name tokenName) string {
	if name.round < 1 || name.round > len(in.Rounds) {
		return "round"
	}
	round := &in.Rounds[name.round-1]
	switch {
	case in.Tool != r.tool.name:
		return "tool"
	case in.Scope != r.scope:
		return "scope"
	case startID(in) != r.start:
		return "start id"
	case !bytes.Equal(in.Arguments, r.args):
		return "arguments"
	case round.Mint.Key != name.key:
		return "key"
	case round.Mint.Count != name.mint:
		return "mint: a rejoin made a new token"
	case round.Mint.Face != r.name:
		return "face"
	case round.Mint.Session != r.sess:
		return "session"
	case round.Digest != promptDigest(in, round.Questions):
		return "prompt digest"
	}
	// A later round may have been taken over by another session or face (P1m).
	if last := in.Last(); last.Mint.Face != r.name || last.Mint.Session != r.sess {
		return "session or face of the latest round"
	}
	return ""
}

// invalid is the one answer to every token that is not good. The true cause goes to the host's log.
func (r *request) invalid(ctx context.Context, cause string, id checkpoint.ID) error {
	r.gate.log.WarnContext(ctx, "continuation refused", "cause", cause, "tool", r.call.Tool, "face", r.name, "interaction", id)
	return fail(ErrInvalidContinuation, "the token is not good for this request")
}

// byStart is F4, or F5: the call joins what its start ID began.
func (r *request) byStart(ctx context.Context) (*checkpoint.Interaction, error) {
	record, err := r.gate.store.Find(ctx, r.start)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	in, err := r.gate.read(record)
	if err != nil {
		return nil, err
	}
	same := in.Tool == r.tool.name && bytes.Equal(in.Arguments, r.args)
	if left := in.Remains; left != nil { // T1
		same = left.Digest.IsZero() || left.Digest == r.gate.argumentsHash(r.tool.name, r.args)
	}
	if in.Scope != r.scope || !same { // F5
		return nil, fail(ErrStartConflict, "start id was used for another tool or other arguments").on(in.ID)
	}
	return in, nil
}

// byJoin is J1: the call joins what is open. What is overdue is not, and makes room (J2).
func (r *request) byJoin(ctx context.Context) (*checkpoint.Interaction, error) {
	g := r.gate
	record, err := g.store.Find(ctx, r.join)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	in, err := g.read(record)
	if err != nil {
		return nil, err
	}
	if in.Status == checkpoint.Tombstone { // of X6, which cannot tell a join hash from a start hash
		r.join = checkpoint.Hash{}
		return nil, nil
	}
	if now := g.now(); overdue(in, 0, now) {
		if g.opts.ReadOnly {
			return nil, readOnly()
		}
		g.expired(ctx, r.origin(), in, now, "")
		return nil, errRestart
	}
	return in, nil
}

// startID is the hash of the interaction's start ID; zero: it has none.
func startID(in *checkpoint.Interaction) checkpoint.Hash {
	if !in.Join.IsZero() {
		return checkpoint.Hash{}
	}
	return in.Start
}

func (g *Gate) load(ctx context.Context, id checkpoint.ID) (*checkpoint.Interaction, error) {
	record, err := g.store.Load(ctx, id)
	if err == nil && !isInteraction(record) {
		err = checkpoint.ErrNotFound
	}
	if errors.Is(err, checkpoint.ErrNotFound) {
		return nil, err
	}
	if err != nil {
		return nil, unavailable(err)
	}
	return g.read(record)
}
