package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// A hard failure beside an open question loses neither: that of a tool under the gate is told to the
// model, that of another one stops the run, and the question is found again.
func TestFailureBesideAQuestion(t *testing.T) {
	var effects, panics atomic.Int64
	bad := gate.NewTool("bad", func(context.Context, struct{}) (string, error) {
		panics.Add(1)
		panic("private")
	}, nil)
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil), bad},
		model: after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("b", "bad", struct{}{}))),
	})
	run := w.start()
	wantWaiting(t, run, "a")
	wantFinished(t, w.resume(run.ID, to(of(t, run, "a"), allow)), "[deployed a][The call failed: the tool failed]")
	if panics.Load() != 1 {
		t.Errorf("the tool that failed ran %d times", panics.Load())
	}

	fails := true
	outside := native{"outside", func(context.Context) (string, error) {
		if fails {
			return "", errors.New("down")
		}
		return "up", nil
	}}
	w = open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, eino: []tool.BaseTool{outside},
		model: after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("o", "outside", struct{}{}))),
	})
	run, err := w.agent.Start(t.Context(), releaseIt).Run()
	if err == nil || run == nil || run.Status != agent.Waiting {
		t.Fatalf("have %+v, %v", run, err)
	}
	list, err := w.gate.List(t.Context(), gate.ListQuery{Scope: "ann"})
	if err != nil || len(list.Interactions) != 1 || list.Interactions[0].Prompt == nil {
		t.Fatalf("the question is lost: %+v, %v", list, err)
	}
	fails = false
	run = w.resume(run.ID)
	wantWaiting(t, run, "a")
	wantFinished(t, w.resume(run.ID, to(of(t, run, "a"), allow)), "[deployed a][up]")
}

// R27: a tool that asks while it is to recover is refused, which the model is told; the question
// beside it stays open with its token.
func TestAsksInRecovery(t *testing.T) {
	var effects atomic.Int64
	store := memstore.New()
	m := after(scripted.Do(call("a", "t", struct{}{}), call("b", "deploy", deployInput{"b"})))
	died := make(chan struct{})
	asks := func(first bool) *gate.Tool {
		return gate.NewTool("t", func(ctx context.Context, _ struct{}) (string, error) {
			if first {
				close(died)
				<-ctx.Done()
				return "", ctx.Err()
			}
			_, err := interrupt.Ask(ctx, interrupt.ToolPermission("t", "Again?"))
			return "", err
		}, &gate.ToolOptions{Replay: gate.Recover})
	}
	asked := make(chan struct{})
	beside := gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
		defer close(asked)
		_, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service))
		return "", err
	}, nil)
	first := open(t, store, worldOptions{tools: []*gate.Tool{asks(true), beside}, model: m})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-died; <-asked; cancel() }()
	run, err := first.agent.Start(ctx, releaseIt).Run()
	if err != nil || len(run.Problems) != 1 {
		t.Fatalf("have %+v, %v", run, err)
	}
	q := of(t, run, "b")
	w := open(t, store, worldOptions{tools: []*gate.Tool{asks(false), deploy(&effects, nil)}, model: m})
	run = w.resume(run.ID)
	wantWaiting(t, run, "b")
	if of(t, run, "b").Prompt.Token != q.Prompt.Token {
		t.Error("the question beside it has another token")
	}
	run = w.resume(run.ID, to(q, allow))
	wantFinished(t, run, "[The call failed: the tool asked a question while it was to recover][deployed b]")
}

// R34, R27: a next question that is too large is how the call ended, and not the fault of the answer
// before it: the model is told so, and the handler does not run again.
func TestNextQuestionIsTooLarge(t *testing.T) {
	for _, replay := range []gate.Replay{0, gate.Recover, gate.Repeatable} {
		var runs atomic.Int64
		asks := gate.NewTool("t", func(ctx context.Context, _ struct{}) (string, error) {
			runs.Add(1)
			if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("t", "Go on?")); err != nil {
				return "", err
			}
			_, err := interrupt.Ask(ctx, interrupt.ToolPermission("t", strings.Repeat("x", 2<<20)))
			return "", err
		}, &gate.ToolOptions{Replay: replay})
		w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{asks}, model: after(scripted.Do(call("a", "t", struct{}{})))})
		run := w.start()
		run = w.resume(run.ID, to(of(t, run, "a"), allow))
		if !strings.HasPrefix(run.Message, "[The call failed: a prompt with its arguments has ") || runs.Load() != 2 {
			t.Errorf("replay %v: %s, %d runs", replay, run.Message, runs.Load())
		}
	}
}

