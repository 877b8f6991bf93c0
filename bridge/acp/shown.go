package acpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/elicit"
	"github.com/parley-go/parley/internal/resume"
)

// A ShownCall is a tool call in the editor, from pending to its terminal status. [Turn.CallTool]
// does all that it is for; it is for hosts that make their calls of the gate themselves, one
// goroutine at a time.
type ShownCall struct {
	turn  *Turn
	call  Call
	view  View
	asked *asking // the latest prompt
	// within is set where the call is one of [Turn.CallTool], which the turn waits for: it is told
	// to its end also where the agent's Prompt has returned before it.
	within bool

	progress, pieces string // of a call that is at work: how far it is, and its result up to now
	covered          bool   // the editor was shown more than the view
	since            time.Time
	spent            int // bytes sent of that, since then
	viewSize         int
}

// Show shows a call that begins, or goes on in this turn: a tool_call that is pending, or in
// progress where the tool never asks. The arguments are shown as the gate would show them; those of
// a tool that is none of the gate's are not.
func (t *Turn) Show(c Call) (*ShownCall, error) {
	return t.show(c, false)
}

func (t *Turn) show(c Call, within bool) (*ShownCall, error) {
	if err := c.named(t.sessionID); err != nil {
		return nil, err
	}
	s := &ShownCall{turn: t, call: c, within: within}
	started, view := t.bridge.started(c)
	s.view = view
	if tool := t.bridge.gate.Tool(c.Tool); tool != nil && tool.Options().NeverAsks {
		started.ToolCall.Status = acp.ToolCallStatusInProgress // some editors do not show what is pending
	}
	return s, s.update(started)
}

// Inspect returns where the call stands that has this start ID in the scope, for a host that makes
// calls of the gate itself: its arguments are as a person may see them. The error is a
// [*gate.Error], such as start_unknown.
func (t *Turn) Inspect(ctx context.Context, scope, startID string) (gate.Summary, error) {
	return t.bridge.face.Inspect(ctx, scope, startID)
}

// named checks the ids, which have room in every message.
func (c Call) named(session acp.SessionId) error {
	if c.ID == "" || len(c.ID) > maxName || len(session) > maxName {
		message := fmt.Sprintf("ids of sessions and tool calls have 1 to %d bytes", maxName)
		return &gate.Error{Code: gate.ErrInvalidArguments, Message: message}
	}
	return nil
}

// started is the update that shows a call as pending.
func (b *Bridge) started(c Call) (acp.SessionUpdate, View) {
	update := acp.SessionUpdateToolCall{ToolCallId: c.ID, Status: acp.ToolCallStatusPending}
	about := subject{view: View{Kind: acp.ToolKindOther}, prompt: &gate.Prompt{Tool: c.Tool}}
	if title, arguments, err := b.gate.Shown(c.Tool, c.arguments()); err == nil {
		update.RawInput = arguments
		about.view, about.prompt.Title = b.view(c.Tool, arguments), title
	}
	update.Title, update.Kind = about.title(), about.view.Kind
	update.Content, update.Locations = about.view.Content, about.view.Locations
	return acp.SessionUpdate{ToolCall: &update}, about.view
}

// enter begins something that the turn waits for.
func (s *ShownCall) enter() (leave func(), err error) {
	if s.within {
		return func() {}, nil
	}
	return s.turn.enter()
}

// update sends an update of the call. Where the connection is gone nobody is there to be told.
func (s *ShownCall) update(u acp.SessionUpdate) error {
	leave, err := s.enter()
	if err != nil {
		return unavailable(err)
	}
	defer leave()
	if err := s.turn.update(u); err != nil && s.turn.ctx.Err() == nil {
		return unavailable(err)
	}
	return nil
}

