package gate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A heldCall is a request whose prompt waits for the commit of its run. Until then it keeps what a
// request has whose handler still runs: claim, room, and its place in Close.
type heldCall struct {
	request *request
	before  *checkpoint.Interaction
	next    *checkpoint.Interaction
	change  *change

	mu    sync.Mutex // guards what follows: the run can stop while the call is on its way out
	ended bool
	ends  []func()
}

// after calls what a request ends with: now or, where its prompt is held, when that is shown or
// given up.
func (r *request) after(end func()) {
	if r == nil || r.held == nil || !r.held.keep(end) {
		end()
	}
}

// keep keeps an end for later; not where the prompt was shown or given up meanwhile.
func (h *heldCall) keep(end func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.ends = append(h.ends, end)
	}
	return !h.ended
}

func (h *heldCall) end() {
	h.mu.Lock()
	ends := h.ends
	h.ends, h.ended = nil, true
	h.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// inRun checks that a call's run is one in which it can be made.
func (r *request) inRun() *Error {
	run := r.call.Run
	switch {
	case run == nil:
	case run.face.gate != r.gate || run.face.name != r.name || run.scope != r.scope:
		return fail(ErrInvalidArguments, "the run of the call is of another gate, face or scope")
	case r.call.Join: // what joins is another's, and would be held for this run
		return fail(ErrInvalidArguments, "a call of a run joins by its start id, and no other one")
	case run.stopped():
		return fail(ErrUnavailable, "the run of the call has stopped")
	}
	return nil
}

func (r *Run) stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// hold is H1 of a call in a run: all but the commit, which is W5.
func (r *request) hold(ctx context.Context, in, next *checkpoint.Interaction, outOfBand bool) (Outcome, error) {
	c, err := r.gate.change(r.origin(), in, next)
	if err == nil {
		err = c.batch.Validate()
	}
	if err != nil {
		return r.ended(ctx, in, fail(ErrTooLarge, "the prompt cannot be stored").because(err))
	}
	h := &heldCall{request: r, before: in, next: next, change: c}
	run := r.call.Run
	run.mu.Lock()
	stopped := run.over
	if !stopped {
		run.held = append(run.held, h)
		r.held, r.heldOutOfBand = h, outOfBand
	}
	run.mu.Unlock()
	if stopped {
		return r.ended(ctx, in, fail(ErrUnavailable, "the run of the call has stopped"))
	}
	outcome := Outcome{Held: true}
	if in.Revision > 0 {
		outcome.Interaction = in.ID
	}
	return outcome, nil
}

// found notes a prompt that was open when a call of the run came to it.
func (r *Run) found(o Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = append(r.open, o)
}

// A RunCommit is what a host keeps of a run that stops.
type RunCommit struct {
	// Notes are JSON that summaries show; Blob is the host's state. Both replace what was there.
	Notes json.RawMessage
	Blob  []byte
}

// Commit stops the run: notes, blob and the prompts of its calls are written in one batch, whole or
// not at all (W5). Then it returns every prompt that is open in the run, each with its token.
// Cancelling ctx does not break the writing off. Whatever it returns, the run has stopped.
//
// A blob over Limits.Blob is ErrTooLarge, and a store that does not serve ErrUnavailable; then the
// run stops as with Release, as soon as the store serves again. Where the right to one of the calls
// was lost meanwhile, its prompt is left out.
func (r *Run) Commit(ctx context.Context, c RunCommit) ([]Outcome, error) {
	held, open, prev, err := r.stop()
	if err != nil {
		return nil, err
	}
	defer r.end()
	defer func() {
		for _, h := range held {
			h.end()
		}
	}()
	written, err := r.commit(ctx, prev, c, held, open)
	if errors.Is(err, ErrTooLarge) || errors.Is(err, ErrUnavailable) {
		r.giveUp(ctx, prev, held, open)
	}
	if err != nil {
		return nil, err
	}
	for _, h := range written {
		prompt, err := h.request.show(h.next)
		if err != nil { // the minting key left the ring meanwhile: a rejoin makes another token
			r.face.gate.log.WarnContext(ctx, "prompt not shown", "interaction", h.next.ID, "error", err)
			continue
		}
		open = append(open, h.request.prompts(prompt, h.request.heldOutOfBand))
	}
	return open, nil
}

// stop ends the time in which calls can be made in the run.
func (r *Run) stop() (held []*heldCall, open []Outcome, prev *checkpoint.Run, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, nil, nil, fail(ErrUnavailable, "the run has stopped")
	}
	r.over = true
	held, r.held = r.held, nil
	return held, slices.Clone(r.open), r.run, nil
}

