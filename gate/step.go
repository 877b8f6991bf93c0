package gate

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/resume"
	"github.com/parley-go/parley/interrupt"
)

// steps records the steps of one run of a handler: rows O1 to O9 of docs/transitions.md. It is the
// [resume.Steps] of that run.
type steps struct {
	*request
	lose     context.CancelFunc // of the handler's context, where the claim is lost
	recovery bool

	mu      sync.Mutex              // guards what follows
	in      *checkpoint.Interaction // as it is recorded by now; not at all while its revision is 0
	ended   bool                    // the handler has returned
	trouble *Error                  // the store did not serve a step, or the claim is lost: no more of them
	open    map[string]*reservation // the keys that are in Once now; nil: nothing is reserved for it
	first   chan struct{}           // closed after the commit that makes the record; nil: none is on its way
	writing sync.WaitGroup          // commits that are on their way; none begins after ended
}

// end comes after the handler. It waits for the commits that are on their way, and returns what is
// recorded by then, and why a step was not.
func (s *steps) end() (in *checkpoint.Interaction, trouble *Error) {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.writing.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in, s.trouble
}

// Open implements [resume.Steps].
func (s *steps) Open(ctx context.Context, key string) (resume.Step, error) {
	if n := s.gate.opts.Limits.Name; key == "" || len(key) > n || !utf8.ValidString(key) {
		return resume.Step{}, invalidStep(key, fmt.Sprintf("the key must be valid UTF-8 of 1 to %d bytes", n), nil)
	}
	in, err := s.take(key)
	if err != nil {
		return resume.Step{}, err
	}
	step := resume.Step{Key: key, ID: s.gate.stepID(in.ID, key)}
	var recorded *checkpoint.Step
	if in.Revision > 0 {
		recorded, err = s.gate.step(ctx, in.ID, key)
	}
	switch {
	case ctx.Err() != nil:
		s.Close(step)
		return resume.Step{}, notBegun(key, ctx.Err())
	case err != nil:
		s.Close(step)
		return resume.Step{}, notServed(key, s.stop(unavailable(err)))
	case recorded == nil: // O1, O4
	case recorded.Result != nil: // O3
		step.State, step.Result = resume.Done, recorded.Result
	default: // O4 to O6
		step.State = resume.Begun
	}
	if step.State == resume.Done || s.recovery { // recovery uses what is retained
		return step, nil
	}
	if e := s.makeRoom(ctx, in, key); e != nil { // O8
		s.Close(step)
		return resume.Step{}, notServed(key, s.stop(e))
	}
	return step, nil
}

// makeRoom reserves what the step may store, until Close.
func (s *steps) makeRoom(ctx context.Context, in *checkpoint.Interaction, key string) *Error {
	room, e := s.gate.reserve(ctx, s.scope, s.newStep(in))
	if e != nil {
		return e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[key] = room
	return nil
}

// take takes the key for one Once at a time.
func (s *steps) take(key string) (*checkpoint.Interaction, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.over(key); err != nil {
		return nil, err
	}
	if _, taken := s.open[key]; taken {
		return nil, invalidStep(key, "it is being run", nil)
	}
	if s.open == nil {
		s.open = map[string]*reservation{}
	}
	s.open[key] = nil
	return s.in, nil
}

// Close implements [resume.Steps].
func (s *steps) Close(step resume.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if room := s.open[step.Key]; room != nil {
		room.release()
	}
	delete(s.open, step.Key)
}

// over is why no step begins or is recorded any more. The mutex is held.
func (s *steps) over(key string) error {
	if s.ended {
		return &interrupt.StepError{Key: key, Reason: "it comes too late", Err: interrupt.ErrRunEnded}
	}
	if s.trouble != nil {
		return notServed(key, s.trouble)
	}
	return nil
}

// stop lets no more steps begin, and returns why: the first cause stays.
func (s *steps) stop(trouble *Error) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble == nil {
		s.trouble = trouble
	}
	return s.trouble
}

