package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// improving gives an answer that cannot be gone on with until it is good, and then calls deploy.
func improving(bad *schema.Message, good *bool) *scripted.Model {
	return scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
		switch r := results(input); {
		case r != "":
			return scripted.Say(r), nil
		case *good:
			return deploying("a"), nil
		}
		return bad, nil
	})
}

// An answer that calls a tool that there is not stops the run before anything runs, and is not kept:
// the run that is resumed asks the model again, instead of failing for ever.
func TestToolThatThereIsNot(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		var effects atomic.Int64
		good := false
		bad := scripted.Do(call("a", "deploy", deployInput{"a"}), call("d", "nosuch", struct{}{}))
		w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: improving(bad, &good), streaming: streaming})
		run, err := w.agent.Start(t.Context(), releaseIt).Run()
		if err == nil || run == nil || run.Status != agent.Waiting {
			t.Fatalf("have %+v, %v", run, err)
		}
		good = true
		run = w.resume(run.ID)
		wantWaiting(t, run, "a")
		wantFinished(t, w.resume(run.ID, to(run.Questions[0], allow)), "[deployed a]")
	}
}

// A model that takes no tools is told as that when an agent binds some to it.
func TestModelThatTakesNoTools(t *testing.T) {
	plain := struct{ model.BaseChatModel }{scripted.New()}
	if _, err := agent.Model(plain).WithTools(nil); err == nil || !strings.Contains(err.Error(), "ToolCallingChatModel") {
		t.Errorf("have %v", err)
	}
}

// Tool calls that cannot be told apart are refused before any runs, and the run can go on when the
// model does better.
func TestToolCallIDs(t *testing.T) {
	for name, bad := range map[string]*schema.Message{
		"empty": scripted.Do(call("", "deploy", deployInput{"a"})),
		"twice": scripted.Do(call("c", "deploy", deployInput{"a"}), call("c", "deploy", deployInput{"b"})),
	} {
		for _, streaming := range []bool{false, true} {
			var effects atomic.Int64
			good := false
			w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: improving(bad, &good), streaming: streaming})
			run, err := w.agent.Start(t.Context(), releaseIt).Run()
			wantCode(t, name, err, agent.ErrToolCallIDs)
			list, err := w.gate.List(t.Context(), gate.ListQuery{Scope: "ann"})
			if err != nil || len(list.Interactions) > 0 {
				t.Errorf("%s: %d interactions, %v", name, len(list.Interactions), err)
			}
			good = true
			wantWaiting(t, w.resume(run.ID), "a")
		}
	}
}

// Models use their ids again: a call of a later turn is another call.
func TestToolCallIDsOfLaterTurns(t *testing.T) {
	var effects atomic.Int64
	m := scripted.New(
		scripted.Do(call("c", "deploy", deployInput{"a"})), scripted.Do(call("c", "deploy", deployInput{"a"})), scripted.Say("done"))
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: m})
	run := w.start()
	run = w.resume(run.ID, to(of(t, run, "c"), allow))
	wantWaiting(t, run, "c")
	wantFinished(t, w.resume(run.ID, to(of(t, run, "c"), allow)), "done")
	if effects.Load() != 2 {
		t.Errorf("%d effects", effects.Load())
	}
}

// What a model gives to an agent in a tool and does not fit is told to the model.
func TestArgumentsOfAnAgentInATool(t *testing.T) {
	var effects atomic.Int64
	pay := deploy(&effects, nil)
	for _, arguments := range []string{`{"request":`, `{"request":7}`, ``, `{"request":"a","request":"b"}`, `{"Request":"a"}`} {
		w := open(t, memstore.New(), worldOptions{
			tools: []*gate.Tool{pay}, plain: []tool.BaseTool{mustAgentTool(t, expert("x", pay))}, model: after(scripted.Do(call("c", "x", arguments))),
		})
		run, err := w.agent.Start(context.Background(), releaseIt).Run()
		if err != nil || run.Status != agent.Finished || !strings.Contains(run.Message, "not carried out") {
			t.Errorf("arguments %q: have %+v, %v", arguments, run, err)
		}
	}
}

// thenNotifies calls a tool, in the next turn notify, and then says what both told; while it is down
// it fails instead of saying so. As a model does, it makes another id for a call whenever it is asked.
func thenNotifies(first string, down *bool) *scripted.Model {
	asked := 0
	return scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
		asked++
		fresh := strconv.Itoa(asked)
		switch said := results(input); strings.Count(said, "[") {
		case 0:
			return scripted.Do(call(fresh, first, struct{}{})), nil
		case 1:
			return scripted.Do(call(fresh, "notify", struct{}{})), nil
		default:
			if *down {
				return nil, errors.New("the model is down")
			}
			return scripted.Say(said), nil
		}
	})
}

// notify does not ask; it counts its effects, and its result is kept.
func notify(effects *atomic.Int64) *gate.Tool {
	return gate.NewTool("notify", func(context.Context, struct{}) (string, error) {
		effects.Add(1)
		return "notified", nil
	}, &gate.ToolOptions{KeepResult: true})
}

