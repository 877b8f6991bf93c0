package gate

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// verify is check 6: the answers against the stored questions of a round (R15, R18). It returns the
// answer to be recorded. Nothing is changed, whatever comes in (R16).
func (g *Gate) verify(in *checkpoint.Interaction, round int, answers Answers) (*checkpoint.Answer, error) {
	stillOpen := in.Status == checkpoint.Open && round == len(in.Rounds)
	asked := in.Rounds[round-1]
	answer, worst, err := g.verifyAll(asked.Questions, answers, asked.Answer == nil)
	if err == nil && stillOpen {
		err = g.keptOpen(in.Tool, worst)
	}
	if err != nil {
		err.StillOpen = stillOpen
		return nil, err.on(in.ID)
	}
	return answer, nil
}

// verifyAll returns with the answer the worst action in it: cancel, else decline, else accept.
// waits is set where the round has no answer yet.
func (g *Gate) verifyAll(questions []checkpoint.Question, answers Answers, waits bool) (*checkpoint.Answer, interrupt.Action, *Error) {
	known := make(map[string]bool, len(questions))
	answer := &checkpoint.Answer{}
	worst := interrupt.ActionAccept
	var given []json.RawMessage
	for _, q := range questions {
		known[q.ID] = true
		payload, ok := answers[q.ID]
		if !ok {
			return nil, "", notFitting(q.ID, "the answer is missing")
		}
		one, err := g.verifyOne(q, payload, waits)
		if err != nil {
			return nil, "", err
		}
		given = append(given, one.given)
		answer.Payloads = append(answer.Payloads, one.meant)
		if one.action == interrupt.ActionCancel || worst == interrupt.ActionAccept {
			worst = one.action
		}
	}
	for id := range answers {
		if !known[id] {
			return nil, "", notFitting(id, "the round has no such question")
		}
	}
	answer.Digest = digestAll(given)
	return answer, worst, nil
}

// A verified answer to one question. Both payloads are in canonical form, and the action and the
// question's id always stand in them.
type verified struct {
	given  json.RawMessage
	meant  json.RawMessage // what is recorded; the same, but for a question that its type presents
	action interrupt.Action
}

func (g *Gate) verifyOne(q checkpoint.Question, payload json.RawMessage, waits bool) (verified, *Error) {
	own, question, err := answered(q, waits)
	if err != nil {
		return verified{}, fail(ErrRevisionChanged, "question %q is of a type that is not known here", q.ID).because(hideInterrupts(err))
	}
	v, err := g.given(question, q.ID, payload)
	if v.meant = v.given; err == nil && q.Shown != nil && waits && v.action == interrupt.ActionAccept {
		v.meant, err = g.meaning(own, question, q.ID, v.given)
	}
	var panicked *PanicError
	switch {
	case err == nil:
		return v, nil
	case errors.As(err, &panicked):
		return verified{}, notFitting(q.ID, "is not accepted").because(panicked)
	}
	e := notFitting(q.ID, err.Error()).because(hideInterrupts(err))
	e.Path = place(err)
	return verified{}, e
}

// given checks a payload against what was asked.
func (g *Gate) given(question interrupt.Interrupt, id string, payload json.RawMessage) (v verified, err error) {
	canonical, err := canon.JSON(payload, &canon.Limits{Bytes: g.opts.Limits.Answer, Depth: g.opts.Limits.Depth})
	if err != nil {
		return v, err
	}
	var named string
	err = safely(func() (err error) {
		v.action, named, err = interrupt.Check(question, canonical)
		return err
	})
	if err == nil && named != "" && named != id {
		err = &interrupt.PayloadError{Type: question.TypeName(), Path: "/interruptId", Reason: "is that of another question"}
	}
	if err != nil {
		return v, err
	}
	v.given, err = complete(canonical, id, v.action)
	return v, err
}

// answered reads back what an answer is checked against: what was shown, and the question itself
// where the answer is turned into one to it.
func answered(q checkpoint.Question, waits bool) (own, shown interrupt.Interrupt, err error) {
	if q.Shown != nil && !waits {
		shown, err = restore(interrupt.Question{Type: q.Shown.Type, Body: q.Shown.Body})
		return nil, shown, err
	}
	if own, shown, err = readBack(q); q.Shown == nil {
		shown = own
	}
	return own, shown, err
}

func notFitting(question, reason string) *Error {
	e := fail(ErrInvalidAnswer, "question %.80q: %s", question, reason)
	e.Question = question
	return e
}

// place is where in the payload an error is.
func place(err error) string {
	var payload *interrupt.PayloadError
	var canonical *canon.Error
	switch {
	case errors.As(err, &payload):
		return payload.Path
	case errors.As(err, &canonical):
		return canonical.Path
	}
	return ""
}

