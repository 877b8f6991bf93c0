package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

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
	steps := &steps{request: r, lose: cancel, in: in}
	run := r.resume(in, recovery)
	run.Steps = steps
	reports := r.takeReports(run)
	a := attempt{recovery: recovery}
	a.err = safely(func() (err error) {
		a.result, err = handler(resume.With(ctx, run), bytes.Clone(in.Arguments))
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

// conclude records what came of the attempt: rows H1 to H9. Where it returns a record there is
// another attempt to make.
func (r *request) conclude(ctx context.Context, a attempt) (*checkpoint.Interaction, Outcome, error) {
	if a.err == nil {
		outcome, err := r.finish(ctx, a.in, a.result, a.asked)
		return nil, outcome, err
	}
	if a.said.Kind == interrupt.KindPrompt {
		if a.trouble == nil || a.in.Revision > 0 {
			return r.prompted(ctx, a.in, a.said, a.recovery)
		}
		outcome, err := r.ended(ctx, a.in, a.trouble.copy()) // the record may have been made, and this is no second one
		return nil, outcome, err
	}
	outcome, err := r.ended(ctx, a.in, r.ending(a))
	return nil, outcome, err
}

// ending is how an attempt ended that brought neither a result nor a question: rows H3 to H5.
func (r *request) ending(a attempt) *Error {
	switch a.said.Kind {
	case interrupt.KindMixed:
		e := fail(ErrInvalidQuestion, "the tool raised a question and something else at once")
		return e.because(fmt.Errorf("beside the question: %w", a.said.Other))
	case interrupt.KindRejected:
		return fail(ErrRejected, "the person rejected it")
	case interrupt.KindDeclined:
		return fail(ErrDeclined, "the person declined to answer")
	case interrupt.KindCancelled:
		return fail(ErrCancelled, "the person broke off")
	case interrupt.KindOutcomeUnknown: // H4u
		e := fail(ErrOutcomeUnknown, "a step was begun and may have had its effect: %s", ownKey(r.call.StartID))
		return e.because(a.err)
	}
	if a.trouble != nil && errors.Is(a.err, a.trouble) { // H5, or H8
		return a.trouble.copy()
	}
	return failure(a.err)
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
		ending.Result, _ = compact(result) // which is valid
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

// prompted is H1 or H9, or what forbids it: H5, H6 and H7.
func (r *request) prompted(ctx context.Context, in *checkpoint.Interaction, c interrupt.Classification, recovery bool,
) (*checkpoint.Interaction, Outcome, error) {
	g := r.gate
	if recovery { // H7
		return r.over(ctx, in, fail(ErrRecoveryOnly, "the tool asked a question while it was to recover"))
	}
	if r.tool.opts.NeverAsks {
		return r.over(ctx, in, fail(ErrInvalidQuestion, "the tool asked a question and declares that it never does"))
	}
	if e := r.limitRounds(in); e != nil {
		return r.over(ctx, in, e)
	}
	now := g.now()
	round, e := r.makeRound(in, c, now)
	if e != nil {
		return r.over(ctx, in, e)
	}
	next := ask(in, round, now)
	if c := r.recall(ctx, next, now); c != nil {
		on, outcome, err := r.goOn(ctx, in, next, c)
		if err != errAsk {
			return on, outcome, err
		}
	}
	outOfBand, e := r.canShow(next)
	if e != nil {
		return r.over(ctx, in, e)
	}
	if past(next.Last().Deadline, now) { // H6
		return r.over(ctx, in, askedLate())
	}
	// From here on the prompt is on its way: Close waits for it.
	if r.closing() {
		return r.over(ctx, in, closing())
	}
	v, err := g.commitTwice(ctx, r.origin(), in, next, nil)
	switch {
	case v != conflict || next.Join.IsZero():
	case in.Revision == 0: // J3, or the same commit landed before
		return nil, Outcome{}, errRestart
	default: // J4
		next.Start = checkpoint.Hash{}
		v, err = g.commitTwice(ctx, r.origin(), in, next, nil)
	}
	if v != applied {
		outcome, err := r.notRecorded(ctx, in, v, err)
		return nil, outcome, err
	}
	prompt, err := r.show(next)
	return nil, r.prompts(prompt, outOfBand), err
}

func askedLate() *Error { return fail(ErrExpired, "the tool asked after the time to answer was over") }

// notRecorded is what the caller gets where the commit of a round was not applied.
func (r *request) notRecorded(ctx context.Context, in *checkpoint.Interaction, v verdict, err error) (Outcome, error) {
	switch {
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
	// A record holds UTF-8 only, and what is kept of it in memory says what it says.
	ending := checkpoint.Ending{
		Code: string(e.Code), Message: strings.ToValidUTF8(e.Message, "\ufffd"), Link: strings.ToValidUTF8(e.Link, "\ufffd"),
	}
	if err := r.markEnding(ctx, in, ending); err != nil {
		return Outcome{}, err
	}
	return Outcome{}, e
}

// over is ended for a round that does not go on.
func (r *request) over(ctx context.Context, in *checkpoint.Interaction, e *Error) (*checkpoint.Interaction, Outcome, error) {
	outcome, err := r.ended(ctx, in, e)
	return nil, outcome, err
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
