package gate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// RememberOptions let the "always" answers to a tool's permissions be remembered: a later
// permission of the same scope, tool, tool revision, question key, question tool name and arguments
// is then answered without a prompt (R19). Without them a prompt has no such options.
//
// A call whose questions are all answered so has no token that could be sent again: a start ID is
// what keeps a second run away from it (R27).
type RememberOptions struct {
	// Lifetime is how long a decision stands, counted from its answer, in whole seconds. Default:
	// 24 hours.
	Lifetime time.Duration
	// Arguments widens what is remembered to calls that have these arguments, members of the top
	// level, in common; AnyArguments to all. The prompt says so: see [Question].
	//
	// Give the questions of such a tool keys where it asks about more than one thing: then what
	// they show does not tell them apart any more.
	Arguments    []string
	AnyArguments bool
}

const defaultRemember = 24 * time.Hour

func (o *RememberOptions) validate() error {
	switch {
	case o == nil:
		return nil
	case o.Lifetime < 0 || o.Lifetime > 0 && o.Lifetime < time.Second:
		return fmt.Errorf("remember: lifetime %v is shorter than a second", o.Lifetime)
	case o.AnyArguments && len(o.Arguments) > 0:
		return errors.New("remember: names arguments and takes any")
	}
	sorted := slices.Sorted(slices.Values(o.Arguments))
	if len(slices.Compact(sorted)) < len(o.Arguments) {
		return errors.New("remember: names an argument twice")
	}
	return nil
}

func (o *RememberOptions) clone() *RememberOptions {
	if o == nil {
		return nil
	}
	c := *o
	c.Arguments = slices.Clone(o.Arguments)
	return &c
}

// shown is what a question says of remembering.
func (o *RememberOptions) shown() *checkpoint.Remember {
	return &checkpoint.Remember{
		AnyArguments: o.AnyArguments, Arguments: slices.Sorted(slices.Values(o.Arguments)),
		Seconds: int64(cmp.Or(o.Lifetime, defaultRemember) / time.Second),
	}
}

// permission is how a permission is shown: without the options that would have to be remembered
// where nothing is (R9), else with what is remembered of them.
func (t *Tool) permission(p *interrupt.ToolPermissionInterrupt) (body []byte, remember *checkpoint.Remember, err error) {
	if t.opts.Remember == nil {
		body, err = onceOnly(p)
		return body, nil, err
	}
	if slices.ContainsFunc(p.Options, func(o interrupt.PermissionOption) bool { return always(o.Kind) }) {
		remember = t.opts.Remember.shown()
	}
	body, err = p.Serialize()
	return body, remember, err
}

func always(kind string) bool {
	return kind == interrupt.PermissionAllowAlways || kind == interrupt.PermissionRejectAlways
}

// compared are the arguments that a decision is for; nil: none are compared.
func compared(arguments json.RawMessage, remember *checkpoint.Remember) (json.RawMessage, error) {
	if remember.AnyArguments {
		return nil, nil
	}
	if len(remember.Arguments) == 0 {
		return arguments, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &members); err != nil {
		return nil, err
	}
	named := map[string]json.RawMessage{}
	for _, name := range remember.Arguments {
		if value, ok := members[name]; ok {
			named[name] = value
		}
	}
	return canon.Marshal(named)
}

// about returns what a decision on the question would be about, and the hash under which it is
// found.
func (g *Gate) about(in *checkpoint.Interaction, revision string, q *checkpoint.Question,
	remember *checkpoint.Remember,
) (*checkpoint.Decision, *interrupt.ToolPermissionInterrupt, error) {
	asked, err := interrupt.Rehydrate(q.Type, q.Body)
	if err != nil {
		return nil, nil, err
	}
	p, ok := asked.(*interrupt.ToolPermissionInterrupt)
	if !ok {
		return nil, nil, fmt.Errorf("question %q is no permission", q.ID)
	}
	d := &checkpoint.Decision{
		Scope: in.Scope, Tool: in.Tool, ToolRevision: revision, Key: q.Key, ToolName: p.ToolName, Title: p.Title, Remember: *remember,
	}
	if d.Arguments, err = compared(in.Arguments, remember); err != nil {
		return nil, nil, err
	}
	names, err := canon.Marshal(remember.Arguments)
	if err != nil {
		return nil, nil, err
	}
	shown := "" // where the question has no key, it is the one that shows this, as in R2
	if q.Key == "" && !remember.Widened() {
		shown = string(q.Digest[:])
	}
	d.Start = g.hash("decision", string(d.Scope[:]), d.Tool, d.ToolRevision, d.Key, d.ToolName, shown,
		string(names), string(d.Arguments)) // no arguments: any
	return d, p, nil
}

