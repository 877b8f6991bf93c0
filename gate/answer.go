package gate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// verify is check 6: the answers against the stored questions of a round (R15, R18). It returns the answer to be recorded, and the worst
// action in it. Nothing is changed, whatever comes in (R16).
func (g *Gate) verify(ctx context.Context, in *checkpoint.Interaction, round int, answers Answers) (*checkpoint.Answer, interrupt.Action, error) {
	questions := in.Rounds[round-1].Questions
	known := make(map[string]bool, len(questions))
	answer := &checkpoint.Answer{}
	worst := interrupt.ActionAccept
	for _, q := range questions {
		known[q.ID] = true
		payload, ok := answers[q.ID]
		if !ok {
			return nil, "", notFitting(q.ID, "the answer is missing").on(in.ID)
		}
		normal, action, err := g.verifyOne(ctx, q, payload)
		if err != nil {
			return nil, "", err.on(in.ID)
		}
		answer.Payloads = append(answer.Payloads, normal)
		if action == interrupt.ActionCancel || worst == interrupt.ActionAccept {
			worst = action
		}
	}
	for id := range answers {
		if !known[id] {
			return nil, "", notFitting(id, "round has no such question").on(in.ID)
		}
	}
	answer.Digest = digestAll(answer.Payloads)
	return answer, worst, nil
}

// verifyOne checks one payload and returns its canonical form, in which the action and the question's id always stand.
func (g *Gate) verifyOne(ctx context.Context, q checkpoint.Question, payload json.RawMessage) (json.RawMessage, interrupt.Action, *Error) {
	invalid := func(err error) *Error {
		e := notFitting(q.ID, err.Error()).because(hideInterrupts(err))
		e.Path = place(err)
		return e
	}
	question, err := interrupt.Rehydrate(q.Type, q.Body)
	if err != nil {
		g.log.ErrorContext(ctx, "question cannot be read back", "question", q.ID, "error", err)
		return nil, "", fail(ErrUnavailable, "question %q cannot be answered here", q.ID).because(hideInterrupts(err))
	}
	canonical, err := canon.JSON(payload, &canon.Limits{Bytes: g.opts.Limits.Answer, Depth: g.opts.Limits.Depth})
	if err != nil {
		return nil, "", invalid(err)
	}
	action, id, err := interrupt.ActionOf(q.Type, canonical)
	if err != nil {
		return nil, "", invalid(err)
	}
	if id != "" && id != q.ID {
		return nil, "", invalid(&interrupt.PayloadError{Type: q.Type, Path: "/interruptId", Reason: "is that of another question"})
	}
	if _, err := interrupt.Check(question, canonical); err != nil {
		return nil, "", invalid(err)
	}
	normal, err := complete(canonical, q.ID, action)
	if err != nil {
		return nil, "", invalid(err)
	}
	return normal, action, nil
}

func notFitting(question, reason string) *Error {
	e := fail(ErrInvalidAnswer, "question %.80q: %s", question, reason).stillOpen()
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

// complete writes a canonical payload with its question's id and its action, so that two ways to say the same are one answer.
func complete(canonical []byte, id string, action interrupt.Action) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(canonical, &members); err != nil {
		return nil, err
	}
	members["interruptId"] = fmt.Appendf(nil, "%q", id)
	members["action"] = fmt.Appendf(nil, "%q", string(action))
	whole, err := encode(members)
	if err != nil {
		return nil, err
	}
	return canon.JSON(whole, &canon.Limits{Bytes: len(whole)})
}

// encode writes JSON whose raw values stay as they are: no escaping for HTML.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(buf.Bytes()), err
}

// digestAll is the digest of a list of canonical values.
func digestAll(values []json.RawMessage) checkpoint.Hash {
	h := sha256.New()
	for _, value := range values {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(value)))
		h.Write(size[:])
		h.Write(value)
	}
	return checkpoint.Hash(h.Sum(nil))
}

// An AnswerRequest is an answer by another road than the caller's: from an inbox, an operator, another window.
type AnswerRequest struct {
	Interaction checkpoint.ID
	Round       int
	Answers     Answers
	// Scope is the host's key for the authenticated answerer, and By who that is, in its words; By is recorded.
	Scope string
	By    string
}

// Answer records an answer and runs nothing: the caller's next Invoke or its Wait runs the handler (R24). The same answer again is confirmed;
// another one is ErrAnswerConflict. When Answer returns nil the answer is durable.
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
	if len(a.Scope) > g.opts.Limits.Name || len(a.By) > g.opts.Limits.Name {
		return fail(ErrTooLarge, "scope and by have %d and %d bytes, the limit is %d", len(a.Scope), len(a.By), g.opts.Limits.Name)
	}
	if err := g.boundAnswers(a.Answers); err != nil {
		return err
	}
	g.sweep(ctx)
	for range maxRestarts {
		again, err := f.answerOnce(ctx, a)
		if !again {
			return err
		}
	}
	return busy(a.Interaction)
}

func (f *Face) answerOnce(ctx context.Context, a AnswerRequest) (again bool, _ error) {
	g := f.gate
	in, err := g.load(ctx, a.Interaction)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return false, fail(ErrInvalidContinuation, "there is no such interaction")
	}
	if err != nil {
		return false, err
	}
	who := Answerer{
		Scope: a.Scope, SameScope: in.Scope == g.hash("scope", a.Scope), By: a.By, Face: f.name, Interaction: in.ID, Tool: in.Tool,
	}
	if err := g.opts.AuthorizeAnswer(ctx, who); err != nil {
		return false, fail(ErrUnauthorized, "the answer is not authorized").because(hideInterrupts(err))
	}
	if a.Round < 1 || a.Round > len(in.Rounds) {
		return false, fail(ErrInvalidContinuation, "there is no such round").on(in.ID)
	}
	now := g.now()
	if overdue(in, a.Round, now) {
		return false, g.expired(ctx, in, now)
	}
	answer, action, err := g.verify(ctx, in, a.Round, a.Answers)
	if err != nil {
		return false, err
	}
	if in.Rounds[a.Round-1].Answer == nil {
		if err := g.keptOpen(in, action); err != nil { // P4
			return false, err
		}
	}
	answer.Time, answer.By, answer.Face, answer.Elsewhere = now, a.By, f.name, true
	m := arriveElsewhere(in, arrival{round: a.Round, answer: answer, now: now})
	if m.then == refuse {
		return false, refused(m, in, "")
	}
	if m.next == nil {
		return false, nil
	}
	if g.opts.ReadOnly {
		return false, readOnly()
	}
	switch v, err := g.commit(ctx, in, m.next); v {
	case applied:
		return false, nil
	case conflict:
		return true, nil
	default:
		return false, g.unavailable(ctx, "record answer", err)
	}
}

// keptOpen is row P4: a tool can keep its question open where it was declined or cancelled (R17).
func (g *Gate) keptOpen(in *checkpoint.Interaction, action interrupt.Action) error {
	tool := g.tools[in.Tool]
	if tool == nil || !tool.opts.KeepOpen {
		return nil
	}
	switch action {
	case interrupt.ActionDecline:
		return fail(ErrDeclined, "the question stays open").stillOpen().on(in.ID)
	case interrupt.ActionCancel:
		return fail(ErrCancelled, "the question stays open").stillOpen().on(in.ID)
	}
	return nil
}
