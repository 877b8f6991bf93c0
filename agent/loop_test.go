package agent_test

import (
	"context"
	"encoding/gob"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// R25: when the loop is told where the run stands, that is committed: the loop itself can go on with
// it.
func TestResumedInTheLoop(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, model: after(deploying("a")),
	})
	for event, err := range w.agent.Start(t.Context(), releaseIt).All() {
		if err != nil {
			t.Fatal(err)
		}
		if asked, ok := event.(agent.Asked); ok {
			page, err := w.agent.Runs(t.Context(), gate.RunQuery{Scope: "ann"})
			if err != nil || len(page.Runs) != 1 {
				t.Fatalf("have %+v, %v", page, err)
			}
			wantFinished(t, w.resume(page.Runs[0].ID, to(asked.Question, allow)), "[deployed a]")
		}
	}
	if effects.Load() != 1 {
		t.Errorf("%d effects", effects.Load())
	}
}

// Nothing happens before the range, and a second one runs nothing.
func TestRangedOnce(t *testing.T) {
	var effects atomic.Int64
	m := after(deploying("a"))
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: m})
	count := func() int {
		t.Helper()
		page, err := w.agent.Runs(t.Context(), gate.RunQuery{Scope: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Runs)
	}
	events := w.agent.Start(t.Context(), releaseIt)
	if n := count(); n != 0 || m.Asked() != 0 {
		t.Fatalf("before the range there are %d runs, and the model was asked %d times", n, m.Asked())
	}
	if _, err := events.Run(); err != nil {
		t.Fatal(err)
	}
	lines, run, err := seen(t, events)
	wantCode(t, "a second range", err, agent.ErrTaken)
	if len(lines) != 0 || run != nil || count() != 1 || m.Asked() != 1 {
		t.Errorf("the second range: %v, %+v; %d runs, the model was asked %d times", lines, run, count(), m.Asked())
	}
}

// R35: a loop that stands still holds up neither the model nor a tool, and misses nothing.
func TestSlowLoop(t *testing.T) {
	ended := make(chan struct{})
	tool := gate.NewTool("t", func(ctx context.Context, _ struct{}) (string, error) {
		defer close(ended)
		return "done", interrupt.Progress(ctx, interrupt.Update{Completed: 1})
	}, nil)
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{tool}, model: after(announced("Now. ", call("a", "t", struct{}{})))})
	var lines []string
	for event, err := range w.agent.Start(t.Context(), releaseIt).All() {
		if err != nil {
			t.Fatal(err)
		}
		<-ended // at the first event already
		lines = append(lines, line(event))
	}
	wantSeen(t, lines, `<going>Now. <started a t{}><t at 1><ended a done>[done]<finished [done]>`)
}

// patient is a tool that works until its context ends, once it has closed atWork; without that
// channel it is done at once. It counts those that are at work.
func patient(working *atomic.Int64, atWork chan struct{}) *gate.Tool {
	return gate.NewTool("patient", func(ctx context.Context, _ struct{}) (string, error) {
		working.Add(1)
		defer working.Add(-1)
		if atWork == nil {
			return "done", nil
		}
		close(atWork)
		<-ctx.Done()
		return "", ctx.Err()
	}, &gate.ToolOptions{Replay: gate.Repeatable})
}

// R23, R25: whoever leaves the loop, at whatever event, leaves no tool at work and no claim: another
// process goes on with the run at once, and nothing has its effect twice.
func TestLoopIsLeft(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		all := 4 // events, and then both tools are at work; the text has two pieces where it streams
		if streaming {
			all = 5
		}
		for n := 1; n <= all; n++ {
			var effects, working atomic.Int64
			store := memstore.New()
			m := after(announced("Two things.", call("a", "deploy", deployInput{"a"}), call("p", "patient", struct{}{})))
			first := open(t, store, worldOptions{
				tools: []*gate.Tool{deploy(&effects, nil), patient(&working, make(chan struct{}))}, model: m, streaming: streaming,
			})
			var going agent.RunStarted
			var lines []string
			for event, err := range first.agent.Start(t.Context(), releaseIt).All() {
				if err != nil {
					t.Fatal(err)
				}
				if is, ok := event.(agent.RunStarted); ok {
					going = is
				}
				if lines = append(lines, line(event)); len(lines) == n {
					break
				}
			}
			if working.Load() != 0 {
				t.Fatalf("left after %v: %d tools are at work", lines, working.Load())
			}
			second := open(t, store, worldOptions{
				tools: []*gate.Tool{deploy(&effects, nil), patient(&working, nil)}, model: m, streaming: streaming,
			})
			run := second.resume(going.ID)
			wantWaiting(t, run, "a")
			wantFinished(t, second.resume(run.ID, to(run.Questions[0], allow)), "[deployed a][done]")
			if effects.Load() != 1 || m.Asked() > 3 {
				t.Errorf("left after %v: %d effects, the model was asked %d times", lines, effects.Load(), m.Asked())
			}
		}
	}
}

// A tool outside of the gate does not hear that the loop is left: it is waited for, and the model is
// not asked what comes next.
func TestLoopIsLeftBesideAnotherTool(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			atWork, goesOn := make(chan struct{}), make(chan struct{})
			done := false
			outside := native{"outside", func(context.Context) (string, error) {
				close(atWork)
				<-goesOn
				done = true
				return "done", nil
			}}
			m := after(scripted.Do(call("o", "outside", `{}`)))
			w := open(t, memstore.New(), worldOptions{eino: []tool.BaseTool{outside}, model: m, streaming: streaming})
			for range w.agent.Start(t.Context(), releaseIt).All() {
				<-atWork
				go func() {
					synctest.Wait() // until the loop is left and waits, and so does the tool
					close(goesOn)
				}()
				break
			}
			if !done || m.Asked() != 1 {
				t.Errorf("streaming=%v: done %v, the model was asked %d times", streaming, done, m.Asked())
			}
			w.close()
		})
	}
}

