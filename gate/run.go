package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/resume"
	"github.com/parley-go/parley/interrupt"
)

// A PanicError is the private cause where application code panicked: a handler, a type of question,
// or a host's callback.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// run runs the handler under the claim, again for every round that remembered decisions answered
// (H9), until it ends or somebody has to be asked. in is not recorded yet where its revision is 0.
func (r *request) run(ctx context.Context, in *checkpoint.Interaction, recovery bool) (Outcome, error) {
	for {
		// What is executed is what was approved (R9): both are the record's arguments, and the
		// caller's are compared once more.
		if !bytes.Equal(in.Arguments, r.args) {
			return Outcome{}, r.invalid(ctx, "arguments changed before dispatch", in.ID)
		}
		next, outcome, err := r.conclude(ctx, r.handle(ctx, in, recovery))
		if next == nil {
			return outcome, err
		}
		in = next
	}
}

// An attempt is one run of the handler, when it has returned.
type attempt struct {
	in       *checkpoint.Interaction // as it is recorded by then: a step makes a record where there is none
	recovery bool
	result   json.RawMessage
	asked    bool                     // the handler asked something, whatever it returned
	err      error                    // what it returned
	said     interrupt.Classification // of err
	trouble  *Error                   // why a step was not recorded
}

func (r *request) handle(ctx context.Context, in *checkpoint.Interaction, recovery bool) attempt {
	handler := r.tool.handler
	if recovery && r.tool.opts.Recover != nil {
		handler = r.tool.opts.Recover
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer r.gate.member.guard(r.owner, cancel)() // H8
	defer whenOver(r.call.Over, cancel)()
	steps := &steps{request: r, lose: cancel, recovery: recovery, in: in}
	run := r.resume(in, recovery)
	run.Steps = steps
	reports := r.takeReports(run)
	a := attempt{recovery: recovery}
	a.err = safely(func() (err error) {
		a.result, err = handler(resume.With(resume.AnswerFallback(ctx, false), run), bytes.Clone(in.Arguments))
		if err != nil {
			a.said = interrupt.Classify(err) // which calls methods of the handler's errors
		}
		return err
	})
	a.asked = run.End()
	reports.close()
	a.in, a.trouble = steps.end()
	return a
}

// whenOver cancels where the caller wants no more: at once, where that is so already, so that no
// handler begins with a context that is about to end.
func whenOver(over <-chan struct{}, cancel context.CancelFunc) (stop func()) {
	if over == nil {
		return func() {}
	}
	select {
	case <-over:
		cancel()
	default:
	}
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-over:
			cancel()
		case <-ended:
		}
	}()
	return func() {
		close(ended)
		<-gone
	}
}

// resume is what the handler can read of the record: every answer, and the state of the round that
// was answered.
func (r *request) resume(in *checkpoint.Interaction, recovery bool) *resume.Run {
	run := &resume.Run{Attempt: int(in.Claim.Attempt), Recovery: recovery, Facilities: r.facilities()}
	if len(in.Rounds) == 0 && !recovery {
		run.Attempt = 0 // the first run resumes nothing
		return run
	}
	run.Round = answeredRounds(in)
	for _, round := range in.Rounds[:run.Round] {
		run.Current, run.State = len(run.Questions), round.State
		run.Fallback = run.Fallback || round.Answer.Fallback
		for i, q := range round.Questions {
			run.Questions = append(run.Questions, current(q, round.Answer.Payloads[i]))
		}
	}
	return run
}

// safely calls application code. A panic of its is an error.
func safely(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, debug.Stack()}
		}
	}()
	return call()
}
