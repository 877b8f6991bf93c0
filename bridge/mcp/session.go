package mcpbridge

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// maxInvalid is how many invalid answers in a row end a call of an older session.
const maxInvalid = 3

// converse serves a call of an older session: it asks with elicitation/create while the call runs,
// one question after the other, and is authorized anew for every round. The SDK has a way of its
// own to do that, which answers one round only and returns the next as an empty success.
//
// What such a client sends as inputResponses and requestState nobody gave it: it is not looked at.
func (c *call) converse(ctx context.Context) (*mcp.CallToolResult, error) {
	var request gate.Call
	var asked *gate.Prompt // what the request answers; nil: it is the first
	var none error         // why the client's answer to one of the questions is none; it ends at the bridge
	invalid, reasons := 0, map[string]string{}
	for {
		granted, err := c.gateCall(ctx)
		if err != nil {
			return nil, err
		}
		granted.Token, granted.Answers = request.Token, request.Answers
		request = granted
		var outcome gate.Outcome
		if err = none; err == nil {
			outcome, err = c.face().Invoke(ctx, request)
		}
		if reason, id, ok := again(err); ok && asked != nil {
			if invalid++; invalid == maxInvalid {
				return c.fail(ctx, err)
			}
			reasons = reasonsFor(asked, id, reason)
			for question := range reasons {
				delete(request.Answers, question)
			}
		} else {
			if err != nil {
				return c.fail(ctx, err)
			}
			c.completed(ctx, asked, request.Answers, outcome.Prompt)
			if outcome.Prompt == nil {
				return c.conclude(ctx, outcome.Result), nil
			}
			if outcome.OutOfBand {
				return c.elsewhere(outcome), nil
			}
			if asked == nil || asked.Token != outcome.Prompt.Token {
				invalid, reasons = 0, map[string]string{}
				request.Answers = gate.Answers{}
			}
			asked = outcome.Prompt
		}
		request.Token = asked.Token
		none = c.ask(ctx, asked, request.Answers, reasons)
		if _, _, ok := again(none); none != nil && !ok {
			return c.fail(ctx, none)
		}
	}
}

// ask puts those questions to the person that have no answer yet.
func (c *call) ask(ctx context.Context, p *gate.Prompt, answers gate.Answers, reasons map[string]string) error {
	for _, q := range p.Questions {
		if answers[q.ID] != nil {
			continue
		}
		params, err := elicitation(c.wire, p, q, reasons[q.ID])
		if err != nil {
			return err
		}
		payload, err := c.elicit(ctx, p, q, params)
		if err != nil {
			return err
		}
		answers[q.ID] = payload
	}
	return nil
}

// completed tells the client that a page it was let open has served its purpose: the handler went
// on, and did not ask for the same page again.
func (c *call) completed(ctx context.Context, asked *gate.Prompt, answers gate.Answers, next *gate.Prompt) {
	if asked == nil || c.wire.era != era2025 || next != nil && next.Token == asked.Token {
		return
	}
	for _, q := range asked.Questions {
		if q.Type != interrupt.TypeURL || !accepted(answers[q.ID]) || next != nil && asksAgain(q, next) {
			continue
		}
		params := &mcp.ElicitationCompleteParams{ElicitationID: q.ID}
		if err := c.req.Session.NotifyElicitationComplete(ctx, params); err != nil {
			c.opts.Logger.DebugContext(ctx, "a completed elicitation was not told", "tool", c.tool.name, "err", err)
		}
	}
}

func accepted(payload json.RawMessage) bool {
	var answer struct{ Action interrupt.Action }
	return json.Unmarshal(payload, &answer) == nil && answer.Action == interrupt.ActionAccept
}

// asksAgain reports whether a later prompt asks for the same page.
func asksAgain(q gate.Question, next *gate.Prompt) bool {
	for _, n := range next.Questions {
		if n.Type == q.Type && string(n.Body) == string(q.Body) {
			return true
		}
	}
	return false
}