// A Remembering is an answer of an always kind, on its way to be remembered.
type Remembering struct {
	Answerer Answerer
	Question string // its id
	Key      string // of the question
	ToolName string // that the question names
	Kind     string // allow_always or reject_always
	Remember checkpoint.Remember
	// Arguments are those that are compared, in canonical form; nil: none are.
	Arguments json.RawMessage
}

// ownScopeRemembers is the default of AuthorizeRemember.
func ownScopeRemembers(ctx context.Context, r Remembering) error {
	return ownScopeOnly(ctx, r.Answerer)
}

// toRemember returns the decisions that next, which answers the open round of in, would have
// remembered, once the host said that they may be. It is empty where nothing is answered now. A
// refusal leaves the question open.
func (g *Gate) toRemember(ctx context.Context, in, next *checkpoint.Interaction, who Answerer) ([]*checkpoint.Decision, *Error) {
	if next == nil || in.Status != checkpoint.Open || next.Last().Answer == nil {
		return nil, nil
	}
	var decisions []*checkpoint.Decision
	answer := next.Last().Answer
	for i := range next.Last().Questions {
		q := &next.Last().Questions[i]
		if q.Remember == nil {
			continue
		}
		d, p, err := g.about(in, in.ToolRevision, q, q.Remember)
		if err == nil {
			err = p.Return(answer.Payloads[i])
		}
		if err != nil {
			return nil, unavailable(err).on(in.ID)
		}
		if !always(p.SelectedKind) {
			continue
		}
		for _, option := range p.Options {
			if option.OptionID == p.SelectedOptionID {
				d.Kind, d.OptionID, d.Option = option.Kind, option.OptionID, option.Name
			}
		}
		d.Time, d.By, d.Face, d.Elsewhere = answer.Time, answer.By, answer.Face, answer.Elsewhere
		d.Interaction, d.Round = in.ID, len(next.Rounds)
		d.Due = d.Time.Add(time.Duration(q.Remember.Seconds) * time.Second)
		if e := g.mayRemember(ctx, who, q, d); e != nil {
			return nil, e
		}
		decisions = append(decisions, d)
	}
	return decisions, nil
}

func (g *Gate) mayRemember(ctx context.Context, who Answerer, q *checkpoint.Question, d *checkpoint.Decision) *Error {
	r := Remembering{
		Answerer: who, Question: q.ID, Key: d.Key, ToolName: d.ToolName, Kind: d.Kind, Remember: copied(d.Remember),
		Arguments: bytes.Clone(d.Arguments),
	}
	err := safely(func() error { return g.opts.AuthorizeRemember(ctx, r) })
	if err == nil {
		return nil
	}
	e := fail(ErrUnauthorized, "the answer may not be remembered: choose an option for this once").because(hideInterrupts(err))
	e.Question, e.StillOpen = q.ID, true
	return e.on(d.Interaction)
}

// frameRemember writes what a question says of remembering to the digest of its prompt; nothing
// where it says nothing.
func frameRemember(text []byte, r *checkpoint.Remember) []byte {
	if r == nil {
		return text
	}
	text = frame(text, "remember")
	return frame(text, fmt.Sprintf("%t %d %q", r.AnyArguments, r.Seconds, r.Arguments))
}

func copied(r checkpoint.Remember) checkpoint.Remember {
	r.Arguments = slices.Clone(r.Arguments)
	return r
}
