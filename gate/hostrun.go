package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A Run is work of a host that goes on over several calls, such as an agent's. It is begun
// ([Face.BeginRun]), stops where people are needed, and is resumed ([Face.ResumeRun]), by this
// process or another. From there until Commit, Finish or Release stops it, it belongs to its
// caller: nobody else can resume it, and [Gate.Close] waits for it. Its methods are safe for
// concurrent use.
//
// Prompts of calls that are made in the run ([Call.Run]) are held: [Run.Commit] writes them
// together with the host's own state, whole or not at all, and they are shown after that.
//
// The right to go on with the run can be lost (R23), which ends the contexts of [Run.Context]. From
// then on its methods, and calls that are made in it, are ErrBusy.
type Run struct {
	face  *Face
	scope checkpoint.Hash
	words string // the scope, in the host's words
	ends  []func()
	right context.Context // ends with the run, or when the right to it is lost; no caller's context is in it
	lose  context.CancelCauseFunc

	mu    sync.Mutex // guards what follows
	run   *checkpoint.Run
	over  bool
	size  int64           // what its record takes in the store
	blob  *checkpoint.Row // of the last commit, as it is stored; nil: there is none
	kept  map[string]kept // by the row's name
	held  []*heldCall     // calls that asked in the run
	found []foundPrompt   // prompts that were open when calls came to them
}

// ID returns the run's id. It is not secret.
func (r *Run) ID() checkpoint.ID { return r.recorded().ID }

// Notes returns the notes of the last commit, or those of the beginning where there is none yet.
func (r *Run) Notes() json.RawMessage { return bytes.Clone(r.recorded().Notes) }

// Times returns when the run began, and when its record was last written: by the write that stopped
// it, where it has stopped.
func (r *Run) Times() (created, updated time.Time) {
	run := r.recorded()
	return run.Created, run.Updated
}

// Context returns a context for what the host does in the run, such as asking its model. It ends
// with ctx, with the run, when the right to the run is lost, and when Close no longer waits; all
// but the first have an [*Error] as the cause. The caller calls cancel when it is done.
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

// enterRun makes the checks of every request. From then on Close waits for the run, until its ends
// are called.
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

// claim claims the run within the process, for the owner under which the gate writes now.
func (r *Run) claim(id checkpoint.ID) (owner string, ok bool) {
	g := r.face.gate
	release, ok := g.claims.hold(id)
	if ok {
		owner = g.member.Owner()
		r.ends = append(r.ends, release, g.member.guard(owner, func() { r.lost(nil) }))
	}
	return owner, ok
}

// end gives up what the run holds in this process, in the reverse order in which it was taken.
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
