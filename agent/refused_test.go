package agent_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

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
