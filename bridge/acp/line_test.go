package acpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/acp-go-sdk"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// atOnce is an agent that makes n calls of deploy at once, the service of each being its number.
// What came of them is in ended.
func atOnce(n int, ended func(i int, err error)) *anAgent {
	return &anAgent{prompt: func(ctx context.Context, turn *acpbridge.Turn, _ string) error {
		var calls sync.WaitGroup
		for i := range n {
			calls.Go(func() {
				call := acpbridge.Call{ID: acp.ToolCallId(fmt.Sprint("call-", i)), Tool: "deploy", Arguments: fmt.Appendf(nil, `{"service":"%d"}`, i)}
				_, err := turn.CallTool(ctx, call)
				ended(i, err)
			})
		}
		calls.Wait()
		return nil
	}}
}

// settled reads until the agent has nothing more to say: it answers a request that comes last.
func (e *editor) settled() []message {
	e.t.Helper()
	_, before := e.response(e.request("session/list", `{}`))
	return before
}

func requests(messages []message) (all []message) {
	for _, m := range messages {
		if m.Method != "" && m.ID != nil {
			all = append(all, m)
		}
	}
	return all
}

// One question of a session at a time, first in, first out; each with its own answer. What is
// waiting in line is cancelled with the turn.
func TestLine(t *testing.T) {
	var effects counter
	var mu sync.Mutex
	outcomes := map[int]error{}
	g := memGate(t, deploy(&effects, nil))
	e := connect(t, g, nil, atOnce(4, func(i int, err error) {
		mu.Lock()
		defer mu.Unlock()
		outcomes[i] = err
	}), plain)
	id := e.prompt("go")
	answers := []string{selected("allow_once"), selected("reject_once")}
	var order []string
	for _, answer := range answers {
		q := e.asked(permission)
		waitFor(t, func() bool { // all four wait for their person: one in the editor, the others in line
			page, err := g.List(t.Context(), gate.ListQuery{Scope: "ann", Statuses: []checkpoint.Status{checkpoint.Open}})
			return err == nil && len(page.Interactions) == 4-len(order)
		})
		if more := requests(e.settled()); len(more) > 0 {
			t.Fatalf("a second question: %v", more)
		}
		order = append(order, titleOf(t, q))
		e.answer(q, answer)
	}
	e.asked(permission)
	waitFor(t, func() bool { // the two that were answered have ended
		page, err := g.List(t.Context(), gate.ListQuery{Scope: "ann", Statuses: []checkpoint.Status{checkpoint.Finished}})
		return err == nil && len(page.Interactions) == 2
	})
	e.write(cancelLine)
	after := e.ends(id, "cancelled")
	if more := requests(after); len(more) > 0 {
		t.Errorf("asked after the cancel: %v", more)
	}
	counts := map[gate.Code]int{}
	for i, err := range outcomes {
		var end *gate.Error
		switch {
		case err == nil:
			counts[""]++
		case errors.As(err, &end):
			counts[end.Code]++
		}
		if got := statuses(fmt.Sprint("call-", i), after); len(got) > 0 && got[len(got)-1] == "pending" {
			t.Errorf("call %d has no terminal status", i)
		}
	}
	if counts[""] != 1 || counts[gate.ErrRejected] != 1 || counts[gate.ErrCancelled] != 2 {
		t.Errorf("outcomes %v", counts)
	}
	effects.want(t, 1)
}

func titleOf(t *testing.T, q message) string {
	var p struct{ ToolCall struct{ Title string } }
	if err := json.Unmarshal(q.Params, &p); err != nil {
		t.Fatal(err)
	}
	return p.ToolCall.Title
}

// waitFor waits for a state that another goroutine brings about.
func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case <-t.Context().Done():
			t.Fatal("it never came")
		default:
			runtime.Gosched()
		}
	}
}

// With MaxOpen the client is asked several questions at a time, and never two of one call.
func TestMaxOpen(t *testing.T) {
	var effects counter
	e := connect(t, memGate(t, deploy(&effects, nil)), &acpbridge.Options{MaxOpen: 3}, atOnce(4, func(int, error) {}), plain)
	id := e.prompt("go")
	open := []message{e.asked(permission), e.asked(permission), e.asked(permission)}
	if more := requests(e.settled()); len(more) > 0 {
		t.Fatalf("a fourth question: %v", more)
	}
	e.answer(open[1], selected("allow_once"))
	open[1] = e.asked(permission)
	for _, q := range open {
		e.answer(q, selected("allow_once"))
	}
	e.ends(id, "end_turn")
	effects.want(t, 4)
}

// R18: several questions of one prompt come one after the other, and are one answer.
func TestTwoQuestions(t *testing.T) {
	tool := raw("two", func(ctx context.Context) (any, error) {
		answered, err := interrupt.AskAll(ctx, choice(), interrupt.ToolPermission("two", "Sure?"))
		if err != nil {
			return nil, err
		}
		return answered[0].(*interrupt.UserSelectionInterrupt).ConfirmedChoice.Title, nil
	}, nil)
	var result string
	e := connect(t, memGate(t, tool), &acpbridge.Options{MaxOpen: 5}, caller(func(r string, _ error) { result = r }), both)
	id := e.prompt("two")
	q := e.asked(elicit)
	if more := requests(e.settled()); len(more) > 0 {
		t.Fatalf("two questions of one call: %v", more)
	}
	e.answer(q, `{"action":"accept","content":{"choice":"7"}}`)
	e.answer(e.asked(permission), selected("allow_once"))
	e.answer(e.asked(elicit), `{"action":"accept","content":{"choice":"0"}}`) // that one again, and only that one
	if got := statuses("call-two", e.ends(id, "end_turn")); !slices.Equal(got, []string{"in_progress", "completed"}) {
		t.Errorf("statuses %v", got)
	}
	if result != `"south"` {
		t.Errorf("result %s", result)
	}
}

