package gate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-go/parley/internal/resume"
	"github.com/parley-go/parley/interrupt"
)

// progressInterval is the least time from the end of one delivery to the next (R35).
const progressInterval = 100 * time.Millisecond

// maxProgressErrors is how many errors a Progress keeps.
const maxProgressErrors = 8

// A Progress takes the progress of a call, for its host (R35). Each run of a handler is a sequence
// of its own, also where calls share a Progress; where a call has several runs, because remembered
// decisions answered in between, what a later one says again is left out. It must not be copied
// after its first use.
type Progress struct {
	// Sink is given an update in the goroutine of the handler that reports it, which waits: one at
	// a time in each call, at most one per 100 ms, never less completed than before. The update is
	// the sink's own copy. What comes in between is left out, and the last update can be among
	// that. Nothing comes after the call has returned, and the call waits for a sink that is
	// running: it has to return when ctx ends. Its errors and panics do not change how the call
	// ends; see Errors. Nil: nothing is delivered.
	Sink func(ctx context.Context, u interrupt.Update) error

	mu   sync.Mutex // guards errs
	errs []error
}

// Errors returns what went wrong, the first eight errors of all calls that the Progress was given
// to: a [*interrupt.UpdateError] for an update that was not valid and therefore not delivered, the
// sink's own errors, and a [*PanicError] where it panicked. They are for the host and can be
// private. After a call has returned, it adds nothing.
func (p *Progress) Errors() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.errs)
}

func (p *Progress) note(err error) {
	if p == nil || err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.errs) < maxProgressErrors {
		p.errs = append(p.errs, err)
	}
}

// reports takes the updates of one run of a handler.
type reports struct {
	host *Progress                                           // nil: nobody listens
	sink func(ctx context.Context, u interrupt.Update) error // nil: nothing is delivered
	now  func() time.Time

	mu        sync.Mutex // guards what follows
	closed    bool
	completed float64       // of the latest valid update, delivered or not
	floor     float64       // of an earlier run of the same call: what is less is not delivered
	next      time.Time     // before this, nothing is delivered
	running   chan struct{} // closed when the delivery that is running has ended; nil: none runs
}

// takeReports makes the run's updates go to the call's Progress, until they are closed.
func (r *request) takeReports(run *resume.Run) *reports {
	s := &reports{host: r.call.Progress, now: r.gate.opts.Now}
	if s.host != nil {
		s.sink = s.host.Sink
	}
	if former := r.reports; former != nil { // it is closed, and changes no more
		s.floor, s.next = max(former.floor, former.completed), former.next
	}
	run.Report, r.reports = s.take, s
	return s
}

// close lets nothing in any more, and waits for the delivery that is running.
func (s *reports) close() {
	s.mu.Lock()
	s.closed = true
	running := s.running
	s.mu.Unlock()
	if running != nil {
		<-running
	}
}

// take is the run's Report.
func (s *reports) take(ctx context.Context, raw resume.Update) bool {
	u := interrupt.Update(raw)
	if u.Total != nil {
		u.Total = new(*u.Total)
	}
	admitted, running := s.admit(u)
	if running != nil {
		s.deliver(ctx, u, running)
	}
	return admitted
}

// admit reports whether the run is still open. Where the update is to be delivered, it begins that
// delivery.
func (s *reports) admit(u interrupt.Update) (admitted bool, running chan struct{}) {
	// The clock is the host's: it is not read under the mutex. So the time can be older than the
	// latest delivery, as it can with a clock that steps back. Both leave the update out: rather
	// too few than too many.
	now := s.now()
	err := u.Validate()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, nil
	}
	if err == nil && u.Completed < s.completed {
		err = &interrupt.UpdateError{Field: "completed", Reason: fmt.Sprintf("is %v, after %v", u.Completed, s.completed)}
	}
	if err != nil {
		s.host.note(err) // before close can return: the host looks then
		return true, nil
	}
	s.completed = u.Completed
	if s.sink == nil || s.running != nil || now.Before(s.next) || u.Completed < s.floor {
		return true, nil
	}
	s.running = make(chan struct{})
	return true, s.running
}

// deliver gives the update to the sink. The interval counts from the end of it: a slow sink does
// not make two updates meet.
func (s *reports) deliver(ctx context.Context, u interrupt.Update, running chan struct{}) {
	var err error
	defer func() { // also where the sink ends its goroutine: the call waits for this
		next := s.now().Add(progressInterval)
		s.mu.Lock()
		s.host.note(err)
		s.next, s.running = next, nil
		s.mu.Unlock()
		close(running)
	}()
	err = safely(func() error {
		err := s.sink(outside(ctx), u)
		if err != nil {
			err = hideInterrupts(err)
		}
		return err
	})
}
