package agent_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// line is an event as a screen could show it, without a type of eino's.
func line(e agent.Event) string {
	switch e := e.(type) {
	case agent.RunStarted:
		return "<going>"
	case agent.ModelText:
		return e.Text
	case agent.ModelReasoning:
		return "<thinks " + e.Text + ">"
	case agent.ToolStarted:
		return "<started " + e.Call + " " + e.Tool + e.Arguments + ">"
	case agent.ToolProgress:
		return fmt.Sprintf("<%s at %v>", e.Tool, e.Update.Completed)
	case agent.ToolText:
		return "<piece " + e.Text + ">"
	case agent.ToolEnded:
		return "<ended " + e.Call + " " + e.Result + ">"
	case agent.Asked:
		return "<asked " + e.Question.Call + ">"
	case agent.RunWaiting:
		return "<waiting>"
	case agent.RunFinished:
		return "<finished " + e.Message + ">"
	case agent.RunFailed:
		return "<failed " + e.Message + ">"
	}
	return fmt.Sprintf("<%T>", e)
}

// seen is all that a screen shows of the events, and the error at their end.
func seen(t *testing.T, events *agent.Events) (lines []string, run *agent.Run, err error) {
	t.Helper()
	for event, failed := range events.All() {
		if err != nil {
			t.Fatalf("after the error %v comes %v", err, event)
		}
		if err = failed; err != nil {
			if event != nil {
				t.Errorf("an event beside the error: %v", event)
			}
			continue
		}
		lines = append(lines, line(event))
		switch e := event.(type) {
		case agent.RunWaiting:
			run = e.Run
		case agent.RunFinished:
			run = e.Run
		case agent.RunFailed:
			run = e.Run
		default:
			if run != nil {
				t.Errorf("after where the run stands comes %v", line(event))
			}
		}
	}
	return lines, run, err
}

func wantSeen(t *testing.T, lines []string, want string) {
	t.Helper()
	if have := strings.Join(lines, ""); have != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
}

// announced is an answer that says what its calls are for.
func announced(text string, calls ...scripted.Call) *schema.Message {
	answer := scripted.Do(calls...)
	answer.Content = text
	return answer
}

// R25: events tell a screen all that it needs, in the order in which it happens: a question comes
// after its commit, and where the run stands at the end.
func TestEvents(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		var effects atomic.Int64
		w := open(t, memstore.New(), worldOptions{
			tools: []*gate.Tool{deploy(&effects, nil)}, streaming: streaming,
			model: after(announced("It goes out now. ", call("a", "deploy", deployInput{"a"}))),
		})
		lines, run, err := seen(t, w.agent.Start(t.Context(), releaseIt))
		if err != nil {
			t.Fatal(err)
		}
		wantSeen(t, lines, `<going>It goes out now. <started a deploy{"service":"a"}><asked a><waiting>`)
		lines, _, err = seen(t, w.agent.Resume(t.Context(), agent.Resume{
			Scope: "ann", Run: run.ID, Answers: []agent.Answer{to(run.Questions[0], allow)}, Facilities: everything,
		}))
		if err != nil {
			t.Fatal(err)
		}
		wantSeen(t, lines, `<going><ended a deployed a>[deployed a]<finished [deployed a]>`)
		lines, _, err = seen(t, w.agent.Resume(t.Context(), agent.Resume{Scope: "ann", Run: run.ID}))
		if err != nil {
			t.Fatal(err)
		}
		wantSeen(t, lines, `<finished [deployed a]>`)
	}
}

// What a model thinks is told before what it says of it, whole or in pieces.
func TestReasoningIsTold(t *testing.T) {
	for streaming, want := range map[bool]string{
		false: "<going><thinks It is ready.>Done.<finished Done.>",
		true:  "<going><thinks It ><thinks is ><thinks ready.>Done.<finished Done.>",
	} {
		answer := scripted.Say("Done.")
		answer.ReasoningContent = "It is ready."
		w := open(t, memstore.New(), worldOptions{streaming: streaming, model: scripted.New(answer)})
		lines, _, err := seen(t, w.agent.Start(t.Context(), releaseIt))
		if err != nil {
			t.Fatal(err)
		}
		wantSeen(t, lines, want)
	}
}