// Begin implements [resume.Steps]: O1, and O6 for a step that was not done.
func (s *steps) Begin(ctx context.Context, step resume.Step) error {
	if err := s.put(ctx, step, nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over(step.Key) // the handler may have returned meanwhile
}

// Finish implements [resume.Steps]: O2, and O6 for a step that was done.
func (s *steps) Finish(ctx context.Context, step resume.Step, result []byte) error {
	if most := s.gate.opts.Limits.Result; len(result) > most { // O7
		return invalidStep(step.Key, fmt.Sprintf("its result has %d bytes, the limit is %d", len(result), most), nil)
	}
	return s.put(ctx, step, result)
}

// put commits a row, with the record where there is none yet.
func (s *steps) put(ctx context.Context, step resume.Step, result json.RawMessage) error {
	in, err := s.enter(step.Key)
	if err != nil { // O8
		return err
	}
	next, v, err := s.commit(ctx, in, step, result)
	var trouble *Error
	switch {
	case v == applied, errors.Is(err, checkpoint.ErrInvalidBatch):
	case (v == conflict || v == lapsed) && in.Revision > 0: // O9
		trouble = s.stop(lost(in, err))
		s.lose()
	default:
		trouble = s.stop(unavailable(err))
	}
	s.leave(in, next, v)
	switch {
	case v == applied:
		return nil
	case trouble == nil:
		return invalidStep(step.Key, "the store takes no such step", err)
	case v == unknown && result != nil: // O8
		return &interrupt.StepError{Key: step.Key, Reason: "its result may not be recorded", Err: interrupt.ErrOutcomeUnknown, Cause: err}
	default:
		return notServed(step.Key, trouble)
	}
}

// enter begins a commit, and returns what it stands on: while a commit that makes the record is on
// its way, the others wait for it.
func (s *steps) enter(key string) (*checkpoint.Interaction, error) {
	for {
		in, first, err := s.tryEnter(key)
		if first == nil {
			return in, err
		}
		<-first // a commit is bounded
	}
}

// tryEnter returns a channel where there is a commit to wait for.
func (s *steps) tryEnter(key string) (in *checkpoint.Interaction, first chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.over(key); err != nil {
		return nil, nil, err
	}
	if s.in.Revision == 0 {
		if s.first != nil {
			return nil, s.first, nil
		}
		s.first = make(chan struct{})
	}
	s.writing.Add(1)
	return s.in, nil, nil
}

// leave ends a commit that stood on in.
func (s *steps) leave(in, next *checkpoint.Interaction, v verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Revision == 0 {
		close(s.first)
		s.first = nil
		if v == applied {
			s.in = next
			s.room.counted()
		}
	}
	s.writing.Done()
}

// commit writes the row, and the record where in is not recorded yet: next is what is recorded
// then.
func (s *steps) commit(
	ctx context.Context, in *checkpoint.Interaction, step resume.Step, result json.RawMessage,
) (next *checkpoint.Interaction, v verdict, err error) {
	g, now := s.gate, s.gate.now()
	row, err := g.encodeStep(in.ID, &checkpoint.Step{Key: step.Key, ID: step.ID, Result: result, Time: now})
	if err != nil {
		return nil, rejected, err
	}
	if in.Revision == 0 {
		next = start(in, s.arrival(now)).next
		v, err = g.create(ctx, s.origin(), in, next, row)
		return next, v, err
	}
	batch := &checkpoint.Batch{Time: now, Owner: s.owner, Rows: rowPuts(row, in)}
	ctx = context.WithoutCancel(ctx)
	v, err = g.tryWrite(ctx, batch, conflict)
	if v == unknown && result != nil {
		// Once more: the same batch is the same batch. A mark is not sent twice, since a row has no
		// revision: the first one could land on the result.
		v, err = g.tryWrite(ctx, batch, unknown)
	}
	return in, v, err
}

// create is commitTwice with a row.
func (g *Gate) create(ctx context.Context, from origin, prev, next *checkpoint.Interaction, row checkpoint.Row) (verdict, error) {
	c, err := g.change(from, prev, next)
	if err != nil {
		return rejected, err
	}
	c.batch.Rows = rowPuts(row, next)
	return g.writeTwice(ctx, c)
}

func rowPuts(row checkpoint.Row, in *checkpoint.Interaction) []checkpoint.RowPut {
	return []checkpoint.RowPut{{Row: row, Epoch: in.Claim.Epoch}}
}

// step is what is recorded of a step; nil: nothing.
func (g *Gate) step(ctx context.Context, id checkpoint.ID, key string) (*checkpoint.Step, error) {
	row, err := g.row(ctx, id, g.stepName(id, key))
	if err != nil || row.Data == nil {
		return nil, err
	}
	step, err := g.decodeStep(row)
	if err == nil && (step.Key != key || step.ID != g.stepID(id, key)) {
		err = &checkpoint.DecodeError{ID: id, Reason: "a row holds another step than its name says"}
	}
	return step, err
}

// row is one row of a record; its data is nil where there is none.
func (g *Gate) row(ctx context.Context, id checkpoint.ID, name string) (checkpoint.Row, error) {
	rows, err := g.store.Rows(ctx, id, name, 1)
	if err != nil || len(rows) == 0 || rows[0].Name != name {
		return checkpoint.Row{}, err
	}
	return rows[0], nil
}

// stepName is the name of a step's row. It does not tell the key to a store.
func (g *Gate) stepName(id checkpoint.ID, key string) string {
	name := g.hash("step", id.String(), key)
	return hex.EncodeToString(name[:])
}

// stepID is what external systems know the step by. It is no secret, and does not tell the key.
func (g *Gate) stepID(id checkpoint.ID, key string) string {
	name := g.hash("step id", id.String(), key)
	return hex.EncodeToString(name[:16])
}

func invalidStep(key, reason string, cause error) error {
	return &interrupt.StepError{Key: key, Reason: reason, Err: interrupt.ErrInvalidStep, Cause: cause}
}

func notBegun(key string, cause error) error {
	return &interrupt.StepError{Key: key, Reason: "it was not begun", Err: cause}
}

func notServed(key string, trouble *Error) error {
	return &interrupt.StepError{Key: key, Reason: "it is not recorded", Err: trouble}
}
