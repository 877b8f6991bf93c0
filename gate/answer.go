package gate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// verify is check 6: the answers against the stored questions of a round (R15, R18). It returns the
// answer to be recorded. Nothing is changed, whatever comes in (R16).
func (g *Gate) verify(in *checkpoint.Interaction, round int, answers Answers) (*checkpoint.Answer, error) {
	stillOpen := in.Status == checkpoint.Open && round == len(in.Rounds)
	answer, worst, err := g.verifyAll(in.Rounds[round-1].Questions, answers)
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
func (g *Gate) verifyAll(questions []checkpoint.Question, answers Answers) (*checkpoint.Answer, interrupt.Action, *Error) {
	known := make(map[string]bool, len(questions))
	answer := &checkpoint.Answer{}
	worst := interrupt.ActionAccept
	for _, q := range questions {
		known[q.ID] = true
		payload, ok := answers[q.ID]
		if !ok {
			return nil, "", notFitting(q.ID, "the answer is missing")
		}
		normal, action, err := g.verifyOne(q, payload)
		if err != nil {
			return nil, "", err
		}
		answer.Payloads = append(answer.Payloads, normal)
		if action == interrupt.ActionCancel || worst == interrupt.ActionAccept {
			worst = action
		}
	}
	for id := range answers {
		if !known[id] {
			return nil, "", notFitting(id, "the round has no such question")
		}
	}
	answer.Digest = digestAll(answer.Payloads)
	return answer, worst, nil
}

// verifyOne checks one payload and returns its canonical form, in which the action and the
// question's id always stand.
func (g *Gate) verifyOne(q checkpoint.Question, payload json.RawMessage) (json.RawMessage, interrupt.Action, *Error) {
	invalid := func(err error) *Error {
		e := notFitting(q.ID, err.Error()).because(hideInterrupts(err))
		e.Path = place(err)
		return e
	}
	var question interrupt.Interrupt
	err := safely(func() (err error) {
		question, err = interrupt.Rehydrate(q.Type, q.Body)
		return err
	})
	if err != nil {
		return nil, "", fail(ErrRevisionChanged, "question %q is of a type that is not known here", q.ID).because(hideInterrupts(err))
	}
	canonical, err := canon.JSON(payload, &canon.Limits{Bytes: g.opts.Limits.Answer, Depth: g.opts.Limits.Depth})
	if err != nil {
		return nil, "", invalid(err)
	}
	var action interrupt.Action
	var id string
	err = safely(func() (err error) {
		action, id, err = interrupt.Check(question, canonical)
		return err
	})
	var panicked *PanicError
	if errors.As(err, &panicked) {
		return nil, "", notFitting(q.ID, "is not accepted").because(panicked)
	}
	if err == nil && id != "" && id != q.ID {
		err = &interrupt.PayloadError{Type: q.Type, Path: "/interruptId", Reason: "is that of another question"}
	}
	if err != nil {
		return nil, "", invalid(err)
	}
	normal, err := complete(canonical, q.ID, action)
	if err != nil {
		return nil, "", invalid(err)
	}
	return normal, action, nil
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
	var members map[string]json.RawMessage
	if err := json.Unmarshal(canonical, &members); err != nil {
		return nil, err
	}
	members["interruptId"] = fmt.Appendf(nil, "%q", id)
	members["action"] = fmt.Appendf(nil, "%q", string(action))
	whole, err := canon.Marshal(members)
	if err != nil {
		return nil, err
	}
	return canon.JSON(whole, &canon.Limits{Bytes: len(whole), Depth: math.MaxInt}) // both were bounded before
}

// digestAll is the digest of a list of canonical values.
func digestAll(values []json.RawMessage) checkpoint.Hash {
	h := sha256.New()
	for _, value := range values {
		frame(h, value)
	}
	return checkpoint.Hash(h.Sum(nil))
}

// frame writes a part with its length, so that no two lists of parts read the same.
func frame[T string | []byte | json.RawMessage](h hash.Hash, part T) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(part)))
	h.Write(size[:])
	h.Write([]byte(part))
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
	if a.Scope == "" {
		return fail(ErrUnauthorized, "the host names no scope")
	}
	if err := g.boundName("scope", a.Scope); err != nil {
		return err
	}
	if err := g.boundName("by", a.By); err != nil {
		return err
	}
	if err := g.boundAnswers(a.Answers); err != nil {
		return err
	}
	g.sweep(ctx)
	return restarting(func() error { return f.answer(ctx, a) })
}

func (f *Face) answer(ctx context.Context, a AnswerRequest) error {
	g := f.gate
	in, err := g.load(ctx, a.Interaction)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return fail(ErrInvalidContinuation, "there is no such interaction")
	}
	if err != nil {
		return err
	}
	who := Answerer{
		Scope: a.Scope, SameScope: in.Scope == g.hash("scope", a.Scope), By: a.By, Face: f.name, Interaction: in.ID, Tool: in.Tool,
	}
	from := origin{face: f.name}
	if who.SameScope {
		from.scope = a.Scope
	}
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
	if m.then == refuse {
		return refused(m, in, "")
	}
	if m.next == nil {
		return nil
	}
	if g.opts.ReadOnly {
		return readOnly()
	}
	room, e := g.reserve(ctx, in.Scope, checkpoint.Usage{Bytes: answerSize(answer)})
	if e != nil {
		e.StillOpen = true
		return e.on(in.ID)
	}
	defer room.release()
	switch v, err := g.commit(ctx, from, in, m.next); v {
	case applied:
		return nil
	case conflict:
		return errRestart
	default:
		return unavailable(err).on(in.ID)
	}
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
