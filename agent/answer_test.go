package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// R24: a question is answered by another road, with or without the run being resumed by it; the run
// then goes on without an answer.
func TestAnswerByAnotherRoad(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)},
		model: after(deploying("a", "b")),
	})
	run := w.start()
	q := of(t, run, "a")
	err := w.gate.Answer(t.Context(), gate.AnswerRequest{
		Interaction: q.Interaction, Round: 1, Scope: "ann", By: "the inbox", Answers: to(q, allow).Answers,
	})
	if err != nil {
		t.Fatal(err)
	}
	run = w.resume(run.ID)
	wantWaiting(t, run, "b")
	byID := to(of(t, run, "b"), reject)
	byID.Token, byID.By = "", "ann herself"
	run = w.resume(run.ID, byID)
	if run.Status != agent.Finished || !strings.HasPrefix(run.Message, "[deployed a][A person was asked and rejected") {
		t.Fatalf("have %+v", run)
	}
}

// R16, R18, R24: an answer that is refused is told, and the question is still open with its token.
func TestRefusedAnswer(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, model: after(deploying("a")),
	})
	run := w.start()
	q := of(t, run, "a")
	forged := to(q, allow)
	forged.Token = gate.Token(strings.Repeat("x", gate.TokenLength))
	empty, lost := to(q, allow), to(q, allow)
	empty.Answers, lost.Token = nil, "" // as of a JSON form, which has no token
	for name, tt := range map[string]struct {
		answer agent.Answer
		want   gate.Code
	}{
		"an option that there is not": {to(q, `{"optionId":"maybe"}`), gate.ErrInvalidAnswer},
		"a forged token":              {forged, gate.ErrInvalidContinuation},
		"no answer":                   {empty, gate.ErrInvalidAnswer},
		"no token, and nobody":        {lost, gate.ErrUnauthorized},
	} {
		again := w.resume(run.ID, tt.answer)
		if len(again.Problems) != 1 || again.Problems[0].Call != "a" {
			t.Fatalf("%s: have %+v", name, again)
		}
		wantCode(t, name, again.Problems[0].Err, tt.want)
		if open := of(t, again, "a"); open.Prompt.Token != q.Prompt.Token {
			t.Errorf("%s: the question has another token", name)
		}
	}
	wantFinished(t, w.resume(run.ID, to(q, allow)), "[deployed a]")
}

// R16, R24: an answer by another road that is refused is told in the same way; one that comes when
// the question has expired does not hold up what follows from that.
func TestRefusedAnswerByAnotherRoad(t *testing.T) {
	var effects atomic.Int64
	now := time.Now()
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, model: after(deploying("a")),
		gate: gate.Options{Now: func() time.Time { return now }, AuthorizeAnswer: func(_ context.Context, who gate.Answerer) error {
			if who.By != "ann" {
				return errors.New("not she")
			}
			return nil
		}},
	})
	start := inTalk
	run, err := w.agent.Start(t.Context(), start).Run()
	if err != nil {
		t.Fatal(err)
	}
	q := of(t, run, "a")
	by := func(who, payload string) agent.Answer {
		answer := to(q, payload)
		answer.Token, answer.By = "", who
		return answer
	}
	for name, tt := range map[string]struct {
		answer agent.Answer
		want   gate.Code
	}{
		"an option that there is not": {by("ann", `{"optionId":"maybe"}`), gate.ErrInvalidAnswer},
		"somebody else":               {by("bob", allow), gate.ErrUnauthorized},
	} {
		again := w.resume(run.ID, tt.answer)
		if len(again.Problems) != 1 || again.Problems[0].Call != "a" || of(t, again, "a").Prompt.Token != q.Prompt.Token {
			t.Fatalf("%s: have %+v", name, again)
		}
		wantCode(t, name, again.Problems[0].Err, tt.want)
	}
	start.CancelOpen = true
	_, err = w.agent.Start(t.Context(), start).Run()
	wantCode(t, "a new message may not cancel", err, gate.ErrUnauthorized)
	now = now.Add(time.Hour)
	if ended := w.resume(run.ID, by("ann", allow)); ended.Status != agent.Finished || !strings.HasPrefix(ended.Message, "[Nobody answered") {
		t.Errorf("have %+v", ended)
	}
	if effects.Load() != 0 {
		t.Errorf("%d effects", effects.Load())
	}
}