// Ask puts a prompt of the call to the person, and returns the answers for its token. refused is
// the gate's error for the answers of the Ask before: where it leaves the prompt open for another
// answer the person is told, and asked again, a few times; else it is returned.
//
// Without answers and without an error there is no need of any: the prompt was answered by another
// road. Come again with its token. Where the client or the person broke off the answers say so, and
// [Turn.Cancelled] is true. Any other end is a [*gate.Error], and leaves the question open; its
// code is unavailable where the connection or the bridge is gone or ctx has ended.
func (s *ShownCall) Ask(ctx context.Context, scope string, p *gate.Prompt, refused error) (gate.Answers, error) {
	leave, err := s.enter()
	if err != nil {
		return nil, unavailable(err)
	}
	defer leave()
	a := s.asked
	if a == nil || a.prompt.Token != p.Token {
		s.completed(p)
		about := subject{session: s.turn.sessionID, call: s.call.ID, view: s.view, prompt: p}
		a = &asking{turn: s.turn, subject: about, reasons: map[string]string{}, refused: map[string]bool{}}
		s.asked = a
	}
	a.scope = scope
	if e, ok := errors.AsType[*gate.Error](refused); ok && (!elicit.AskAgain(e) || !a.again(e.Question, refusal(e))) {
		return nil, e
	}
	if refused == nil || a.answers == nil {
		a.answers = gate.Answers{}
	}
	err = a.all(ctx)
	if s.turn.ctx.Err() != nil {
		err = context.Cause(s.turn.ctx)
	}
	switch {
	case err == nil && a.goesOn():
		return maps.Clone(a.answers), s.update(acp.UpdateToolCall(s.call.ID, acp.WithUpdateStatus(acp.ToolCallStatusInProgress)))
	case err == nil:
		return maps.Clone(a.answers), nil
	case recorded(err):
		return cancelled(p), nil
	case errors.Is(err, errElsewhere):
		return nil, nil
	case errors.Is(err, errOverdue):
		return nil, &gate.Error{Code: gate.ErrExpired, Message: "the time to answer is over", Interaction: p.Interaction}
	}
	if e, ok := errors.AsType[*gate.Error](err); ok {
		return nil, e
	}
	return nil, waits(err, p)
}

// refusal says why the gate did not take an answer.
func refusal(e *gate.Error) string {
	if e.Code == gate.ErrInvalidAnswer {
		return elicit.Reason(e)
	}
	return e.Message
}

// Answered returns the context in which the answers of the latest Ask are given to the gate: it
// records with them whether one of them was given to a fallback, for [AskedAsFallback].
func (s *ShownCall) Answered(ctx context.Context) context.Context {
	return resume.AnswerFallback(ctx, s.asked != nil && s.asked.fallback)
}

// Ended gives the call its terminal status: completed with the result or, where there is an error,
// failed with the words of a [*gate.Error]; those of any other stay with the host. A call whose
// work was done before, and whose result was not kept, is completed, too.
func (s *ShownCall) Ended(result json.RawMessage, err error) error {
	if err != nil {
		status := acp.ToolCallStatusFailed
		if e, ok := errors.AsType[*gate.Error](err); ok && e.Code == gate.ErrAlreadyCompleted && !e.Ended.Decision() {
			status = acp.ToolCallStatusCompleted // the work is done: its result alone is gone
		}
		content := append(s.view.Content[:len(s.view.Content):len(s.view.Content)], textContent(said(err))...)
		return s.update(acp.UpdateToolCall(s.call.ID, acp.WithUpdateStatus(status), acp.WithUpdateContent(content)))
	}
	s.completed(nil)
	opts := []acp.ToolCallUpdateOpt{acp.WithUpdateStatus(acp.ToolCallStatusCompleted)}
	content := s.view.Content[:len(s.view.Content):len(s.view.Content)]
	if len(result) > 0 && len(result) <= s.turn.bridge.opts.MaxWire {
		opts = append(opts, acp.WithUpdateRawOutput(result))
		if len(content) == 0 || s.pieces != "" {
			content = append(content, textContent(textOf(result))...)
		}
	}
	if s.covered || len(content) > len(s.view.Content) {
		opts = append(opts, acp.WithUpdateContent(content))
	}
	return s.update(acp.UpdateToolCall(s.call.ID, opts...))
}

// completed tells the client that a page it opened has served its purpose: the handler went on, and
// did not ask for the same page again.
func (s *ShownCall) completed(next *gate.Prompt) {
	if s.asked == nil || s.asked.fallback {
		return
	}
	for _, q := range s.asked.pages {
		again := next != nil && slices.ContainsFunc(next.Questions, func(n gate.Question) bool {
			return n.Type == q.Type && string(n.Body) == string(q.Body)
		})
		if again {
			continue
		}
		params := map[string]string{"elicitationId": q.ID}
		b := s.turn.bridge
		if err := b.peer.NotifyExtension(context.Background(), extension+acp.ClientMethodElicitationComplete, params); err != nil {
			b.opts.Logger.Debug("a completed elicitation was not told", "tool", s.call.Tool, "err", err)
		}
	}
	s.asked.pages = nil
}

// textOf is a result as a person reads it: a JSON string is its text.
func textOf(result json.RawMessage) string {
	var text string
	if json.Unmarshal(result, &text) == nil {
		return text
	}
	return string(result)
}