// complete writes a canonical payload with its question's id and its action, so that two ways to
// say the same are one answer.
func complete(canonical []byte, id string, action interrupt.Action) (json.RawMessage, error) {
	whole, err := canon.SetText(canonical, "action", string(action))
	if err != nil {
		return nil, err
	}
	return canon.SetText(whole, "interruptId", id)
}

// An AnswerRequest is an answer by another road than the caller's: from an inbox, an operator,
// another window.
type AnswerRequest struct {
	Interaction checkpoint.ID
	Round       int
	Answers     Answers
	// Scope is the host's key for the authenticated answerer, and By who that is, in its words; By
	// is recorded.
	Scope string
	By    string

	only string // the question that must be of the round, where one is named; see ReturnInterrupt
}

// Answer records an answer and runs nothing: the caller's next Invoke or its Wait runs the handler
// (R24). The same answer again is confirmed; another one is ErrAnswerConflict. When Answer returns
// nil the answer is durable. It takes a gate that has the tool: elsewhere its arguments are not
// shown, and what is not shown is not answered.
func (f *Face) Answer(ctx context.Context, a AnswerRequest) error {
	ctx, done, err := f.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	g := f.gate
	ctx = outside(ctx)
	scope, err := g.scopeOf(a.Scope)
	if err != nil {
		return err
	}
	if err := g.boundName("by", a.By); err != nil {
		return err
	}
	if err := g.boundAnswers(a.Answers); err != nil {
		return err
	}
	g.sweep(ctx)
	return restarting(func() error { return f.answer(ctx, a, scope) })
}

func (f *Face) answer(ctx context.Context, a AnswerRequest, scope checkpoint.Hash) error {
	g := f.gate
	in, err := g.load(ctx, a.Interaction)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return fail(ErrInvalidContinuation, "there is no such interaction")
	}
	if err != nil {
		return err
	}
	who := Answerer{Scope: a.Scope, SameScope: in.Scope == scope, By: a.By, Face: f.name, Interaction: in.ID, Tool: in.Tool}
	if err := g.mayAnswer(ctx, in, a, who); err != nil {
		return err
	}
	from := origin{face: f.name}
	if who.SameScope {
		from.scope = a.Scope
	}
	now := g.now()
	if overdue(in, a.Round, now) {
		return g.expired(ctx, from, in, now, "")
	}
	answer, err := g.verify(in, a.Round, a.Answers)
	if err != nil {
		return err
	}
	answer.Time, answer.By, answer.Face, answer.Elsewhere = now, a.By, f.name, true
	m := arrive(in, arrival{round: a.Round, answer: answer, now: now})
	switch {
	case m.then == refuse:
		return refused(m, in, "")
	case m.next == nil:
		return nil
	case g.opts.ReadOnly:
		return readOnly()
	}
	return g.recordAnswer(ctx, from, in, m.next, who)
}

// mayAnswer is what stands in the place of a token and its bindings (check 4).
func (g *Gate) mayAnswer(ctx context.Context, in *checkpoint.Interaction, a AnswerRequest, who Answerer) error {
	if err := safely(func() error { return g.opts.AuthorizeAnswer(ctx, who) }); err != nil {
		return fail(ErrUnauthorized, "the answer is not authorized").because(hideInterrupts(err))
	}
	if g.tools[in.Tool] == nil {
		// Here nobody saw the arguments, nor is it known whether the tool keeps its question open.
		return fail(ErrUnknownTool, "tool %.64q, which asked, is not a tool of this gate", in.Tool).on(in.ID)
	}
	if a.Round < 1 || a.Round > len(in.Rounds) {
		return fail(ErrInvalidContinuation, "there is no such round").on(in.ID)
	}
	if a.only != "" && !asks(in.Rounds[a.Round-1], a.only) {
		return fail(ErrInvalidContinuation, "there is no such question").on(in.ID)
	}
	return nil
}

// recordAnswer is N3: room for the answer alone, since nothing runs, and the commit.
func (g *Gate) recordAnswer(ctx context.Context, from origin, in, next *checkpoint.Interaction, who Answerer) error {
	decisions, e := g.toRemember(ctx, in, next, who)
	if e != nil {
		return e
	}
	need := checkpoint.Usage{Bytes: answerSize(next.Last().Answer) + decisionsSize(decisions)}
	room, e := g.reserve(ctx, in.Scope, need)
	if e != nil {
		e.StillOpen = true
		return e.on(in.ID)
	}
	defer room.release()
	return g.commitRow(ctx, from, in, next, decisions)
}

// keptOpen is row P4: a tool can keep its question open where it was declined or cancelled (R17).
func (g *Gate) keptOpen(name string, action interrupt.Action) *Error {
	if !g.tools[name].opts.KeepOpen {
		return nil
	}
	switch action {
	case interrupt.ActionDecline:
		return fail(ErrDeclined, "the question stays open")
	case interrupt.ActionCancel:
		return fail(ErrCancelled, "the question stays open")
	}
	return nil
}
