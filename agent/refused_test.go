package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

// R24: a host that does not authorize a call that waits, or that was made before, loses neither its
// question nor its answer, and the model is not told that it was not carried out.
func TestNotAuthorizedForAWhile(t *testing.T) {
	for _, carriedOut := range []bool{false, true} {
		var effects atomic.Int64
		refuse := false
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		m := scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
			switch r := results(input); {
			case r == "":
				return scripted.Do(call("c", "deploy", deployInput{"a"})), nil
			case carriedOut && ctx.Err() == nil:
				leave()
				return nil, ctx.Err()
			default:
				return scripted.Say(r), nil
			}
		})
		w := open(t, memstore.New(), worldOptions{
			tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{KeepResult: true})}, model: m,
			gate: gate.Options{Authorize: func(context.Context, gate.Call) error {
				if refuse {
					return errors.New("not now")
				}
				return nil
			}},
		})
		run := w.start()
		yes := to(of(t, run, "c"), allow)
		if carriedOut {
			_, err := w.agent.Resume(ctx, agent.Resume{Scope: "ann", Run: run.ID, Answers: []agent.Answer{yes}, Facilities: everything}).Run()
			if err == nil || effects.Load() != 1 {
				t.Fatalf("%d effects, %v", effects.Load(), err)
			}
		}
		refuse = true
		run = w.resume(run.ID, yes)
		if run.Status != agent.Waiting || len(run.Problems) != 1 || !errors.Is(run.Problems[0].Err, gate.ErrUnauthorized) {
			t.Fatalf("carried out %t: have %+v", carriedOut, run)
		}
		refuse = false
		wantFinished(t, w.resume(run.ID, yes), "[deployed a]")
		if effects.Load() != 1 {
			t.Errorf("%d effects", effects.Load())
		}
	}
}

// A message that is none is refused as such.
func TestNoMessage(t *testing.T) {
	w := open(t, memstore.New(), worldOptions{model: scripted.New(scripted.Say("done"))})
	_, err := w.agent.Start(t.Context(), agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x"), nil}}).Run()
	if err == nil {
		t.Error("it began")
	}
}

// A middleware that takes questions for failures is found, also beside a question that it lets pass:
// nobody is asked what eino does not wait for, and the run says so.
func TestSwallowedQuestions(t *testing.T) {
	var effects atomic.Int64
	swallow := compose.ToolMiddleware{Invokable: func(next compose.InvokableToolEndpoint) compose.InvokableToolEndpoint {
		return func(ctx context.Context, in *compose.ToolInput) (*compose.ToolOutput, error) {
			out, err := next(ctx, in)
			if err != nil && !strings.Contains(in.Arguments, "b") {
				return &compose.ToolOutput{Result: "handled: it failed"}, nil
			}
			return out, err
		}
	}}
	for _, calls := range [][]scripted.Call{
		{call("1", "deploy", deployInput{"a"})},
		{call("1", "deploy", deployInput{"a"}), call("2", "deploy", deployInput{"b"})},
	} {
		w := open(t, memstore.New(), worldOptions{
			tools: []*gate.Tool{deploy(&effects, nil)}, model: after(scripted.Do(calls...)), middlewares: []compose.ToolMiddleware{swallow},
		})
		run, err := w.agent.Start(t.Context(), releaseIt).Run()
		if !errors.Is(err, agent.ErrSwallowed) || run == nil || run.Status != agent.Waiting || len(run.Questions) > 0 {
			t.Errorf("have %+v, %v", run, err)
		}
	}
}

// R13: a host that cannot show a question that is open already leaves it open, with its token.
func TestResumedWhereNobodyCanBeAsked(t *testing.T) {
	var effects atomic.Int64
	m := after(scripted.Do(call("1", "deploy", deployInput{"a"}), call("2", "deploy", deployInput{"b"})))
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: m})
	run := w.start()
	one, two := to(of(t, run, "1"), allow), to(of(t, run, "2"), allow)
	run, err := w.agent.Resume(t.Context(), agent.Resume{Scope: "ann", Run: run.ID, Answers: []agent.Answer{one}}).Run()
	if err != nil || run.Status != agent.Waiting || len(run.Problems) != 1 || !errors.Is(run.Problems[0].Err, gate.ErrConfirmationRequired) {
		t.Fatalf("have %+v, %v", run, err)
	}
	wantFinished(t, w.resume(run.ID, two), "[deployed a][deployed b]")
	if effects.Load() != 2 {
		t.Errorf("%d effects", effects.Load())
	}
}
