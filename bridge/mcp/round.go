package mcpbridge

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/elicit"
)

// round serves one request of protocol 2026-07-28: a fresh call, or one that comes again with the
// token of its round and what the person answered.
func (c *call) round(ctx context.Context) (*mcp.CallToolResult, error) {
	request, err := c.gateCall(ctx)
	if err != nil {
		return nil, err
	}
	// Without a token there is no question that could have been answered: answers are ignored.
	var reasons map[string]string
	if request.Token = gate.Token(c.req.Params.RequestState); request.Token != "" {
		if request.Answers, err = c.answers(request.Token); err != nil {
			return nil, err
		}
	}
	answered := len(request.Answers) > 0
	outcome, err := c.face().Invoke(ctx, request)
	if reason, id, ok := again(err); ok && answered {
		// The question is as it was, and the token good for another answer (R16): this time it is
		// looked at only.
		request.Answers = nil
		if outcome, err = c.face().Invoke(ctx, request); outcome.Prompt != nil {
			reasons = reasonsFor(outcome.Prompt, id, reason)
		}
	}
	if err != nil {
		return c.fail(ctx, err)
	}
	switch p := outcome.Prompt; {
	case p == nil:
		return c.conclude(ctx, outcome.Result), nil
	case outcome.OutOfBand:
		return c.elsewhere(outcome), nil
	case p.Token != request.Token:
		reasons = nil // it is another prompt by now
	case !answered:
		reasons = map[string]string{}
		for _, q := range p.Questions {
			reasons[q.ID] = "the answer is missing"
		}
	}
	result, err := inputRequired(c.wire, outcome.Prompt, reasons)
	if err != nil {
		return c.fail(ctx, err)
	}
	return result, nil
}

// inputRequired is the result that asks: one input request for each question, and the token as the
// state. Both are always there.
func inputRequired(w wire, p *gate.Prompt, reasons map[string]string) (*mcp.CallToolResult, error) {
	requests := mcp.InputRequestMap{}
	for _, q := range p.Questions {
		params, err := elicitation(w, p, q, reasons[q.ID])
		if err != nil {
			return nil, err
		}
		requests[keyOf(q, p.Token)] = params
	}
	return &mcp.CallToolResult{InputRequests: requests, RequestState: string(p.Token)}, nil
}

// again reports whether the error is of an answer after which the question is asked again, and of
// which question and why; "" is all of them.
func again(err error) (reason, question string, ok bool) {
	if u, ok := errors.AsType[*unread](err); ok {
		return u.reason, u.end.Question, true
	}
	e, ok := errors.AsType[*gate.Error](err)
	switch {
	case !ok || !elicit.AskAgain(e):
		return "", "", false
	case e.Code == gate.ErrInvalidAnswer:
		return elicit.Reason(e), e.Question, true
	}
	return e.Message, e.Question, true
}

// reasonsFor are the reasons by question.
func reasonsFor(p *gate.Prompt, question, reason string) map[string]string {
	reasons := map[string]string{}
	for _, q := range p.Questions {
		if question == "" || q.ID == question {
			reasons[q.ID] = reason
		}
	}
	return reasons
}
