package gate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A heldCall is a request whose prompt waits for the commit of its run. Until then it keeps what
// any request has whose handler runs: its claim, its room, and its place in Close.
type heldCall struct {
	request   *request
	before    *checkpoint.Interaction
	next      *checkpoint.Interaction
	change    *change // from before to next
	outOfBand bool

	mu    sync.Mutex // guards what follows: the run can stop before the call has returned
	ended bool
	ends  []func()
}

// after calls end, which gives up something that the request has. Where the request's prompt is
// held, it does so when the prompt is shown or given up.
func (r *request) after(end func()) {
	if r == nil || r.held == nil || !r.held.keep(end) {
		end()
	}
}

// keep keeps an end for later. It reports false where the prompt was shown or given up meanwhile.
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

// inRun checks that the call can be made in its run, where it has one.
func (r *request) inRun() *Error {
	run := r.call.Run
	switch {
	case run == nil:
	case run.face.gate != r.gate || run.face.name != r.name || run.scope != r.scope:
		return fail(ErrInvalidArguments, "the run of the call is of another gate, face or scope")
	case r.call.Join: // it would hold, for this run, a call that another caller made
		return fail(ErrInvalidArguments, "a call of a run joins by its start id, and no other one")
	case run.stopped():
		return callStopped()
	case run.right.Err() != nil || run.recorded().Claim.Owner != r.owner: // W10
		return run.lost(nil)
	}
	return nil
}

// hold does all of H1 for a call in a run except the commit, which is W5.
func (r *request) hold(ctx context.Context, in, next *checkpoint.Interaction, outOfBand bool) (Outcome, error) {
	c, err := r.gate.change(r.origin(), in, next)
	if err == nil {
		err = c.batch.Validate()
	}
	if err != nil {
		return r.ended(ctx, in, fail(ErrTooLarge, "the prompt cannot be stored").because(err))
	}
	h := &heldCall{request: r, before: in, next: next, change: c, outOfBand: outOfBand}
	if !r.call.Run.add(h) {
		return r.ended(ctx, in, callStopped())
	}
	r.held = h
	outcome := Outcome{Held: true}
	if in.Revision > 0 {
		outcome.Interaction = in.ID
	}
	return outcome, nil
}

// giveUp makes the write that ends the call without anybody being asked (H5).
func (h *heldCall) giveUp(now time.Time) (*change, error) {
	g, e := h.request.gate, callStopped()
	ending := checkpoint.Ending{Code: string(e.Code), Message: e.Message}
	return g.change(h.request.origin(), h.before, end(h.before, ending, now, g.opts.Retention))
}

// add adds a call whose prompt is held. It reports false where the run has stopped.
func (r *Run) add(h *heldCall) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.held = append(r.held, h)
	}
	return !r.over
}

// callStopped is how a call ends that is made, or asks, after its run stopped.
func callStopped() *Error { return fail(ErrUnavailable, "the run of the call has stopped") }

// A foundPrompt is a prompt that was open already when its call was made again in the run.
type foundPrompt struct {
	Outcome
	revision uint64 // of its record at that time
}

// find notes a prompt that is open already.
func (r *Run) find(o Outcome, revision uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	r.found = slices.DeleteFunc(r.found, func(f foundPrompt) bool { return f.Interaction == o.Interaction })
	r.found = append(r.found, foundPrompt{o, revision})
}

// stillOpen returns the prompts that were found open and still are. Where the store does not tell,
// they count as open.
func (s *stopping) stillOpen(ctx context.Context) (open []Outcome) {
	g := s.face.gate
	for _, f := range s.found {
		var record checkpoint.Record
		err := bounded(context.WithoutCancel(ctx), func(ctx context.Context) (err error) {
			record, err = g.store.Load(ctx, f.Interaction)
			return err
		})
		written := err == nil && record.Revision != f.revision || errors.Is(err, checkpoint.ErrNotFound)
		if !written && !past(f.Prompt.Expires, g.now()) {
			open = append(open, f.Outcome)
		}
	}
	return open
}

// show returns the prompts that c wrote, as they are shown.
func (s *stopping) show(ctx context.Context, c *change) (open []Outcome) {
	for _, h := range s.held {
		if !slices.Contains(c.calls, h.change) { // left out, because its claim was lost
			continue
		}
		prompt, err := h.request.show(h.next)
		if err != nil { // the minting key left the ring meanwhile; a rejoin gives it another token
			s.face.gate.log.WarnContext(ctx, "prompt not shown", "interaction", h.next.ID, "error", err)
			continue
		}
		open = append(open, h.request.prompts(prompt, h.outOfBand))
	}
	return open
}
