package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// scope is whose runs these are. A program for many people has a name for each.
const scope = "me"

var canAsk = []interrupt.Facility{interrupt.FacilityPermission}

// converse puts one question after the other to the person, until the run ends.
func converse(ctx context.Context, a *agent.Agent, p *person) error {
	events, err := begin(ctx, a, p)
	if err != nil {
		return err
	}
	run, err := p.show(events)
	for err == nil && ctx.Err() == nil && run.Status == agent.Waiting && len(run.Questions) > 0 {
		q := run.Questions[0]
		option, asked := p.answer(ctx, q, len(run.Questions))
		if errors.Is(asked, errNobody) {
			p.say("It waits. Start it again to go on.")
			return nil
		}
		if asked != nil {
			return asked
		}
		payload, _ := json.Marshal(map[string]string{"optionId": option}) // strings: it cannot fail
		run, err = p.show(a.Resume(ctx, agent.Resume{
			Scope: scope, Run: run.ID, Facilities: canAsk,
			Answers: []agent.Answer{{
				Interaction: q.Interaction, Token: q.Prompt.Token, Answers: gate.Answers{q.Prompt.Questions[0].ID: payload},
			}},
		}))
	}
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return err
	case run.Status == agent.Failed:
		return errors.New("the run failed: " + run.Message)
	case len(run.Problems) > 0:
		return run.Problems[0].Err // starting it again tries again
	}
	return nil
}

// begin goes on with the run that waits, and so gets the tokens of its questions, or starts one.
func begin(ctx context.Context, a *agent.Agent, p *person) (*agent.Events, error) {
	page, err := a.Runs(ctx, gate.RunQuery{Scope: scope})
	if err != nil {
		return nil, err
	}
	if len(page.Runs) > 0 {
		p.say("There is a run from %s. It goes on.", page.Runs[0].Created.Format("15:04:05"))
		return a.Resume(ctx, agent.Resume{Scope: scope, Run: page.Runs[0].ID, Facilities: canAsk}), nil
	}
	p.say("> %s", request)
	return a.Start(ctx, agent.Start{Scope: scope, Facilities: canAsk, Messages: []*schema.Message{schema.UserMessage(request)}}), nil
}
