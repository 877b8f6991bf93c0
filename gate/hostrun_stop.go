package gate

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A RunCommit is what a host records of a run that stops. It replaces what was recorded before.
type RunCommit struct {
	Notes json.RawMessage // JSON that summaries show
	Blob  []byte          // the host's state; it is compressed, and encrypted where the ledger is
}

// Commit stops the run: notes, blob and the prompts of its calls are written in one batch, whole or
// not at all (W5). Then it returns every prompt that is open in the run, each with its token. Where
// it returns none, because prompts that calls found open were answered or have expired meanwhile,
// the run can be resumed at once. Cancelling ctx does not break the write off.
//
// Whatever Commit returns, the run has stopped. A blob over Limits.Blob is ErrTooLarge, one for
// which there is no room is ErrBusy (R33), and a store that does not serve is ErrUnavailable. After
// an error the run stops as with Release, as soon as the store serves. The prompt of a call whose
// claim was lost meanwhile is left out.
func (r *Run) Commit(ctx context.Context, rc RunCommit) ([]Outcome, error) {
	s, err := r.stop()
	if err != nil {
		return nil, err
	}
	defer s.end()
	c, err := s.commit(rc)
	if err == nil {
		err = s.write(ctx, c)
	}
	if err != nil {
		s.giveUp(ctx)
		return nil, err
	}
	return append(s.stillOpen(ctx), s.show(ctx, c)...), nil
}

// A RunEnd says how a run ended.
type RunEnd struct {
	Code    Code            // empty for success
	Message string          // public
	Result  json.RawMessage // for the host, which reads it in a [RunSummary]
	Notes   json.RawMessage // as those of [RunCommit]
}

// Finish ends the run durably (W6). Its blob is removed and its key is free; e is kept until the
// retention ends. Calls whose prompts are held end with ErrUnavailable. Whatever Finish returns,
// the run has stopped; after an error, which has the same reasons as with Commit, as with Release.
func (r *Run) Finish(ctx context.Context, e RunEnd) error {
	s, err := r.stop()
	if err != nil {
		return err
	}
	defer s.end()
	c, err := s.finish(e)
	if err == nil {
		err = s.write(ctx, c)
	}
	if err != nil {
		s.giveUp(ctx)
	}
	return err
}

// Release stops the run and leaves it as its last commit did (W7). Prompts that are held are
// written, but not returned: when the run is resumed, its calls find them open. After Commit and
// Finish it does nothing, so it can be deferred.
func (r *Run) Release(ctx context.Context) {
	if s, err := r.stop(); err == nil {
		defer s.end()
		s.giveUp(ctx)
	}
}

// A stopping is a run in which no call can be made any more, until its last write is made.
type stopping struct {
	*Run
	prev   *checkpoint.Run
	held   []*heldCall
	found  []foundPrompt
	isLost bool // another owner has it, or will
}

// stop takes the run from its caller: from here on no call can be made in it.
func (r *Run) stop() (*stopping, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, runStopped()
	}
	r.over = true
	return &stopping{Run: r, prev: r.run, held: r.held, found: r.found}, nil
}

// end gives up what the run and its calls hold in this process.
func (s *stopping) end() {
	for _, h := range s.held {
		h.end()
	}
	s.Run.end()
}

// next is what every write that stops a run has in common. It takes the next epoch: a Keep that is
// still on its way to the store is refused then (W8).
func (s *stopping) next() *checkpoint.Run {
	next := *s.prev
	next.Revision, next.Updated = s.prev.Revision+1, s.face.gate.now()
	next.Claim = checkpoint.Claim{Epoch: s.prev.Claim.Epoch + 1}
	return &next
}

// commit makes the write of W5.
func (s *stopping) commit(rc RunCommit) (*change, error) {
	g, next := s.face.gate, s.next()
	if e := g.boundNotes(rc.Notes); e != nil {
		return nil, e
	}
	row, err := g.packBlob(next, rc.Blob)
	if err != nil {
		return nil, err
	}
	next.Notes = rc.Notes
	c, err := s.waits(next)
	if err != nil {
		return nil, err
	}
	c.batch.Rows = append(s.forget(next.Claim.Epoch, false), checkpoint.RowPut{Row: row, Epoch: next.Claim.Epoch})
	return c, nil
}

