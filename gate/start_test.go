package gate_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R31: a fresh call with a start ID rejoins what it started: its open prompt with its token, and
// then its end.
func TestStartIDRejoins(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, &gate.ToolOptions{KeepResult: true}))
	c := call("deploy", `{"service":"api"}`)
	c.StartID = "work"
	_, err := g.Inspect(t.Context(), "ann", "work")
	wantCode(t, "inspect before", err, gate.ErrStartUnknown)
	p := mustAsk(t, g, c)
	if again := mustAsk(t, g, c); again.Token != p.Token || again.Interaction != p.Interaction || !again.Expires.Equal(p.Expires) {
		t.Errorf("rejoined with %+v, was %+v", again, p)
	}
	s, err := g.Inspect(t.Context(), "ann", "work")
	if err != nil || s.Status != checkpoint.Open || s.ID != p.Interaction || s.Prompt == nil || s.Prompt.Token != "" {
		t.Errorf("inspect: %+v, %v", s, err)
	}
	for name, change := range map[string]func(*gate.Call){
		"other arguments": func(c *gate.Call) { c.Arguments = json.RawMessage(`{"service":"db"}`) },
	} {
		other := c
		change(&other)
		mustFail(t, g, other, gate.ErrStartConflict)
		_ = name
	}
	// Another scope's identical start ID is another key.
	bob := c
	bob.Scope = "bob"
	if q := mustAsk(t, g, bob); q.Interaction == p.Interaction {
		t.Error("two scopes share a start id")
	}
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
	mustFinish(t, g, c, `"deployed api"`)
	effects.want(t, 1)
	s, err = g.Inspect(t.Context(), "ann", "work")
	if err != nil || s.Status != checkpoint.Finished || s.Code != "" {
		t.Errorf("inspect: %+v, %v", s, err)
	}
}

// R31: the same start ID with another tool is a conflict.
func TestStartIDOfAnotherTool(t *testing.T) {
	empty := func(name string) *gate.Tool {
		return raw(name, func(context.Context) (any, error) { return nil, choose("a", "b") }, nil)
	}
	g := openMem(t, empty("one"), empty("two"))
	c := call("one", `{}`)
	c.StartID = "work"
	mustAsk(t, g, c)
	c.Tool = "two"
	mustFail(t, g, c, gate.ErrStartConflict)
}

// R31, R23: while the first run of a start ID is going on, the same call is busy, at this gate and
// at another one.
func TestStartIDIsBusy(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	tools := gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		close(entered)
		<-leave
		return "done", nil
	}, nil)}}
	store := newMem()
	g, other := open(t, store, tools), open(t, store, tools)
	c := call("tool", `{}`)
	c.StartID = "work"
	done := make(chan error, 1)
	go func() {
		_, err := g.Invoke(context.Background(), c)
		done <- err
	}()
	<-entered
	mustFail(t, g, c, gate.ErrBusy)
	mustFail(t, other, c, gate.ErrBusy)
	if s, err := other.Inspect(t.Context(), "ann", "work"); err != nil || s.Status != checkpoint.Started {
		t.Errorf("inspect: %v, %v", s.Status, err)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mustFail(t, other, c, gate.ErrAlreadyCompleted)
}

// R31, R27: the first run died; the tool's choice decides what the same call does.
func TestStartIDAfterADeath(t *testing.T) {
	for choice, replay := range map[string]gate.Replay{"never again": gate.NeverAgain, "repeatable": gate.Repeatable, "recover": gate.Recover} {
		t.Run(choice, func(t *testing.T) {
			store := &faulty{Store: newMem()}
			tools := gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
				if r, ok := interrupt.ResumeFrom(ctx); ok {
					if !r.Recovery || r.Round != 0 || len(r.Answers) != 0 {
						t.Errorf("resumes %+v", r)
					}
					return "recovered", nil
				}
				_, err := interrupt.Ask(ctx, choose("a", "b"))
				return nil, err
			}, &gate.ToolOptions{Replay: replay})}}
			store.set(func(b *checkpoint.Batch) (before, after error) {
				if writes(b, checkpoint.Open) {
					store.crash()
				}
				return nil, nil
			})
			c := call("tool", `{}`)
			c.StartID = "work"
			mustFail(t, open(t, store, tools), c, gate.ErrOutcomeUnknown)
			store.set(nil)
			g := open(t, store, tools)
			switch replay {
			case gate.NeverAgain:
				mustFail(t, g, c, gate.ErrOutcomeUnknown)
			case gate.Recover:
				mustFinish(t, g, c, `"recovered"`)
			case gate.Repeatable:
				mustAsk(t, g, c)
			}
		})
	}
}