// An error is the last pair, and where the run stands comes before it.
func TestErrorIsTheLastPair(t *testing.T) {
	down := errors.New("down")
	fails := true
	m := scripted.Func(func([]*schema.Message) (*schema.Message, error) {
		if fails {
			return nil, down
		}
		return scripted.Say("done"), nil
	})
	w := open(t, memstore.New(), worldOptions{model: m})
	lines, run, err := seen(t, w.agent.Start(t.Context(), releaseIt))
	wantCode(t, "the model", err, down)
	wantSeen(t, lines, "<going><waiting>")
	fails = false
	wantFinished(t, w.resume(run.ID), "done")

	lines, run, err = seen(t, w.agent.Resume(t.Context(), agent.Resume{Scope: "bob", Run: run.ID}))
	wantCode(t, "another scope", err, gate.ErrInvalidContinuation)
	if len(lines) != 0 || run != nil {
		t.Errorf("have %v, %+v", lines, run)
	}
}

// What the runs that CancelOpen ends still do is told first, and that they stop is not.
func TestEventsOfRunsThatAreCancelled(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, model: after(deploying("a")),
	})
	start := inTalk
	first, err := w.agent.Start(t.Context(), start).Run()
	if err != nil {
		t.Fatal(err)
	}
	start.CancelOpen = true
	lines, run, err := seen(t, w.agent.Start(t.Context(), start))
	if err != nil || run.ID == first.ID {
		t.Fatalf("have %+v, %v", run, err)
	}
	told := "The person who was asked about this call broke off. It was not carried out. Do not make this call again."
	wantSeen(t, lines, "<ended a "+told+">["+told+`]<going><started a deploy{"service":"a"}><asked a><waiting>`)
}

// R24: who waits is told nothing until the run goes on, and then what happens in it.
func TestEventsOfWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var effects atomic.Int64
		w := open(t, memstore.New(), worldOptions{
			tools: []*gate.Tool{deploy(&effects, nil)}, model: after(deploying("a")),
		})
		run := w.start()
		begun := time.Now()
		time.AfterFunc(time.Minute, func() {
			err := w.gate.Answer(context.Background(), gate.AnswerRequest{
				Interaction: run.Questions[0].Interaction, Round: 1, Scope: "ann", Answers: to(run.Questions[0], allow).Answers,
			})
			if err != nil {
				t.Error(err)
			}
		})
		events := w.agent.Wait(t.Context(), agent.Resume{Scope: "ann", Run: run.ID, Facilities: everything})
		var lines []string
		for event, err := range events.All() {
			if err != nil {
				t.Fatal(err)
			}
			if lines = append(lines, line(event)); time.Since(begun) < time.Minute {
				t.Errorf("told after %v: %v", time.Since(begun), lines)
			}
		}
		wantSeen(t, lines, `<going><ended a deployed a>[deployed a]<finished [deployed a]>`)
		_, err := events.Run()
		wantCode(t, "a second range", err, agent.ErrTaken)
		w.close()
	})
}

// Events of calls that run at the same time are mixed, and those of one call are in their order.
func TestEventsOfParallelCalls(t *testing.T) {
	both := make(chan struct{}, 2)
	tool := gate.NewTool("t", func(ctx context.Context, in deployInput) (string, error) {
		both <- struct{}{}
		for len(both) < 2 { // both are at work
			runtime.Gosched()
		}
		return in.Service, interrupt.Progress(ctx, interrupt.Update{Completed: 1})
	}, nil)
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{tool}, model: after(scripted.Do(call("a", "t", deployInput{"a"}), call("b", "t", deployInput{"b"}))),
	})
	order, starts := map[string]string{}, map[string]bool{}
	var lines []string
	for event, err := range w.agent.Start(t.Context(), releaseIt).All() {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line(event))
		switch e := event.(type) {
		case agent.ToolStarted:
			order[e.Call] += "started "
			starts[e.StartID] = true
		case agent.ToolProgress:
			order[e.Call] += "progress "
		case agent.ToolEnded:
			order[e.Call] += "ended"
		}
	}
	for _, id := range []string{"a", "b"} {
		if order[id] != "started progress ended" {
			t.Errorf("call %q: %s", id, order[id])
		}
	}
	firstEnd := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "<ended") })
	lastStart := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "<started b") })
	if lastStart > firstEnd || len(starts) != 2 {
		t.Errorf("have %v, start ids %v", lines, starts)
	}
}

