package acpagent

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/agent"
	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// show shows the events in the editor, and returns where the run stands after them. An editor that
// is gone is no reason to stop: the turn's context has ended with it.
func (r *running) show(events iter.Seq2[agent.Event, error]) (run *agent.Run, err error) {
	for event, failed := range events {
		if failed != nil {
			return run, failed
		}
		switch event := event.(type) {
		case agent.RunStarted:
			r.id = event.ID
		case agent.ModelReasoning:
			update := acp.UpdateAgentThoughtText(event.Text)
			update.AgentThoughtChunk.MessageId = acp.Ptr(r.messages + "/" + event.Turn + "/thought")
			_ = r.turn.Update(update)
		case agent.ModelText:
			update := acp.UpdateAgentMessageText(event.Text)
			update.AgentMessageChunk.MessageId = acp.Ptr(r.messages + "/" + event.Turn)
			_ = r.turn.Update(update)
		case agent.ToolStarted:
			_, _ = r.call(acpbridge.Call{ID: acp.ToolCallId(event.StartID), Tool: event.Tool, Arguments: json.RawMessage(event.Arguments)})
		case agent.ToolProgress:
			if shown, err := r.going(event.Origin); err == nil {
				_ = shown.Progress(event.Update)
			}
		case agent.ToolText:
			if shown, err := r.going(event.Origin); err == nil {
				_ = shown.Say(event.Text)
			}
		case agent.ToolEnded:
			r.ended(event)
		case agent.RunWaiting:
			run = event.Run
		case agent.RunFinished:
			run = event.Run
		case agent.RunFailed:
			run = event.Run
		}
	}
	return run, nil
}

// call shows a call, once.
func (r *running) call(c acpbridge.Call) (*acpbridge.ShownCall, error) {
	if shown := r.shown[string(c.ID)]; shown != nil {
		return shown, nil
	}
	shown, err := r.turn.Show(c)
	if shown != nil {
		r.shown[string(c.ID)] = shown
	}
	return shown, err
}

// going is a call that began before this event: in this turn or, where its question was answered by
// another road, in one whose process is gone.
func (r *running) going(o agent.Origin) (*acpbridge.ShownCall, error) {
	c := acpbridge.Call{ID: acp.ToolCallId(o.StartID), Tool: o.Tool}
	if r.shown[o.StartID] == nil {
		if s, err := r.turn.Inspect(context.WithoutCancel(r.ctx), r.scope, o.StartID); err == nil {
			c.Arguments = s.Arguments
		}
	}
	return r.call(c)
}

// ended gives a call its terminal status. Its result is what the model is told: of a tool, or of an
// agent in a tool.
func (r *running) ended(event agent.ToolEnded) {
	if _, err := r.going(event.Origin); err != nil {
		return
	}
	if event.Code != "" {
		_ = r.end(event.StartID, nil, &gate.Error{Code: event.Code, Message: event.Result})
		return
	}
	result := json.RawMessage(event.Result)
	if !json.Valid(result) {
		result, _ = json.Marshal(event.Result) // a string always has a form
	}
	_ = r.end(event.StartID, result, nil)
}

func (r *running) end(id string, result json.RawMessage, err error) error {
	r.over[id] = true
	return r.shown[id].Ended(result, err)
}

// settle gives those calls a terminal status that came to their end elsewhere, in another window of
// the session, and at the end of the turn all that have none.
func (r *running) settle(run *agent.Run, last bool) {
	for _, id := range slices.Sorted(maps.Keys(r.shown)) {
		waits := run != nil && slices.ContainsFunc(run.Questions, func(q agent.Question) bool { return q.StartID == id })
		if r.over[id] || waits && !last {
			continue
		}
		s, err := r.turn.Inspect(context.WithoutCancel(r.ctx), r.scope, id)
		switch {
		case err == nil && s.Status == checkpoint.Finished && s.Code == "":
			_ = r.end(id, nil, nil)
		case err == nil && s.Status.Ended():
			_ = r.end(id, nil, endOf(s))
		case !last: // it goes on
		case err != nil && run != nil && run.Status == agent.Finished: // an agent in a tool has no record of its own
			_ = r.end(id, nil, nil)
		default:
			_ = r.end(id, nil, &gate.Error{Code: gate.ErrUnavailable, Message: "the call has not come to its end in this turn"})
		}
	}
}

// endOf is how a call ended that has no result.
func endOf(s gate.Summary) *gate.Error {
	switch {
	case s.Code != "":
		return &gate.Error{Code: s.Code, Message: s.Message}
	case s.Status == checkpoint.Expired:
		return &gate.Error{Code: gate.ErrExpired, Message: "the time to answer is over"}
	}
	return &gate.Error{Code: gate.ErrOutcomeUnknown, Message: "it is not known how the call ended"}
}
