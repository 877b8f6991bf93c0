package gate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
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
type Run struct {
	face  *Face
	scope checkpoint.Hash
	words string // the scope, in the host's words
	ends  []func()

	mu   sync.Mutex // guards what follows
	run  *checkpoint.Run
	over bool
	kept map[string][]byte // by the row's name
	held []*heldCall
	open []Outcome // prompts that calls of the run found open
}

// ID returns the run's id. It is not secret.
func (r *Run) ID() checkpoint.ID { return r.recorded().ID }

// Notes returns what the host noted with the last commit, or at the beginning.
func (r *Run) Notes() json.RawMessage { return bytes.Clone(r.recorded().Notes) }

func (r *Run) recorded() *checkpoint.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.run
}

// A RunStart is what a run begins with.
type RunStart struct {
	Scope string // must not be empty
	Notes json.RawMessage
	// Keep is kept until the first commit, by name, as with [Run.Keep]; it is there whenever the
	// run is.
	Keep map[string][]byte
}

// BeginRun begins a run of the scope (W1). It is recorded at once, and durable with whatever is
// durable next: a run whose process dies before it did anything is gone.
func (f *Face) BeginRun(ctx context.Context, s RunStart) (_ *Run, err error) {
	g, notes := f.gate, s.Notes
	r := &Run{face: f, words: s.Scope, kept: map[string][]byte{}}
	defer func() { r.endUnless(err == nil) }()
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	if g.opts.ReadOnly {
		return nil, readOnly()
	}
	if e := g.boundNotes(notes); e != nil {
		return nil, e
	}
	need := checkpoint.Usage{Bytes: int64(len(notes)) + checkpoint.Charge}
	for _, data := range s.Keep {
		if e := g.boundBlob(data); e != nil {
			return nil, e
		}
		need.Bytes += int64(len(data)) + checkpoint.Charge
	}
	room, e := g.reserve(ctx, r.scope, need)
	if e != nil {
		return nil, e
	}
	defer room.release()
	g.sweep(ctx)
	now := g.now()
	id, err := checkpoint.NewID(now, g.opts.Random)
	if err != nil {
		return nil, unavailable(err)
	}
	r.hold(id)
	next := &checkpoint.Run{
		ID: id, Revision: 1, Status: checkpoint.RunLive, Scope: r.scope, Created: now, Updated: now, Due: g.runDue(now, time.Time{}, false),
		Claim: checkpoint.Claim{Owner: g.member.Owner(), Epoch: 1, Attempt: 1}, Face: f.name, Notes: bytes.Clone(notes),
	}
	var rows []checkpoint.RowPut
	for name, data := range s.Keep {
		row, sealed, err := r.keptRow(id, name, data)
		if err != nil {
			return nil, unavailable(err)
		}
		r.kept[row.Name] = row.Data[1:]
		rows = append(rows, checkpoint.RowPut{Row: sealed, Epoch: next.Claim.Epoch})
	}
	if err := r.turn(ctx, &checkpoint.Run{}, next, checkpoint.ActionStarted, rows...); err != nil {
		return nil, err
	}
	return r, nil
}

// ResumeRun takes a run that stopped, or whose process is gone, in order to go on with it (W2). One
// that goes on elsewhere is ErrBusy (W3), one that has ended ErrAlreadyCompleted (W4); one of
// another scope or face is not told from one that does not exist: ErrInvalidContinuation.
func (f *Face) ResumeRun(ctx context.Context, scope string, id checkpoint.ID) (run *Run, err error) {
	err = restarting(func() error {
		run, err = f.resumeRun(ctx, scope, id)
		return err
	})
	return run, err
}

func (f *Face) resumeRun(ctx context.Context, scope string, id checkpoint.ID) (_ *Run, err error) {
	g := f.gate
	r := &Run{face: f, words: scope, kept: map[string][]byte{}}
	defer func() { r.endUnless(err == nil) }()
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	g.sweep(ctx)
	g.payFor(ctx, id)
	prev, err := f.loadRun(ctx, r.scope, id)
	if err != nil {
		return nil, err
	}
	if prev.Status == checkpoint.RunEnded {
		return nil, fail(ErrAlreadyCompleted, "the run has ended")
	}
	if g.opts.ReadOnly {
		return nil, readOnly()
	}
	if held, err := g.claimHeld(ctx, id, prev.Claim); err != nil {
		return nil, unavailable(err)
	} else if held || !r.hold(id) {
		return nil, fail(ErrBusy, "the run goes on already")
	}
	now := g.now()
	next := *prev
	next.Revision, next.Updated, next.Due = prev.Revision+1, now, g.runDue(now, prev.Deadline, prev.Endless)
	next.Claim = checkpoint.Claim{Owner: g.member.Owner(), Epoch: prev.Claim.Epoch + 1, Attempt: prev.Claim.Attempt + 1}
	if err := r.turn(ctx, prev, &next, checkpoint.ActionClaimed); err != nil {
		return nil, err
	}
	if err := r.readKept(ctx); err != nil {
		r.releaseClaim(ctx)
		return nil, err
	}
	return r, nil
}

