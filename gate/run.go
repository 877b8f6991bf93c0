package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/canon"
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

// run runs the handler under the claim and records what came of it: rows H1 to H9. in is not
// recorded yet where its revision is 0; a step of the handler's changes that.
func (r *request) run(ctx context.Context, in *checkpoint.Interaction, recovery bool) (Outcome, error) {
	// What is executed is what was approved (R9): both are the record's arguments, and the caller's
	// are compared once more.
	if !bytes.Equal(in.Arguments, r.args) {
		return Outcome{}, r.invalid(ctx, "arguments changed before dispatch", in.ID)
	}
	handler := r.tool.handler
	if recovery && r.tool.opts.Recover != nil {
		handler = r.tool.opts.Recover
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	steps := &steps{request: r, lose: cancel, in: in}
	run := r.resume(in, recovery)
	reports := r.takeReports(run)
	run.Steps = steps
	var result json.RawMessage
	var c interrupt.Classification
	err := safely(func() (err error) {
		result, err = handler(resume.With(ctx, run), bytes.Clone(in.Arguments))
		if err != nil {
			c = interrupt.Classify(err) // which calls methods of the handler's errors
		}
		return err
	})
	asked := run.End()
	reports.close()
	in, trouble := steps.end()
	if err == nil {
		return r.finish(ctx, in, result, asked)
	}
	switch c.Kind {
	case interrupt.KindPrompt:
		if trouble != nil && in.Revision == 0 { // the record may have been made, and this is no second one
			return r.ended(ctx, in, trouble.copy())
		}
		return r.prompted(ctx, in, c, recovery)
	case interrupt.KindMixed:
		e := fail(ErrInvalidQuestion, "the tool raised a question and something else at once")
		return r.ended(ctx, in, e.because(fmt.Errorf("beside the question: %w", c.Other)))
	case interrupt.KindRejected:
		return r.ended(ctx, in, fail(ErrRejected, "the person rejected it"))
	case interrupt.KindDeclined:
		return r.ended(ctx, in, fail(ErrDeclined, "the person declined to answer"))
	case interrupt.KindCancelled:
		return r.ended(ctx, in, fail(ErrCancelled, "the person broke off"))
	case interrupt.KindOutcomeUnknown: // H9
		e := fail(ErrOutcomeUnknown, "a step was begun and may have had its effect: %s", ownKey(r.call.StartID))
		return r.ended(ctx, in, e.because(err))
	default:
		if trouble != nil && errors.Is(err, trouble) { // H5, or H8
			return r.ended(ctx, in, trouble.copy())
		}
		return r.ended(ctx, in, failure(err))
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

// maxPublic bounds the words and the link that a failure makes public, in bytes (R34).
const maxPublic = 4 << 10

// failure is H4, or H5 for a question that was refused when it was asked. Only what the handler
// itself made public is told.
func failure(err error) *Error {
	var question *interrupt.QuestionError
	if errors.As(err, &question) {
		return invalidQuestion(err)
	}
	e := fail(ErrFailed, "the tool failed").because(err)
	var public *interrupt.Failure
	if errors.As(err, &public) && public != nil {
		e.Message, e.Link = canon.Clip(public.Text, maxPublic), canon.Clip(public.Link, maxPublic)
	}
	return e
}

// finish is H2, or H5 for a handler that asked and said nothing of it (R2).
func (r *request) finish(ctx context.Context, in *checkpoint.Interaction, result json.RawMessage, asked bool) (Outcome, error) {
	if asked {
		return r.ended(ctx, in, fail(ErrInvalidQuestion, "the tool asked a question and then returned a result"))
	}
	if result == nil {
		result = json.RawMessage("null")
	}
	if !json.Valid(result) {
		return r.ended(ctx, in, fail(ErrFailed, "the tool's result is not JSON"))
	}
	ending := checkpoint.Ending{}
	if r.tool.opts.KeepResult && len(result) <= r.gate.opts.Limits.Result {
		ending.Result = bytes.Clone(result)
	}
	if err := r.markEnding(ctx, in, ending); err != nil {
		return Outcome{}, err
	}
	outcome := Outcome{Result: result}
	if in.Revision > 0 {
		outcome.Interaction = in.ID
	}
	return outcome, nil
}

// prompted is H1, or what forbids it: H5, H6 and H7.
func (r *request) prompted(ctx context.Context, in *checkpoint.Interaction, c interrupt.Classification, recovery bool) (Outcome, error) {
	g := r.gate
	if recovery { // H7
		return r.ended(ctx, in, fail(ErrRecoveryOnly, "the tool asked a question while it was to recover"))
	}
	if r.tool.opts.NeverAsks {
		return r.ended(ctx, in, fail(ErrInvalidQuestion, "the tool asked a question and declares that it never does"))
	}
	if e := r.limitRounds(in); e != nil {
		return r.ended(ctx, in, e)
	}
	now := g.now()
	round, e := r.makeRound(in, c, now)
	if e != nil {
		return r.ended(ctx, in, e)
	}
	next := ask(in, round, now)
	outOfBand, e := r.canShow(next)
	if e != nil {
		return r.ended(ctx, in, e)
	}
	if past(next.Last().Deadline, now) { // H6
		return r.ended(ctx, in, fail(ErrExpired, "the tool asked after the time to answer was over"))
	}
	// From here on the prompt is on its way: Close waits for it.
	if r.closing() {
		return r.ended(ctx, in, closing())
	}
	v, err := g.commitTwice(ctx, r.origin(), in, next)
	switch {
	case v != conflict || next.Join.IsZero():
	case in.Revision == 0: // J3, or the same commit landed before
		return Outcome{}, errRestart
	default: // J4
		next.Start = checkpoint.Hash{}
		v, err = g.commitTwice(ctx, r.origin(), in, next)
	}
	switch {
	case v == applied:
		prompt, err := r.show(next)
		return r.prompts(prompt, outOfBand), err
	case errors.Is(err, checkpoint.ErrInvalidBatch): // the store takes no record like this one
		return r.ended(ctx, in, fail(ErrTooLarge, "the prompt cannot be stored").because(err))
	case v == unknown, in.Revision == 0: // without a record there was no claim to lose
		return Outcome{}, unavailable(err)
	default:
		return Outcome{}, lost(in, err)
	}
}

// ended records an end other than success, and returns it.
func (r *request) ended(ctx context.Context, in *checkpoint.Interaction, e *Error) (Outcome, error) {
	if in.Revision > 0 {
		e = e.on(in.ID)
	}
	ending := checkpoint.Ending{Code: string(e.Code), Message: e.Message, Link: e.Link}
	if err := r.markEnding(ctx, in, ending); err != nil {
		return Outcome{}, err
	}
	return Outcome{}, e
}

// markEnding marks how the attempt ended, where there is a record.
func (r *request) markEnding(ctx context.Context, in *checkpoint.Interaction, ending checkpoint.Ending) error {
	if in.Revision == 0 {
		return nil
	}
	switch r.gate.mark(ctx, r.origin(), in, end(in, ending, r.gate.now(), r.gate.opts.Retention)) {
	case conflict, lapsed:
		return lost(in, nil)
	}
	return nil
}

// lost is H8: the claim was lost while the handler ran.
func lost(in *checkpoint.Interaction, cause error) *Error {
	return fail(ErrOutcomeUnknown, "the right to run the tool was lost while it ran: %s", ownKey("")).on(in.ID).because(cause)
}