// R25: a caller whose context ends does not lose what was asked until then.
func TestCancelledCaller(t *testing.T) {
	var effects atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{})
	ask := gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service)); err != nil {
			close(asked)
			return "", err
		}
		effects.Add(1)
		return "deployed " + in.Service, nil
	}, nil)
	slow := gate.NewTool("slow", func(ctx context.Context, _ struct{}) (string, error) {
		<-asked
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	}, nil)
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{ask, slow},
		model: after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("s", "slow", struct{}{}))),
	})
	run, err := w.agent.Start(ctx, releaseIt).Run()
	if err != nil || len(run.Questions) != 1 || len(run.Problems) != 1 || !errors.Is(run.Problems[0].Err, context.Canceled) {
		t.Fatalf("have %+v, %v", run, err)
	}
	run = w.resume(run.ID, to(of(t, run, "a"), allow))
	if run.Status != agent.Finished || !strings.Contains(run.Message, "[deployed a]") || !strings.Contains(run.Message, "not known") {
		t.Fatalf("have %+v", run)
	}
}

// A panicking model panics whenever it is asked.
type panicking struct{ model.ToolCallingChatModel }

func (panicking) Generate(context.Context, []*schema.Message, ...model.Option) (*schema.Message, error) {
	panic("private")
}

func (panicking) Stream(context.Context, []*schema.Message, ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	return schema.StreamReaderWithConvert(schema.StreamReaderFromArray([]int{1}), func(int) (*schema.Message, error) { panic("private") }), nil
}

func (p panicking) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return p, nil }

// A tool under the gate that panics has failed, which the model is told in public words; another
// tool or a model that panics stops the run, which goes on when it does not. Nothing ends the
// process, and no question beside it is lost.
func TestPanics(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		var effects atomic.Int64
		broken := func(name string, inner tool.BaseTool) (*gate.Tool, tool.BaseTool) {
			half, face, err := agent.Wrap(t.Context(), inner, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return half, face
		}
		pay := deploy(&effects, nil)
		invoked, invokedFace := broken("invoked", native{"invoked", func(context.Context) (string, error) { panic("private") }})
		streamed, streamedFace := broken("streamed", breaks{})
		afterwards := gate.NewTool("afterwards", func(ctx context.Context, _ struct{}) (string, error) {
			if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("afterwards", "Go on?")); err != nil {
				return "", err
			}
			panic("private")
		}, nil)
		w := open(t, memstore.New(), worldOptions{
			tools: []*gate.Tool{pay, invoked, streamed, afterwards}, streaming: streaming,
			plain: []tool.BaseTool{agent.Tool(pay), invokedFace, streamedFace, agent.Tool(afterwards)},
			model: after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("i", "invoked", `{}`), call("s", "streamed", `{}`), call("p", "afterwards", `{}`))),
		})
		run := w.start()
		wantWaiting(t, run, "a", "p")
		run = w.resume(run.ID, to(of(t, run, "p"), allow))
		wantWaiting(t, run, "a")
		run = w.resume(run.ID, to(of(t, run, "a"), allow))
		if strings.Count(run.Message, "[The call failed: ") != 3 || !strings.Contains(run.Message, "[deployed a]") || strings.Contains(run.Message, "private") {
			t.Errorf("streaming=%v: have %+v", streaming, run)
		}

		store := memstore.New()
		outside := native{"outside", func(context.Context) (string, error) { panic("private") }}
		answer := after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("o", "outside", `{}`)))
		o := worldOptions{tools: []*gate.Tool{pay}, eino: []tool.BaseTool{outside}, streaming: streaming, model: panicking{}}
		run, err := open(t, store, o).agent.Start(t.Context(), releaseIt).Run()
		if err == nil || run == nil || run.Status != agent.Waiting {
			t.Fatalf("streaming=%v, the model: have %+v, %v", streaming, run, err)
		}
		o.model = answer
		if again, err := open(t, store, o).tryResume(run.ID); err == nil {
			t.Fatalf("streaming=%v, a tool outside of the gate: have %+v", streaming, again)
		}
		outside.run = func(context.Context) (string, error) { return "up", nil }
		o.eino = []tool.BaseTool{outside}
		w = open(t, store, o)
		run = w.resume(run.ID)
		wantFinished(t, w.resume(run.ID, to(of(t, run, "a"), allow)), "[deployed a][up]")
	}
}

// breaks is a tool that streams and panics where its first piece is read.
type breaks struct{}

func (breaks) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: "streamed", Desc: "d"}, nil
}

func (breaks) StreamableRun(context.Context, string, ...tool.Option) (*schema.StreamReader[string], error) {
	return schema.StreamReaderWithConvert(schema.StreamReaderFromArray([]int{1}), func(int) (string, error) { panic("private") }), nil
}
