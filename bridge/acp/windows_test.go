package acpbridge_test

import (
	"context"
	"errors"
	"testing"
	"time"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/gate"
)

// R24, R28: two people answer the same question in two windows, one before the other has heard of
// it. The first answer counts, and both calls end with what came of it.
func TestTwoAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		second string
		done   bool // the work of the first is done when the second answer comes
	}{
		"the same, at work":   {selected("allow_once"), false},
		"another, at work":    {selected("reject_once"), false},
		"the same, when done": {selected("allow_once"), true},
		"another, when done":  {selected("reject_once"), true},
		"broken off, at work": {cancelledOutcome, false},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			began, release := make(chan struct{}), make(chan struct{})
			g := memGate(t, slow(&effects, began, release))
			var results [2]string
			var errs [2]error
			var windows [2]*editor
			var ids [2]string
			var asked [2]message
			for i := range windows {
				opts := &acpbridge.Options{PollInterval: time.Hour} // nothing is withdrawn before it is answered
				windows[i] = connect(t, g, opts, caller(func(r string, err error) { results[i], errs[i] = r, err }), plain)
				ids[i] = windows[i].prompt("slow")
				asked[i] = windows[i].asked(permission)
			}
			windows[0].answer(asked[0], selected("allow_once"))
			<-began
			if c.done {
				close(release)
				windows[0].ends(ids[0], "end_turn")
			}
			windows[1].answer(asked[1], c.second)
			if !c.done {
				close(release)
				windows[0].ends(ids[0], "end_turn")
			}
			stop, result := "end_turn", `"done"`
			if c.second == cancelledOutcome {
				stop, result = "cancelled", ""
			}
			windows[1].ends(ids[1], stop)
			if results[0] != `"done"` || errs[0] != nil || results[1] != result || errors.Is(errs[1], gate.ErrCancelled) != (result == "") {
				t.Errorf("the calls end with %q, %v and %q, %v", results[0], errs[0], results[1], errs[1])
			}
			effects.want(t, 1)
		})
	}
}

// A call that joins while another window is at work waits for that, until its turn is cancelled.
func TestJoinsWork(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		var effects counter
		began, release := make(chan struct{}), make(chan struct{})
		g := memGate(t, raw("slow", func(ctx context.Context) (any, error) {
			close(began)
			<-release
			effects.add()
			return "done", nil
		}, &gate.ToolOptions{KeepResult: true}))
		a := connect(t, g, nil, caller(nil), plain)
		var result string
		var ended error
		b := connect(t, g, nil, caller(func(r string, err error) { result, ended = r, err }), plain)
		first := a.prompt("slow")
		<-began
		second := b.prompt("slow")
		b.askedAt("session/update") // it is pending
		if cancelled {
			b.write(cancelLine)
			b.ends(second, "cancelled")
			if !errors.Is(ended, gate.ErrCancelled) {
				t.Errorf("ended with %v", ended)
			}
		}
		close(release)
		a.ends(first, "end_turn")
		if !cancelled {
			b.ends(second, "end_turn")
			if ended != nil || result != `"done"` {
				t.Errorf("ended with %q, %v", result, ended)
			}
		}
		effects.want(t, 1)
	}
}