// commit writes W5, and returns the calls whose prompts it wrote.
func (r *Run) commit(ctx context.Context, prev *checkpoint.Run, rc RunCommit, held []*heldCall, open []Outcome) ([]*heldCall, error) {
	g := r.face.gate
	if e := g.boundNotes(rc.Notes); e != nil {
		return nil, e
	}
	next := r.next(prev)
	row, err := g.packBlob(next, rc.Blob)
	if err != nil {
		return nil, err
	}
	next.Notes = rc.Notes
	rows := append(r.forget(next), checkpoint.RowPut{Row: row, Epoch: next.Claim.Epoch})
	return r.write(ctx, prev, next, rows, held, open)
}

// write writes the state in which the run stops, with the prompts that are held. It returns the
// calls whose prompts it wrote.
func (r *Run) write(
	ctx context.Context, prev, next *checkpoint.Run, rows []checkpoint.RowPut, held []*heldCall, open []Outcome,
) ([]*heldCall, error) {
	g := r.face.gate
	for {
		next.Deadline, next.Endless = latest(held, open)
		next.Endless = next.Endless || prev.Endless // of a call that did not come again
		if prev.Deadline.After(next.Deadline) {
			next.Deadline = prev.Deadline
		}
		next.Due = g.runDue(next.Updated, next.Deadline, next.Endless)
		c, err := r.change(prev, next, checkpoint.ActionStopped)
		if err != nil {
			return nil, unavailable(err)
		}
		c.batch.Rows = rows
		for _, h := range held {
			b := h.change.batch
			c.batch.Puts, c.batch.Audit = append(c.batch.Puts, b.Puts...), append(c.batch.Audit, b.Audit...)
			c.held = append(c.held, h.change)
		}
		v, err := g.writeTwice(ctx, c)
		lost := lostCall(held, err)
		switch {
		case v == applied:
			return held, nil
		case v == conflict && lost >= 0:
			held = slices.Delete(slices.Clone(held), lost, lost+1)
		case v == conflict, v == lapsed:
			return nil, lostRun(err)
		case errors.Is(err, checkpoint.ErrInvalidBatch):
			return nil, fail(ErrTooLarge, "the run cannot be stored").because(err)
		default:
			if rows == nil { // W7: that somebody was to be asked is not lost with a store that fails for a while
				c.batch.Lazy = len(held) == 0 // a prompt is durable before anybody sees it (R25)
				g.owed.add(c)
			}
			return nil, unavailable(err)
		}
	}
}

// next is what every write that stops a run has in common.
func (r *Run) next(prev *checkpoint.Run) *checkpoint.Run {
	next := *prev
	next.Revision, next.Updated, next.Claim.Owner = prev.Revision+1, r.face.gate.now(), ""
	next.Claim.Attempt = 0
	return &next
}

// lostCall is which of the calls a conflict is with; -1: none.
func lostCall(held []*heldCall, err error) int {
	var changed *checkpoint.ConflictError
	if !errors.As(err, &changed) {
		return -1
	}
	return slices.IndexFunc(held, func(h *heldCall) bool { return h.next.ID == changed.ID })
}