// waits makes the write of a run that can be resumed, and of the prompts that are held.
func (s *stopping) waits(next *checkpoint.Run) (*change, error) {
	var deadlines []time.Time
	var prompts []*change
	for _, h := range s.held {
		deadlines, prompts = append(deadlines, h.next.Last().Deadline), append(prompts, h.change)
	}
	for _, f := range s.found {
		deadlines = append(deadlines, f.Prompt.Expires)
	}
	for _, d := range deadlines { // next has the deadlines of calls that were not made again
		if next.Endless = next.Endless || d.IsZero(); d.After(next.Deadline) {
			next.Deadline = d
		}
	}
	next.Due = s.face.gate.runDue(next.Updated, next.Deadline, next.Endless)
	c, err := s.change(s.prev, next, checkpoint.ActionStopped)
	if err != nil {
		return nil, unavailable(err)
	}
	c.calls = prompts
	return c, nil
}

// finish makes the write of W6.
func (s *stopping) finish(e RunEnd) (*change, error) {
	g, next := s.face.gate, s.next()
	for _, data := range []json.RawMessage{e.Notes, e.Result} {
		if e := g.boundNotes(data); e != nil {
			return nil, e
		}
	}
	next.Status, next.Start, next.Blob, next.Notes, next.Due = checkpoint.RunEnded, checkpoint.Hash{}, nil, e.Notes, time.Time{}
	if g.opts.Retention != NoExpiry {
		next.Due = next.Updated.Add(g.opts.Retention)
	}
	next.Ending = &checkpoint.Ending{Code: string(e.Code), Message: e.Message, Result: e.Result, Time: next.Updated}
	c, err := s.change(s.prev, next, checkpoint.ActionEnded)
	if err != nil {
		return nil, unavailable(err)
	}
	if c.batch.Rows = s.forget(next.Claim.Epoch, true); s.prev.Blob != nil {
		c.batch.Rows = append(c.batch.Rows, checkpoint.RowPut{Row: checkpoint.Row{ID: next.ID, Name: blobName}, Epoch: next.Claim.Epoch})
	}
	for _, h := range s.held {
		if h.before.Revision == 0 { // nothing was recorded of it
			continue
		}
		call, err := h.giveUp(next.Updated)
		if err != nil {
			return nil, unavailable(err)
		}
		c.calls = append(c.calls, call)
	}
	return c, nil
}

// write reserves room for what c adds to what it replaces, and writes it.
func (s *stopping) write(ctx context.Context, c *change) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	g := s.face.gate
	adds := retained(c.batch) - s.replaces(c.batch)
	room, e := g.reserve(ctx, s.scope, checkpoint.Usage{Bytes: max(0, adds)})
	if e != nil {
		return e
	}
	defer room.release()
	switch v, err := g.writeTwice(ctx, c); v {
	case applied:
		s.wrote(c.batch.Time)
		return nil
	case conflict, lapsed:
		s.isLost = true
		return s.lost(err)
	default:
		return unavailable(err)
	}
}

func (s *stopping) wrote(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := *s.run
	now.Updated = at
	s.run = &now
}

// replaces is the size of what a write that stops the run replaces and removes in the store.
func (s *stopping) replaces(b *checkpoint.Batch) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.size
	if s.blob != nil {
		sum += int64(len(s.blob.Data)) + checkpoint.Charge
	}
	for _, put := range b.Rows {
		if k := s.kept[put.Row.Name]; put.Row.Data == nil && k.data != nil {
			sum += int64(len(k.data)) + checkpoint.Charge
		}
	}
	return sum
}

// giveUp is W7. Where the store does not serve, the write is owed and made later, so that no prompt
// is lost.
func (s *stopping) giveUp(ctx context.Context) {
	if s.isLost {
		return
	}
	g := s.face.gate
	c, err := s.waits(s.next())
	if err == nil {
		c.batch.Lazy = len(c.calls) == 0 // but a prompt is durable before anybody sees it (R25)
		var v verdict
		if v, err = g.writeTwice(ctx, c); v == unknown {
			g.owed.add(c)
		}
	}
	if err != nil {
		g.log.WarnContext(ctx, "run not released", "run", s.prev.ID, "error", err)
	}
}
