package gate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// errAsk is returned inside the gate where a person is asked after all: a decision that was to be
// used does not stand any more, or there is no room to go on.
var errAsk = errors.New("a decision does not answer after all")

// A recalled is the answer that decisions give to a round.
type recalled struct {
	answer *checkpoint.Answer
	until  time.Time // when the first of them expires
}

// recall looks for the decisions that answer all questions of the last round of in; nil: there is a
// question that none answers, so that a person is asked. It never answers anything but a permission
// (R19).
func (r *request) recall(ctx context.Context, in *checkpoint.Interaction, now time.Time) *recalled {
	if r.tool.opts.Remember == nil {
		return nil
	}
	questions := in.Last().Questions
	for _, q := range questions {
		if q.Type != interrupt.TypeToolPermission {
			return nil
		}
	}
	c := &recalled{answer: &checkpoint.Answer{Time: now}}
	for i := range questions {
		d, payload, err := r.recallOne(ctx, in, &questions[i], now)
		if err != nil {
			r.gate.log.WarnContext(ctx, "remembered decision not used", "interaction", in.ID, "tool", in.Tool, "error", err)
		}
		if d == nil {
			return nil
		}
		a := c.answer
		if i == 0 {
			a.By, a.Face = d.By, d.Face
		}
		if d.By != a.By || d.Face != a.Face {
			a.By, a.Face = "", ""
		}
		a.Payloads, a.Remembered = append(a.Payloads, payload), append(a.Remembered, d.ID)
		c.until = earlier(c.until, d.Due)
	}
	c.answer.Digest = digestAll(c.answer.Payloads)
	return c
}

// recallOne returns the decision that answers the question, with the payload it gives; nil: there
// is none.
func (r *request) recallOne(ctx context.Context, in *checkpoint.Interaction, q *checkpoint.Question, now time.Time,
) (*checkpoint.Decision, json.RawMessage, error) {
	g := r.gate
	// What asks is the present revision of the tool, whatever it was when the interaction began.
	want, p, err := g.about(in, r.tool.opts.Revision, q, r.tool.opts.Remember.shown())
	if err != nil {
		return nil, nil, err
	}
	record, err := g.store.Find(ctx, want.Start)
	if errors.Is(err, checkpoint.ErrNotFound) || err == nil && past(record.Due, now) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	d, err := g.decodeDecision(record)
	if err != nil {
		return nil, nil, err
	}
	if d.Scope != want.Scope || d.Tool != want.Tool {
		return nil, nil, errors.New("the decision is on something else")
	}
	option, ok := chooses(d, p.Options)
	if !ok {
		return nil, nil, nil
	}
	payload, err := canon.Marshal(interrupt.ToolPermissionPayload{OptionID: option})
	if err != nil {
		return nil, nil, err
	}
	v, e := g.verifyOne(*q, payload, true)
	if e != nil {
		return nil, nil, e
	}
	return d, v.given, nil
}

// chooses returns the option that a decision takes: that of its own id and kind, else the only one
// of its kind, else the only one of the same meaning for once. Of several it takes none, since it
// is not known which one the person would have meant.
func chooses(d *checkpoint.Decision, options []interrupt.PermissionOption) (id string, ok bool) {
	once := interrupt.PermissionAllowOnce
	if d.Kind == interrupt.PermissionRejectAlways {
		once = interrupt.PermissionRejectOnce
	}
	if slices.ContainsFunc(options, func(o interrupt.PermissionOption) bool { return o.OptionID == d.OptionID && o.Kind == d.Kind }) {
		return d.OptionID, true
	}
	for _, kind := range []string{d.Kind, once} {
		var fit []string
		for _, o := range options {
			if o.Kind == kind {
				fit = append(fit, o.OptionID)
			}
		}
		if len(fit) > 0 {
			return fit[0], len(fit) == 1
		}
	}
	return "", false
}

// answerRecalled is H9: the last round of next, which was to be asked, is answered by what was
// recalled. It returns the record that the handler goes on with; else how the attempt ended, or
// errAsk.
func (r *request) answerRecalled(ctx context.Context, in, next *checkpoint.Interaction, c *recalled,
) (*checkpoint.Interaction, Outcome, error) {
	g := r.gate
	answered := askAnswered(next, c.answer, r.arrival(next.Updated))
	if e := r.authorize(ctx, answered, false); e != nil {
		return r.over(ctx, in, e)
	}
	now := g.now()
	switch {
	case past(answered.Last().Deadline, now): // H6
		return r.over(ctx, in, askedLate())
	case r.closing():
		return r.over(ctx, in, closing())
	case past(c.until, now):
		return nil, Outcome{}, errAsk
	}
	if e := r.room.extend(ctx, r.nextRound(answered)); e != nil { // for this round there is room
		return nil, Outcome{}, errAsk
	}
	switch v, err := g.commitTwice(ctx, r.origin(), in, answered, &decisionWrites{stand: distinct(c.answer.Remembered)}); v {
	case applied:
		if in.Revision == 0 {
			r.room.counted()
		}
		return answered, Outcome{}, nil
	case conflict: // of a decision; where it was the claim's, H1 finds that out
		return nil, Outcome{}, errAsk
	default:
		outcome, err := r.notRecorded(ctx, in, v, err)
		return nil, outcome, err
	}
}

// distinct leaves out what is there twice: one decision can answer several questions.
func distinct(ids []checkpoint.ID) []checkpoint.ID {
	sorted := slices.SortedFunc(slices.Values(ids), checkpoint.ID.Compare)
	return slices.Compact(sorted)
}