// A loop that panics, or whose goroutine ends, is left like any other.
func TestLoopDies(t *testing.T) {
	for name, die := range map[string]func(){
		"panic": func() { panic("the screen broke") }, "end of the goroutine": runtime.Goexit,
	} {
		var effects, working atomic.Int64
		atWork := make(chan struct{})
		w := open(t, memstore.New(), worldOptions{
			tools: []*gate.Tool{deploy(&effects, nil), patient(&working, atWork)},
			model: after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("p", "patient", struct{}{}))),
		})
		var going agent.RunStarted
		left := make(chan any)
		go func() {
			defer close(left)
			defer func() { left <- recover() }()
			for event := range w.agent.Start(t.Context(), releaseIt).All() {
				if is, ok := event.(agent.RunStarted); ok {
					going = is
				}
				if started, ok := event.(agent.ToolStarted); ok && started.Tool == "patient" {
					<-atWork
					die()
				}
			}
		}()
		<-left
		seen, err := w.agent.Inspect(t.Context(), "ann", going.ID)
		if err != nil || seen.Status != agent.Waiting || working.Load() != 0 {
			t.Errorf("%s: have %+v, %v; %d tools are at work", name, seen, err, working.Load())
		}
	}
}

// R25, R27: an agent with an agent in a tool and with tools that stream, tell their progress and ask
// is left again and again, and gone on with by other processes until it ends. What people allowed
// happens once, or the model is told that this is not known.
func TestLoopIsLeftAgainAndAgain(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		for n := 1; n <= 12; n++ {
			var effects atomic.Int64
			store := memstore.New()
			process := func() *world {
				half, face, err := agent.Wrap(t.Context(), streams{&payer{effects: &effects}}, &gate.ToolOptions{KeepResult: true})
				if err != nil {
					t.Fatal(err)
				}
				look := gate.NewTool("look", func(ctx context.Context, _ struct{}) (string, error) {
					return "seen", interrupt.Progress(ctx, interrupt.Update{Completed: 1})
				}, &gate.ToolOptions{Replay: gate.Repeatable, KeepResult: true})
				ask := deploy(&effects, &gate.ToolOptions{KeepResult: true})
				return open(t, store, worldOptions{
					tools: []*gate.Tool{half, look, ask}, streaming: streaming,
					plain: []tool.BaseTool{face, agent.Tool(look), agent.Tool(ask), mustAgentTool(t, expert("x", ask))},
					model: after(announced("All at once. ", call("l", "look", struct{}{}), call("p", "pay", `{"amount":7}`),
						call("x", "x", map[string]string{"request": "go"}), call("a", "deploy", deployInput{"a"}))),
				})
			}
			message := leaveAfter(t, n, process)
			done := int64(strings.Count(message, "deployed ") + strings.Count(message, "paid 7"))
			unknown := int64(strings.Count(message, "not known"))
			if effects.Load() > 3 || done > effects.Load() || done+unknown != 3 || !strings.HasPrefix(message, "[seen]") {
				t.Errorf("streaming=%v, left after %d events: %d effects, and the model was told %q", streaming, n, effects.Load(), message)
			}
		}
	}
}

// leaveAfter plays a run, and allows what it asks. The first loop is left after n events, and each of
// the others one event later than the one before. It returns the last message.
func leaveAfter(t *testing.T, n int, process func() *world) string {
	t.Helper()
	var run agent.RunStarted
	events := process().agent.Start(t.Context(), releaseIt)
	for left := n; left < n+32; left++ {
		count := 0
		var answers []agent.Answer
		for event, err := range events.All() {
			if err != nil {
				t.Fatalf("left after %d events: %v", left, err)
			}
			switch e := event.(type) {
			case agent.RunStarted:
				run = e
			case agent.Asked:
				answers = append(answers, to(e.Question, allow))
			case agent.RunFinished:
				return e.Message
			}
			if count++; count == left {
				break
			}
		}
		events = process().agent.Resume(t.Context(), agent.Resume{Scope: "ann", Run: run.ID, Answers: answers, Facilities: everything})
	}
	t.Fatalf("left after %d events, and then later, the run does not end", n)
	return ""
}

// What panics outside of a tool and a model does so in the loop, which can recover, and not in a
// goroutine of its own, which would end the process.
func TestPanicInLoop(t *testing.T) {
	w := open(t, memstore.New(), worldOptions{model: after(scripted.Say("hello"))})
	hello := schema.UserMessage("hello")
	hello.Extra = map[string]any{"x": panics{}}
	start := agent.Start{Scope: "ann", Messages: []*schema.Message{hello}}
	for name, take := range map[string]func(*agent.Events){
		"All": func(events *agent.Events) {
			for event, err := range events.All() {
				t.Errorf("%v, %v", event, err)
			}
		},
		"Run": func(events *agent.Events) { events.Run() },
	} {
		func() {
			defer func() {
				if value := recover(); !strings.Contains(fmt.Sprint(value), "no gob") {
					t.Errorf("%s: recovered %v", name, value)
				}
			}()
			take(w.agent.Start(t.Context(), start))
		}()
	}
}

// panics is a value that panics when eino stores it.
type panics struct{}

func (panics) GobEncode() ([]byte, error) { panic("no gob") }
func (panics) GobDecode([]byte) error     { return nil }

func init() { gob.Register(panics{}) }