// R24: a question that was answered by another road is withdrawn from the editor and not asked
// again; the call goes on with that answer.
func TestAnsweredElsewhere(t *testing.T) {
	for _, option := range []string{"allow_once", "reject_once"} {
		var effects counter
		var ended error
		g := memGate(t, deploy(&effects, nil))
		e := connect(t, g, nil, caller(func(_ string, err error) { ended = err }), plain)
		id := e.prompt(`deploy {"service":"api"}`)
		q := e.asked(permission)
		p := recorded(t, g).Prompt
		err := g.Answer(t.Context(), gate.AnswerRequest{
			Interaction: p.Interaction, Round: p.Round, Scope: "ann", By: "inbox",
			Answers: gate.Answers{p.Questions[0].ID: json.RawMessage(`{"optionId":"` + option + `"}`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		after := e.ends(id, "end_turn")
		e.answer(q, selected("allow_once")) // too late
		want := `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":` + string(q.ID) + `}}`
		for !slices.ContainsFunc(after, func(m message) bool { return strings.TrimSpace(m.Text) == want }) {
			after = append(after, e.next()) // the SDK sends it when it comes to it
		}
		if option == "allow_once" {
			effects.want(t, 1)
		} else if !errors.Is(ended, gate.ErrRejected) || effects.count() != 0 {
			t.Errorf("ended with %v, %d effects", ended, effects.count())
		}
	}
}

// Two windows show one call. The one in which nobody answers waits for the work of the other, and
// has its result.
func TestTwoWindows(t *testing.T) {
	var effects counter
	began, release := make(chan struct{}), make(chan struct{})
	g := memGate(t, slow(&effects, began, release))
	var results [2]string
	var windows [2]*editor
	var ids [2]string
	var asked [2]message
	for i := range windows {
		windows[i] = connect(t, g, nil, caller(func(r string, err error) {
			if results[i] = r; err != nil {
				t.Errorf("window %d: %v", i, err)
			}
		}), plain)
		ids[i] = windows[i].prompt("slow")
		asked[i] = windows[i].asked(permission)
	}
	windows[0].answer(asked[0], selected("allow_once"))
	<-began
	windows[1].askedAt("$/cancel_request") // withdrawn while the other one works
	close(release)
	for i, w := range windows {
		w.ends(ids[i], "end_turn")
		if results[i] != `"done"` {
			t.Errorf("window %d has %q", i, results[i])
		}
	}
	effects.want(t, 1)
}

// The work of the other window is done, and shown as that where its result was not kept.
func TestDoneInAnotherWindow(t *testing.T) {
	for option, want := range map[string]string{"allow_once": "completed", "reject_once": "failed"} {
		var effects counter
		g := memGate(t, deploy(&effects, nil))
		a, b := connect(t, g, nil, caller(nil), plain), connect(t, g, nil, caller(nil), plain)
		first, second := a.prompt(`deploy {"service":"api"}`), b.prompt(`deploy {"service":"api"}`)
		q := a.asked(permission)
		b.asked(permission)
		a.answer(q, selected(option))
		a.ends(first, "end_turn")
		if have := statuses("call-deploy", b.ends(second, "end_turn")); !slices.Equal(have, []string{want}) {
			t.Errorf("%s: the other window shows %v", option, have)
		}
	}
}

// A page that served its purpose is told, once, and not where it is asked for again.
func TestCompleted(t *testing.T) {
	tool := raw("page", func(ctx context.Context) (any, error) {
		for i := range 2 {
			q := interrupt.URL("Sign in", "https://example.com/sign-in")
			q.Key = fmt.Sprint(i)
			if _, err := interrupt.Ask(ctx, q); err != nil {
				return nil, err
			}
		}
		_, err := interrupt.Ask(ctx, choice())
		return "done", err
	}, nil)
	e := connect(t, memGate(t, tool), nil, caller(nil), both)
	id := e.prompt("page")
	e.answer(e.asked(elicit), `{"action":"accept"}`)
	var seen []message
	second := e.asked(elicit, &seen)
	e.answer(second, `{"action":"accept"}`)
	third := e.asked(elicit, &seen)
	e.answer(third, `{"action":"accept","content":{"choice":"0"}}`)
	seen = append(seen, e.ends(id, "end_turn")...)
	var completed []string
	for _, m := range seen {
		if m.Method == "elicitation/complete" {
			completed = append(completed, string(m.Params))
		}
	}
	var p struct{ ElicitationID string }
	if err := json.Unmarshal(second.Params, &p); err != nil || !slices.Equal(completed, []string{`{"elicitationId":"` + p.ElicitationID + `"}`}) {
		t.Errorf("completed %v, want %v", completed, p)
	}
}