// R27: a run that goes on from its last commit meets the tool calls that it made since then, also
// where a tool before them is told in other words, because its result is not kept, and where the
// model would make other ids for them.
func TestAnswerIsKeptWhateverToolsAreToldAgain(t *testing.T) {
	var runs, effects atomic.Int64
	down := true
	m := thenNotifies("status", &down)
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{status(&runs, nil), notify(&effects)}, model: m})
	run, err := w.agent.Start(t.Context(), releaseIt).Run()
	if err == nil || run == nil {
		t.Fatalf("have %+v, %v", run, err)
	}
	down = false
	wantFinished(t, w.resume(run.ID), "[This call was carried out before, and its result was not kept. Do not make it again.][notified]")
	if runs.Load() != 1 || effects.Load() != 1 {
		t.Errorf("the tools ran %d and %d times", runs.Load(), effects.Load())
	}
}

// R27: where a run goes on from its last commit and stops earlier than it had come before, what its
// model had answered beyond that is still kept: the calls that were made then are not made again.
func TestAnswersBeyondACommitAreKept(t *testing.T) {
	var effects atomic.Int64
	down := true
	m := thenNotifies("look", &down)
	var leave func()
	look := gate.NewTool("look", func(ctx context.Context, _ struct{}) (string, error) {
		if leave != nil {
			leave()
			<-ctx.Done()
		}
		return "green", ctx.Err()
	}, &gate.ToolOptions{Replay: gate.Recover}) // its result is not kept: it looks again
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{look, notify(&effects)}, model: m})
	run, err := w.agent.Start(t.Context(), releaseIt).Run()
	if err == nil || run == nil {
		t.Fatalf("have %+v, %v", run, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	leave = cancel
	run, err = w.agent.Resume(ctx, agent.Resume{Scope: "ann", Run: run.ID, Facilities: everything}).Run()
	if err != nil || run.Status != agent.Waiting || len(run.Problems) != 1 {
		t.Fatalf("broken off: have %+v, %v", run, err)
	}
	leave, down = nil, false
	wantFinished(t, w.resume(run.ID), "[green][notified]")
	if effects.Load() != 1 {
		t.Errorf("%d effects", effects.Load())
	}
}

// R27, R30: an answer that comes again after its deadline does not hide that it was carried out: the
// model is not told that nothing was.
func TestAnswerAgainAfterItsDeadline(t *testing.T) {
	now := time.Now()
	before := &disk{memory: memstore.New()}
	first := before.open()
	m := after(scripted.Do(call("a", "deploy", struct{}{})))
	effects := 0
	asks := gate.NewTool("deploy", func(ctx context.Context, _ struct{}) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy")); err != nil {
			return "", err
		}
		effects++
		before.mu.Lock()
		defer before.mu.Unlock()
		first.kill()
		return "deployed", nil
	}, nil)
	clock := gate.Options{Now: func() time.Time { return now }}
	g, err := gate.Open(t.Context(), first, &gate.Options{
		Tools: []*gate.Tool{asks}, Keys: [][]byte{testKey}, Now: clock.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	build := chat("release", agent.Model(m), compose.ToolsNodeConfig{Tools: []tool.BaseTool{agent.Tool(asks)}})
	a, err := agent.New(t.Context(), g, build, nil)
	if err != nil {
		t.Fatal(err)
	}
	run, err := a.Start(t.Context(), releaseIt).Run()
	if err != nil {
		t.Fatal(err)
	}
	yes := to(of(t, run, "a"), allow)
	if _, err := a.Resume(t.Context(), agent.Resume{Scope: "ann", Run: run.ID, Answers: []agent.Answer{yes}, Facilities: everything}).Run(); err == nil {
		t.Fatal("a process that is dead went on")
	}
	_ = g.Close(t.Context()) // it is dead

	now = now.Add(11 * time.Minute)
	w := open(t, before.crashed(t, rand.New(rand.NewPCG(1, 1)), false).open(), worldOptions{tools: []*gate.Tool{asks}, model: m, gate: clock})
	if run = w.resume(run.ID, yes); run.Status != agent.Finished || !strings.HasPrefix(run.Message, "[It is not known") || effects != 1 {
		t.Errorf("%d effects, have %+v", effects, run)
	}
}

// What eino cannot store is refused before anybody is asked: at the start, and from a model.
func TestExtraThatCannotBeStored(t *testing.T) {
	var effects atomic.Int64
	bad := deploying("a")
	bad.Extra = map[string]any{"thought": map[string]any{"x": 1}}
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: after(bad)})
	input := schema.UserMessage("x")
	input.Extra = map[string]any{"trace": struct{ A int }{1}}
	if _, err := w.agent.Start(t.Context(), agent.Start{Scope: "ann", Messages: []*schema.Message{input}}).Run(); !errors.Is(err, agent.ErrExtra) {
		t.Errorf("at the start: %v", err)
	}
	_, err := w.agent.Start(t.Context(), agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x"), nil}}).Run()
	if err == nil || !strings.Contains(err.Error(), "message 2 is nil") {
		t.Errorf("a message that is none: %v", err)
	}
	_, err = w.agent.Start(t.Context(), releaseIt).Run()
	wantCode(t, "from the model", err, agent.ErrExtra)
	list, err := w.gate.List(t.Context(), gate.ListQuery{Scope: "ann"})
	if err != nil || len(list.Interactions) > 0 {
		t.Errorf("somebody would be asked: %+v, %v", list, err)
	}
}