// R17: a tool that keeps its question open where it was declined keeps it open in a run, too.
func TestKeptOpen(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{KeepOpen: true})}, model: after(deploying("a")),
	})
	run := w.start()
	q := of(t, run, "a")
	again := w.resume(run.ID, to(q, `{"action":"decline"}`))
	if len(again.Problems) != 1 || of(t, again, "a").Prompt.Token != q.Prompt.Token {
		t.Fatalf("have %+v", again)
	}
	wantCode(t, "declined", again.Problems[0].Err, gate.ErrDeclined)
	wantFinished(t, w.resume(run.ID, to(q, allow)), "[deployed a]")
}

// R13: a host that cannot ask is told to the model, with the tool's guidance, and nothing is kept open.
func TestNobodyCanBeAsked(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{Guidance: "Use the console."})},
		model: after(deploying("a")),
	})
	run, err := w.agent.Start(t.Context(), agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x")}}).Run()
	if err != nil || run.Status != agent.Finished || !strings.Contains(run.Message, "Use the console.") {
		t.Fatalf("have %+v, %v", run, err)
	}
}

// R13: a host that cannot show a question that is open leaves it open, and so does one that lacks what
// the tool cannot do without; the run goes on where that is there.
func TestResumedWithoutFacilities(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{Needs: []interrupt.Facility{interrupt.FacilityPermission}})},
		model: after(deploying("a")),
	})
	run := w.start()
	q := of(t, run, "a")
	without := func(what string, answers ...agent.Answer) {
		t.Helper()
		again, err := w.agent.Resume(t.Context(), agent.Resume{Scope: "ann", Run: run.ID, Answers: answers}).Run()
		if err != nil || again.Status != agent.Waiting || len(again.Problems) != 1 || again.Problems[0].Interaction != q.Interaction {
			t.Fatalf("%s: have %+v, %v", what, again, err)
		}
		wantCode(t, what, again.Problems[0].Err, gate.ErrConfirmationRequired)
	}
	without("it is open")
	without("it is answered here", to(q, allow))
	again := w.resume(run.ID)
	wantWaiting(t, again, "a")
	if of(t, again, "a").Prompt.Token != q.Prompt.Token {
		t.Error("the question has another token")
	}
	err := w.gate.Answer(t.Context(), gate.AnswerRequest{
		Interaction: q.Interaction, Round: 1, Scope: "ann", By: "the inbox", Answers: to(q, allow).Answers,
	})
	if err != nil {
		t.Fatal(err)
	}
	without("it was answered elsewhere")
	wantFinished(t, w.resume(run.ID), "[deployed a]")
	if effects.Load() != 1 {
		t.Errorf("%d effects", effects.Load())
	}
}

// A run that asks again and again does not remember all that was answered: an answer that comes
// again is told as such where it is one of the latest.
func TestAnswersOfLongAgo(t *testing.T) {
	var effects atomic.Int64
	const turns, calls = 6, 16
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)},
		model: scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
			turn := len(input) / (calls + 1)
			if turn == turns {
				return scripted.Say("done"), nil
			}
			var services []string
			for i := range calls {
				services = append(services, fmt.Sprintf("%d-%d", turn, i))
			}
			return deploying(services...), nil
		}),
		gate: gate.Options{Capacity: gate.Capacity{OpenPerScope: gate.Unlimited}},
	})
	var asked []agent.Question
	run := w.start()
	for range turns - 1 {
		if len(run.Questions) != calls {
			t.Fatalf("have %+v", run)
		}
		var answers []agent.Answer
		for _, q := range run.Questions {
			asked, answers = append(asked, q), append(answers, to(q, allow))
		}
		run = w.resume(run.ID, answers...)
	}
	again := w.resume(run.ID, to(asked[len(asked)-calls], allow))
	if len(again.Problems) != 1 || len(again.Questions) != calls {
		t.Fatalf("have %+v", again)
	}
	wantCode(t, "one of the latest", again.Problems[0].Err, gate.ErrAlreadyAnswered)
	_, err := w.tryResume(run.ID, to(asked[0], allow))
	wantCode(t, "one of long ago", err, gate.ErrInvalidContinuation)
}