// Questions, and problems, stand in the order of the model's calls, those of the agent at the top
// first, whatever the calls' ids are, and also in the process that goes on.
func TestOrderOfTheModel(t *testing.T) {
	var effects atomic.Int64
	store := memstore.New()
	process := func(revision string) *world {
		pay := deploy(&effects, &gate.ToolOptions{Revision: revision})
		inner := func(name string) agent.Build {
			m := agent.Model(after(scripted.Do(call("z", "deploy", deployInput{name + "z"}), call("b", "deploy", deployInput{name + "b"}))))
			return chat(name, m, compose.ToolsNodeConfig{Tools: []tool.BaseTool{agent.Tool(pay)}})
		}
		request := map[string]string{"request": "go"}
		calls := []scripted.Call{call("9", "y", request)}
		for _, id := range []string{"m", "10", "2", "a"} {
			calls = append(calls, call(id, "deploy", deployInput{id}))
		}
		calls = append(calls, call("1", "x", request))
		faces := []tool.BaseTool{mustAgentTool(t, inner("x")), mustAgentTool(t, inner("y")), agent.Tool(pay)}
		return open(t, store, worldOptions{tools: []*gate.Tool{pay}, plain: faces, model: after(scripted.Do(calls...))})
	}
	services := func(questions []agent.Question) (all []string) {
		for _, q := range questions {
			all = append(all, string(q.Prompt.Arguments))
		}
		return all
	}
	want := []string{
		`{"service":"m"}`, `{"service":"10"}`, `{"service":"2"}`, `{"service":"a"}`,
		`{"service":"yz"}`, `{"service":"yb"}`, `{"service":"xz"}`, `{"service":"xb"}`,
	}
	run := process("1").start()
	if have := services(run.Questions); !slices.Equal(have, want) {
		t.Errorf("started: %v", have)
	}
	w := process("1")
	seen, err := w.agent.Inspect(t.Context(), "ann", run.ID)
	if err != nil || !slices.Equal(services(seen.Questions), want) {
		t.Errorf("inspected: %v, %v", services(seen.Questions), err)
	}
	run = w.resume(run.ID, to(run.Questions[1], allow))
	want = slices.Delete(want, 1, 2)
	if have := services(run.Questions); !slices.Equal(have, want) {
		t.Errorf("resumed: %v", have)
	}
	run = process("2").resume(run.ID)
	var have []string
	for _, p := range run.Problems {
		wantCode(t, p.Call, p.Err, gate.ErrRevisionChanged)
		have = append(have, strings.Join(append(slices.Clone(p.Agents), p.Call), " "))
	}
	if !slices.Equal(have, []string{"release m", "release 2", "release a", "release y z", "release y b", "release x z", "release x b"}) {
		t.Errorf("problems: %v", have)
	}
}

// Text that announces calls comes before they start, in every turn and with agents in tools, which
// start and end like other tools; the pieces of one answer can be told from those of another.
func TestTextComesBeforeItsCalls(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		looks := gate.NewTool("look", func(context.Context, struct{}) (string, error) { return "seen", nil }, &gate.ToolOptions{NeverAsks: true})
		steps := func(name string, tool string, arguments any) *scripted.Model {
			return scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
				n := strings.Count(results(input), "[")
				if n == 3 {
					return scripted.Say(name + " is done"), nil
				}
				return announced(fmt.Sprintf("%s turn %d", name, n), call("c", tool, arguments)), nil
			})
		}
		expert := chat("expert", agent.Model(steps("expert", "look", struct{}{})), compose.ToolsNodeConfig{Tools: []tool.BaseTool{agent.Tool(looks)}})
		w := open(t, memstore.New(), worldOptions{
			tools: []*gate.Tool{looks}, plain: []tool.BaseTool{mustAgentTool(t, expert)}, streaming: streaming,
			model: steps("top", "expert", map[string]string{"request": "go"}),
		})
		text, turns := map[string]string{}, map[string]string{} // of the turn that an agent is in
		var stack, all []string
		started := 0
		for event, err := range w.agent.Start(t.Context(), releaseIt).All() {
			if err != nil {
				t.Fatal(err)
			}
			switch e := event.(type) {
			case agent.ModelText:
				agents := strings.Join(e.Agents, "/")
				if turns[agents] != e.Turn {
					text[agents], turns[agents] = "", e.Turn
					all = append(all, e.Turn)
				}
				text[agents] += e.Text
			case agent.ToolStarted:
				agents := strings.Join(e.Agents, "/")
				if !strings.Contains(text[agents], " turn ") {
					t.Errorf("streaming=%v: %q of %s starts after the text %q", streaming, e.Tool, agents, text[agents])
				}
				delete(text, agents)
				stack = append(stack, e.StartID)
				started++
			case agent.ToolEnded:
				if len(stack) == 0 || stack[len(stack)-1] != e.StartID {
					t.Fatalf("%q ended, and started are %v", e.StartID, stack)
				}
				stack = stack[:len(stack)-1]
			}
		}
		slices.Sort(all)
		if started != 12 || len(stack) > 0 || len(all) != 16 || len(slices.Compact(all)) != 16 {
			t.Errorf("streaming=%v: %d calls, without an end %v, turns %v", streaming, started, stack, all)
		}
	}
}
