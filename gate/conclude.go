package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// conclude records what came of the attempt: rows H1 to H9. Where it returns a record there is
// another attempt to make.
func (r *request) conclude(ctx context.Context, a attempt) (*checkpoint.Interaction, Outcome, error) {
	switch {
	case a.err == nil:
		outcome, err := r.finish(ctx, a.in, a.result, a.asked)
		return nil, outcome, err
	case a.said.Kind != interrupt.KindPrompt:
		return r.over(ctx, a.in, r.ending(a))
	case a.trouble != nil && a.in.Revision == 0: // the record may have been made, and this is no second one
		return r.over(ctx, a.in, a.trouble.copy())
	default:
		return r.prompted(ctx, a)
	}
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

// maxPublic bounds the words and the link that a failure makes public, in bytes (R34).
const maxPublic = 4 << 10

// publicLink is a link that a caller may be shown; one that is too long, or leads to no web page,
// is none: cut, it would lead elsewhere.
func publicLink(link string) string {
	u, err := url.Parse(link)
	if err != nil || len(link) > maxPublic || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || !utf8.ValidString(link) {
		return ""
	}
	return link
}

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
		e.Message, e.Link = canon.Clip(strings.ToValidUTF8(public.Text, "\uFFFD"), maxPublic), publicLink(public.Link)
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
func (r *request) prompted(ctx context.Context, a attempt) (*checkpoint.Interaction, Outcome, error) {
	next, e := r.nextPrompt(a)
	if e != nil {
		return r.over(ctx, a.in, e)
	}
	if c := r.recall(ctx, next, next.Updated); c != nil {
		on, outcome, err := r.answerRecalled(ctx, a.in, next, c)
		if err != errAsk {
			return on, outcome, err
		}
	}
	outcome, err := r.askPerson(ctx, a.in, next)
	return nil, outcome, err
}

// nextPrompt is the record with what the handler asked as its open round, not committed yet; or the
// error of H5 or H7.
func (r *request) nextPrompt(a attempt) (*checkpoint.Interaction, *Error) {
	if a.recovery { // H7
		return nil, fail(ErrRecoveryOnly, "the tool asked a question while it was to recover")
	}
	if r.tool.opts.NeverAsks {
		return nil, fail(ErrInvalidQuestion, "the tool asked a question and declares that it never does")
	}
	if e := r.limitRounds(a.in); e != nil {
		return nil, e
	}
	now := r.gate.now()
	round, e := r.makeRound(a.in, a.said, now)
	if e != nil {
		return nil, e
	}
	return ask(a.in, round, now), nil
}

// askPerson is H1, or what still forbids it: H5 and H6.
func (r *request) askPerson(ctx context.Context, in, next *checkpoint.Interaction) (Outcome, error) {
	outOfBand, e := r.canShow(next)
	if e != nil {
		return r.ended(ctx, in, e)
	}
	if past(next.Last().Deadline, next.Updated) { // H6
		return r.ended(ctx, in, askedLate())
	}
	// From here on the prompt is on its way: Close waits for it.
	if r.closing() {
		return r.ended(ctx, in, closing())
	}
	if r.call.Run != nil { // W5
		return r.hold(ctx, in, next, outOfBand)
	}
	v, err := r.gate.commitTwice(ctx, r.origin(), in, next, nil)
	switch {
	case v != conflict || next.Join.IsZero():
	case in.Revision == 0: // J3, or the same commit landed before
		return Outcome{}, errRestart
	default: // J4
		next.Start = checkpoint.Hash{}
		v, err = r.gate.commitTwice(ctx, r.origin(), in, next, nil)
	}
	if v != applied {
		return r.notRecorded(ctx, in, v, err)
	}
	prompt, err := r.show(next)
	return r.prompts(prompt, outOfBand), err
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
		return Outcome{}, r.lostClaim(in, err)
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
		return r.lostClaim(in, nil)
	case unknown:
		// Another owner may be at it by now, or have ended it otherwise.
		if r.gate.member.lost(r.owner) {
			return r.lostClaim(in, nil)
		}
	}
	return nil
}

// lostClaim is H8. With the claim of a call in a run the right to the run is lost, which is of the
// same owner (W10).
func (r *request) lostClaim(in *checkpoint.Interaction, cause error) *Error {
	if run := r.call.Run; run != nil {
		run.lost(cause)
	}
	return lost(in, cause)
}

// lost is H8: the claim was lost while the handler ran.
func lost(in *checkpoint.Interaction, cause error) *Error {
	return fail(ErrOutcomeUnknown, "the right to run the tool was lost while it ran: %s", ownKey("")).on(in.ID).because(cause)
}