// latest is the latest deadline of the prompts; endless: one of them has none.
func latest(held []*heldCall, open []Outcome) (deadline time.Time, endless bool) {
	var all []time.Time
	for _, h := range held {
		all = append(all, h.next.Last().Deadline)
	}
	for _, o := range open {
		all = append(all, o.Prompt.Expires)
	}
	for _, one := range all {
		endless = endless || one.IsZero()
		if one.After(deadline) {
			deadline = one
		}
	}
	return deadline, endless
}

// forget removes the rows that were kept for the time until now.
func (r *Run) forget(next *checkpoint.Run) []checkpoint.RowPut {
	r.mu.Lock()
	defer r.mu.Unlock()
	var rows []checkpoint.RowPut
	for name := range r.kept {
		rows = append(rows, checkpoint.RowPut{Row: checkpoint.Row{ID: next.ID, Name: name}, Epoch: next.Claim.Epoch})
	}
	return rows
}

// A RunEnd is how a run ended: Code is empty for success, Message public words, Result what the
// host wants to be told of it later.
type RunEnd struct {
	Code    Code
	Message string
	Result  json.RawMessage
	Notes   json.RawMessage
}

// Finish ends the run durably (W6); its blob is removed, and what stands in e stays until its
// retention ends. Prompts that are held are given up. Whatever it returns, the run has stopped;
// after an error it is as its last commit left it.
func (r *Run) Finish(ctx context.Context, e RunEnd) error {
	held, _, prev, err := r.stop()
	if err != nil {
		return err
	}
	defer r.end()
	for _, h := range held {
		h.end()
	}
	g := r.face.gate
	for _, data := range []json.RawMessage{e.Notes, e.Result} {
		if e := g.boundNotes(data); e != nil {
			return e
		}
	}
	next := r.next(prev)
	next.Status, next.Blob, next.Notes, next.Due = checkpoint.RunEnded, nil, e.Notes, time.Time{}
	if g.opts.Retention != NoExpiry {
		next.Due = next.Updated.Add(g.opts.Retention)
	}
	next.Ending = &checkpoint.Ending{Code: string(e.Code), Message: e.Message, Result: e.Result, Time: next.Updated}
	c, err := r.change(prev, next, checkpoint.ActionEnded)
	if err != nil {
		return unavailable(err)
	}
	if c.batch.Rows = r.forget(next); prev.Blob != nil {
		c.batch.Rows = append(c.batch.Rows, checkpoint.RowPut{Row: checkpoint.Row{ID: next.ID, Name: blobName}, Epoch: next.Claim.Epoch})
	}
	switch v, err := g.writeTwice(ctx, c); v {
	case applied:
		return nil
	case conflict, lapsed:
		return lostRun(err)
	default:
		return unavailable(err)
	}
}

// Release stops the run and leaves it as its last commit did (W7). Prompts that are held are
// written and shown to nobody here: calls of the run that is resumed find them open. After Commit
// and Finish it does nothing.
func (r *Run) Release(ctx context.Context) {
	held, open, prev, err := r.stop()
	if err != nil {
		return
	}
	defer r.end()
	r.giveUp(ctx, prev, held, open)
	for _, h := range held {
		h.end()
	}
}

// giveUp is W7.
func (r *Run) giveUp(ctx context.Context, prev *checkpoint.Run, held []*heldCall, open []Outcome) {
	if len(held) == 0 {
		r.releaseClaim(ctx)
		return
	}
	if _, err := r.write(ctx, prev, r.next(prev), nil, held, open); err != nil {
		r.face.gate.log.WarnContext(ctx, "run not released", "run", prev.ID, "error", err)
	}
}

// releaseClaim gives the claim up. Where that fails the claim is dead all the same when the process
// does not hold the run any more.
func (r *Run) releaseClaim(ctx context.Context) {
	prev := r.recorded()
	next := r.next(prev)
	next.Due = r.face.gate.runDue(next.Updated, next.Deadline, next.Endless)
	if err := r.turn(ctx, prev, next, checkpoint.ActionStopped); err != nil {
		r.face.gate.log.WarnContext(ctx, "run not released", "run", next.ID, "error", err)
	}
}
