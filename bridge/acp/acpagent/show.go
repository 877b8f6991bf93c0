package acpagent

import (
	"encoding/json"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/agent"
	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/gate"
)

// show shows the events in the editor, and returns where the run stands after them. An editor that
// is gone is no reason to stop: the turn's context has ended with it.
func (r *running) show(events *agent.Events) (run *agent.Run, err error) {
	for event, failed := range events.All() {
		if failed != nil {
			return run, failed
		}
		switch event := event.(type) {
		case agent.RunStarted:
			r.id = event.ID
		case agent.ModelText:
			_ = r.turn.Say(event.Text)
		case agent.ToolStarted:
			_, _ = r.call(acpbridge.Call{ID: acp.ToolCallId(event.StartID), Tool: event.Tool, Arguments: json.RawMessage(event.Arguments)})
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

// ended gives a call its terminal status. Its result is what the model is told: of a tool, or of an
// agent in a tool.
func (r *running) ended(event agent.ToolEnded) {
	shown, err := r.call(acpbridge.Call{ID: acp.ToolCallId(event.StartID), Tool: event.Tool})
	if err != nil {
		return
	}
	if event.Code != "" {
		_ = shown.Ended(nil, &gate.Error{Code: event.Code, Message: event.Result})
		return
	}
	result := json.RawMessage(event.Result)
	if !json.Valid(result) {
		result, _ = json.Marshal(event.Result) // a string always has a form
	}
	_ = shown.Ended(result, nil)
}