// enter makes the checks of every request, and takes the run's place in Close.
func (r *Run) enter(ctx context.Context) error {
	_, done, err := r.face.enter(ctx)
	if err != nil {
		return err
	}
	r.ends = append(r.ends, done)
	r.scope, err = r.face.gate.scopeOf(r.words)
	return err
}

// hold claims the run within the process.
func (r *Run) hold(id checkpoint.ID) bool {
	release, ok := r.face.gate.claims.hold(id)
	if ok {
		r.ends = append(r.ends, release)
	}
	return ok
}

func (r *Run) endUnless(goesOn bool) {
	if !goesOn {
		r.end()
	}
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
}

// turn writes the run's next state, lazily.
func (r *Run) turn(
	ctx context.Context, prev, next *checkpoint.Run, action checkpoint.Action, rows ...checkpoint.RowPut,
) error {
	c, err := r.change(prev, next, action)
	if err != nil {
		return unavailable(err)
	}
	c.batch.Lazy, c.batch.Rows = true, rows
	v, err := r.face.gate.write(ctx, c, conflict)
	switch v {
	case applied:
		r.mu.Lock()
		r.run = next
		r.mu.Unlock()
		return nil
	case conflict:
		return errRestart
	default:
		return unavailable(err)
	}
}

// change makes the write of a run.
func (r *Run) change(prev, next *checkpoint.Run, action checkpoint.Action) (*change, error) {
	g := r.face.gate
	record, err := g.vault.encodeRun(next)
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

// Keep records something for the time until the next commit, which removes it (W8): what a run that
// is resumed after a crash would otherwise do again. It is durable with whatever is durable next.
// An answer that is on record before a tool runs does not need to be asked of a model again.
func (r *Run) Keep(ctx context.Context, name string, data []byte) error {
	g := r.face.gate
	if e := g.boundBlob(data); e != nil {
		return e
	}
	if r.stopped() {
		return fail(ErrUnavailable, "the run has stopped")
	}
	run := r.recorded()
	row, sealed, err := r.keptRow(run.ID, name, data)
	if err != nil {
		return unavailable(err)
	}
	batch := &checkpoint.Batch{
		Time: g.now(), Owner: run.Claim.Owner, Rows: []checkpoint.RowPut{{Row: sealed, Epoch: run.Claim.Epoch}}, Lazy: true,
	}
	switch v, err := g.tryWrite(context.WithoutCancel(ctx), batch, unknown); v {
	case applied:
	case conflict, lapsed:
		return lostRun(err)
	default:
		return unavailable(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept[row.Name] = row.Data[1:]
	return nil
}

// keptRow is the row in which something is kept, as it is and as it is stored.
func (r *Run) keptRow(id checkpoint.ID, name string, data []byte) (row, sealed checkpoint.Row, err error) {
	row = checkpoint.Row{ID: id, Name: r.keptName(id, name), Data: append([]byte{keptFormat}, data...)}
	sealed, err = r.face.gate.vault.sealRow(row)
	return row, sealed, err
}

// Kept returns what was kept under that name since the last commit.
func (r *Run) Kept(name string) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	data, ok := r.kept[r.keptName(r.run.ID, name)]
	return bytes.Clone(data), ok
}

// keptPrefix is that of the names of rows that are removed with a commit, keptFormat the first byte
// of their data.
const (
	keptPrefix = "kept."
	keptFormat = 'K'
)

// keptName does not tell the name to a store.
func (r *Run) keptName(id checkpoint.ID, name string) string {
	hash := r.face.gate.hash("kept", id.String(), name)
	return keptPrefix + hex.EncodeToString(hash[:])
}

// readKept reads what an attempt kept that came to no commit.
func (r *Run) readKept(ctx context.Context) error {
	g, id := r.face.gate, r.run.ID
	for from := keptPrefix; ; {
		rows, err := g.store.Rows(ctx, id, from, 100)
		if err != nil {
			return unavailable(err)
		}
		for _, row := range rows {
			if from = row.Name + "\x00"; row.Name < keptPrefix || row.Name > keptPrefix+"~" {
				return nil
			}
			opened, err := g.vault.openRow(row)
			if err != nil {
				return unavailable(err)
			}
			if len(opened.Data) == 0 || opened.Data[0] != keptFormat {
				return unavailable(&checkpoint.DecodeError{ID: id, Reason: "what the run kept is damaged"})
			}
			r.kept[row.Name] = opened.Data[1:]
		}
		if len(rows) == 0 {
			return nil
		}
	}
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

func lostRun(cause error) *Error {
	return fail(ErrBusy, "the run was taken over, or its gate left the store").because(cause)
}
