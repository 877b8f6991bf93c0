package gate_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

func joining(tool, arguments string) gate.Call {
	c := call(tool, arguments)
	c.Join = true
	return c
}

// R31, J1: a call that may join is given the open prompt of the same scope, tool and arguments, and
// only that. A call that was not let join begins another interaction.
func TestJoin(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	c := joining("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	if q := mustAsk(t, g, joining("deploy", ` {"service" : "api"} `)); q.Interaction != p.Interaction || q.Token != p.Token {
		t.Errorf("joined %+v, want %+v", q, p)
	}
	for name, change := range map[string]func(c *gate.Call){
		"not let join":    func(c *gate.Call) { c.Join = false },
		"start id":        func(c *gate.Call) { c.StartID = "work" },
		"other arguments": func(c *gate.Call) { c.Arguments = json.RawMessage(`{"service":"db"}`) },
		"other scope":     func(c *gate.Call) { c.Scope = "bob" },
	} {
		other := c
		change(&other)
		if q := mustAsk(t, g, other); q.Interaction == p.Interaction {
			t.Errorf("%s: joined", name)
		}
	}
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
	// Its token leads to where it stands, with the host's leave to join or without; a new call
	// begins anew.
	mustFail(t, g, with(c, p, allow), gate.ErrAlreadyCompleted)
	c.Join = false
	mustFail(t, g, with(c, p, allow), gate.ErrAlreadyCompleted)
	c.Join = true
	if q := mustAsk(t, g, c); q.Interaction == p.Interaction {
		t.Error("joined what is finished")
	}
	effects.want(t, 1)
}

// R31, R22: who joins from another session takes the prompt over, as with a start ID.
func TestJoinFromAnotherSession(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	c := joining("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	moved := c
	moved.Session = "s2"
	q := mustAsk(t, g, moved)
	if q.Interaction != p.Interaction || q.Token == p.Token || !q.Expires.Equal(p.Expires) {
		t.Errorf("joined %+v, was %+v", q, p)
	}
	mustFail(t, g, with(c, p, allow), gate.ErrInvalidContinuation)
	mustFinish(t, g, with(moved, q, allow), `"deployed api"`)
}

// R31, J1: one that was answered from elsewhere is joined and carried out.
func TestJoinAnswered(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	c := joining("deploy", `{"service":"api"}`)
	mustAnswer(t, g, mustAsk(t, g, c), allow)
	mustFinish(t, g, c, `"deployed api"`)
	effects.want(t, 1)
}

// R30, J2: what is overdue is not joined, and does not keep others out.
func TestJoinOverdue(t *testing.T) {
	var effects counter
	clock := newClock()
	store := blindMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now})
	c := joining("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	clock.add(10 * time.Minute)
	q := mustAsk(t, g, c)
	if q.Interaction == p.Interaction {
		t.Error("joined what is overdue")
	}
	if in := recorded(t, store, p.Interaction); in.Status != checkpoint.Expired || !in.Start.IsZero() {
		t.Errorf("left %v, start %v", in.Status, in.Start)
	}
	mustFinish(t, g, with(c, q, allow), `"deployed api"`)
}

// R31, J3: of several such calls at once one makes the interaction, and the others join it.
func TestJoinAtOnce(t *testing.T) {
	const callers = 8
	var all sync.WaitGroup
	all.Add(callers)
	var effects counter
	first := true
	var mu sync.Mutex
	entered := 0
	tool := raw("tool", func(ctx context.Context) (any, error) {
		mu.Lock()
		entered++
		meet := first && entered <= callers
		mu.Unlock()
		if meet { // every caller is in its first run before one of them asks
			all.Done()
			all.Wait()
		}
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "Go on")); err != nil {
			return nil, err
		}
		effects.add()
		return "done", nil
	}, nil)
	store := newMem()
	gates := []*gate.Gate{
		open(t, store, gate.Options{Tools: []*gate.Tool{tool}}), open(t, store, gate.Options{Tools: []*gate.Tool{tool}}),
	}
	prompts := make([]*gate.Prompt, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			outcome, err := gates[i%2].Invoke(t.Context(), joining("tool", `{}`))
			if err != nil {
				t.Error(err)
				return
			}
			prompts[i] = outcome.Prompt
		})
	}
	wg.Wait()
	for _, p := range prompts {
		if p == nil || p.Interaction != prompts[0].Interaction || p.Token != prompts[0].Token {
			t.Fatalf("prompt %+v, want %+v", p, prompts[0])
		}
	}
	if page, err := store.List(t.Context(), checkpoint.Query{}); err != nil || len(page.Records) != 1 {
		t.Errorf("stored: %d records, %v", len(page.Records), err)
	}
	mustFinish(t, gates[0], with(joining("tool", `{}`), prompts[0], allow), `"done"`)
	effects.want(t, 1)
}

// R31, J4: where another interaction can be joined by now, a later prompt is shown and not joined.
func TestJoinLaterRound(t *testing.T) {
	var runs, effects counter
	var between func()
	tool := raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		runs.add()
		if f := between; f != nil {
			between = nil
			f()
		}
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "Go on")); err != nil {
			return nil, err
		}
		effects.add()
		return "done", nil
	}, nil)
	g := openMem(t, tool)
	c := joining("tool", `{}`)
	p := mustAsk(t, g, c)
	var other *gate.Prompt
	between = func() { other = mustAsk(t, g, c) } // while the first one runs, nothing can be joined
	second := mustAsk(t, g, with(c, p, `{"selectionIdx":0}`))
	if other.Interaction == p.Interaction || second.Interaction != p.Interaction || second.Round != 2 {
		t.Fatalf("first %+v, other %+v, second %+v", p, other, second)
	}
	if joined := mustAsk(t, g, c); joined.Interaction != other.Interaction {
		t.Errorf("joined %v, want %v", joined.Interaction, other.Interaction)
	}
	mustFinish(t, g, with(c, second, allow), `"done"`)
	effects.want(t, 1)
}

// R21, R31: a tool's new revision does not join what the former one asked.
func TestJoinOtherRevision(t *testing.T) {
	var effects counter
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{Revision: "1"})}})
	c := joining("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	next := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{Revision: "2"})}})
	if q := mustAsk(t, next, c); q.Interaction == p.Interaction {
		t.Error("joined")
	}
}

// R32, J2, V3: a gate that only reads does not mark what is overdue, and says that it only reads.
func TestReadOnlyJoinsNothingOverdue(t *testing.T) {
	var effects counter
	clock := newClock()
	store := newMem()
	tools := []*gate.Tool{deploy(&effects, nil)}
	g := open(t, store, gate.Options{Tools: tools, Now: clock.Now})
	reader := open(t, store, gate.Options{Tools: tools, Now: clock.Now, ReadOnly: true})
	c := joining("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	if q := mustAsk(t, reader, c); q.Token != p.Token {
		t.Error("another token")
	}
	clock.add(11 * time.Minute)
	mustFail(t, reader, c, gate.ErrUnavailable)
}
