package gate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A Run is work of a host that goes on over several calls, such as an agent's: it is begun, stops
// where people are needed, and is resumed, by this process or another. Between Begin or Resume and
// the one of Commit, Finish and Release that stops it, it belongs to its caller: nobody else can
// resume it, and [Gate.Close] waits for it. Its methods can be called from several goroutines.
//
// The prompts of calls made in it ([Call.Run]) are held: [Run.Commit] writes them together with the
// host's own state, whole or not at all, and only then are they shown.
//
// The right to go on with it can be lost (R23): [Run.Context] tells. From then on its methods, and
// calls made in it, are ErrBusy.
type Run struct {
	face  *Face
	scope checkpoint.Hash
	words string // the scope, in the host's words
	ends  []func()
	right context.Context // ends when the right to the run is lost, and with it; it is no caller's
	lose  context.CancelCauseFunc

	mu    sync.Mutex // guards what follows
	run   *checkpoint.Run
	over  bool
	size  int64           // what its record takes in the store
	blob  *checkpoint.Row // as it is stored; nil: there is none
	kept  map[string]kept // by the row's name
	held  []*heldCall
	found []foundPrompt
}

// ID returns the run's id. It is not secret.
func (r *Run) ID() checkpoint.ID { return r.recorded().ID }

// Notes returns what the host noted with the last commit, or at the beginning.
func (r *Run) Notes() json.RawMessage { return bytes.Clone(r.recorded().Notes) }

// Context returns ctx for what the host does in the run, such as asking its model: it ends with the
// run, too, and when the right to go on with it is lost or Close waits no longer, with the [*Error]
// as its cause. The caller calls cancel when it is done.
func (r *Run) Context(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.right, func() { end(context.Cause(r.right)) })
	if r.right.Err() != nil { // not some time later
		end(context.Cause(r.right))
	}
	return ctx, func() {
		stop()
		end(nil)
	}
}

func (r *Run) recorded() *checkpoint.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.run
}

func (r *Run) stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// lost is W10.
func (r *Run) lost(cause error) *Error {
	e := fail(ErrBusy, "the run was taken over, or its gate left the store").because(cause)
	r.lose(e)
	return e
}

// enterRun makes the checks of every request, and takes the run's place in Close.
func (f *Face) enterRun(ctx context.Context, scope string) (*Run, error) {
	hash, err := f.gate.scopeOf(scope)
	if err != nil {
		return nil, err
	}
	r := &Run{face: f, scope: hash, words: scope, kept: map[string]kept{}}
	r.right, r.lose = context.WithCancelCause(context.Background())
	leave, err := f.visit(ctx, func() { r.lose(closing()) })
	if err != nil {
		return nil, err
	}
	r.ends = append(r.ends, leave)
	return r, nil
}

// claim claims the run within the process, for the gate's present owner.
func (r *Run) claim(id checkpoint.ID) (owner string, ok bool) {
	g := r.face.gate
	release, ok := g.claims.hold(id)
	if ok {
		owner = g.member.Owner()
		r.ends = append(r.ends, release, g.member.guard(owner, func() { r.lost(nil) }))
	}
	return owner, ok
}

// end gives up what the run has in this process, the latest first.
func (r *Run) end() {
	r.mu.Lock()
	ends := r.ends
	r.ends, r.over = nil, true
	r.mu.Unlock()
	for _, end := range slices.Backward(ends) {
		end()
	}
	r.lose(runStopped())
}

func runStopped() *Error { return fail(ErrUnavailable, "the run has stopped") }

// turn writes the state in which the run goes on, lazily.
func (r *Run) turn(ctx context.Context, c *change, next *checkpoint.Run) error {
	c.batch.Lazy = true
	v, err := r.face.gate.write(ctx, c, conflict)
	switch v {
	case applied:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.run, r.size = next, int64(len(c.batch.Puts[0].Record.Data))+checkpoint.Charge
		return nil
	case conflict:
		return errRestart
	default:
		return unavailable(err)
	}
}

// change makes the write of a run.
func (r *Run) change(prev, next *checkpoint.Run, action checkpoint.Action) (*change, error) {
	record, err := r.face.gate.vault.encodeRun(next)
	if err != nil {
		return nil, err
	}
	e := checkpoint.Entry{
		Time: next.Updated, Interaction: next.ID, Action: action, Status: next.Status, Attempt: next.Claim.Attempt, Scope: next.Scope,
		Face: r.face.name,
	}
	if next.Ending != nil {
		e.Code = next.Ending.Code
	}
	audit, err := checkpoint.EncodeEntry(&e)
	if err != nil {
		return nil, err
	}
	batch := &checkpoint.Batch{
		// A run stays with the owner under which it was begun or resumed (R23).
		Time: next.Updated, Owner: cmp.Or(next.Claim.Owner, prev.Claim.Owner), Audit: [][]byte{audit},
		Puts: []checkpoint.Put{{Record: record, Epoch: prev.Claim.Epoch}},
	}
	return &change{batch: batch, event: Event{Entry: e, Before: prev.Status, Since: prev.Updated, Scope: r.words}}, nil
}

// loadRun reads a run of that scope and of this face.
func (f *Face) loadRun(ctx context.Context, scope checkpoint.Hash, id checkpoint.ID) (*checkpoint.Run, error) {
	g := f.gate
	record, err := g.store.Load(ctx, id)
	none := fail(ErrInvalidContinuation, "there is no such run")
	switch {
	case errors.Is(err, checkpoint.ErrNotFound), err == nil && (!record.Status.Run() || record.Scope != scope):
		return nil, none
	case err != nil:
		return nil, unavailable(err)
	}
	run, err := g.vault.decodeRun(record)
	if err != nil {
		return nil, unavailable(err)
	}
	if run.Face != f.name {
		return nil, none
	}
	return run, nil
}

// boundNotes is R34 for the JSON that a host notes; nil is none.
func (g *Gate) boundNotes(notes json.RawMessage) *Error {
	if notes != nil && !json.Valid(notes) {
		return fail(ErrInvalidArguments, "what is noted of a run is not JSON")
	}
	return g.boundBlob(notes)
}

// boundBlob is R34 for what a host keeps with a run.
func (g *Gate) boundBlob(data []byte) *Error {
	if most := g.opts.Limits.Blob; len(data) > most {
		return fail(ErrTooLarge, "what is kept of a run has %d bytes, the limit is %d", len(data), most)
	}
	return nil
}

// runDue is when a sweep removes a run that nobody went on with; zero: never.
func (g *Gate) runDue(now, deadline time.Time, endless bool) time.Time {
	if endless || g.opts.StartRetention == NoExpiry {
		return time.Time{}
	}
	if deadline.After(now) {
		now = deadline
	}
	return now.Add(g.opts.StartRetention)
}
