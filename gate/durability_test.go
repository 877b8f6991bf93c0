package gate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// R25: a one-question interaction answered by its caller costs two durable commits, a start ID and
// an answer from elsewhere one more each.
func TestDurableCommits(t *testing.T) {
	for name, test := range map[string]struct {
		start     string
		elsewhere bool
		want      int
	}{
		"by its caller":  {"", false, 2},
		"a start id":     {"work", false, 3},
		"from elsewhere": {"", true, 3},
		"both":           {"work", true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			store := &faulty{Store: newMem()}
			g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
			c := call("deploy", `{"service":"api"}`)
			c.StartID = test.start
			p := mustAsk(t, g, c)
			if test.elsewhere {
				mustAnswer(t, g, p, allow)
			}
			mustFinish(t, g, with(c, p, allow), `"deployed api"`)
			if have, _ := store.counts(); have != test.want {
				t.Errorf("%d durable commits, want %d", have, test.want)
			}
		})
	}
}

// R25: a tool that does not ask costs no commit at all.
func TestNoCommitWithoutAQuestion(t *testing.T) {
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(context.Context) (any, error) { return "done", nil }, nil)}})
	mustFinish(t, g, call("tool", `{}`), `"done"`)
	if have, _ := store.counts(); have != 0 {
		t.Errorf("%d commits", have)
	}
}

// R25: a prompt is committed before its token is given out. A commit whose outcome is not known is
// settled by reading back.
func TestUnknownCommitOfAPrompt(t *testing.T) {
	for name, test := range map[string]struct {
		before, after error
		times         int // how often the commit fails
		want          gate.Code
	}{
		"written although it failed":    {nil, errInjected, 100, ""},
		"failed once":                   {errInjected, nil, 1, ""},
		"never written":                 {errInjected, nil, 100, gate.ErrUnavailable},
		"the store is closed for good":  {checkpoint.ErrUnavailable, nil, 100, gate.ErrUnavailable},
		"the store turned to read-only": {checkpoint.ErrReadOnly, nil, 100, gate.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			store := &faulty{Store: newMem()}
			g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
			failed := 0
			store.set(func(b *checkpoint.Batch) (before, after error) {
				if failed++; failed > test.times {
					return nil, nil
				}
				return test.before, test.after
			})
			c := call("deploy", `{"service":"api"}`)
			if test.want != "" {
				e := mustFail(t, g, c, test.want)
				if e.Code.Retryable() != (test.want == gate.ErrUnavailable) {
					t.Errorf("retryable: %v", e.Code.Retryable())
				}
				return
			}
			p := mustAsk(t, g, c)
			store.set(nil)
			mustFinish(t, g, with(c, p, allow), `"deployed api"`)
			effects.want(t, 1)
		})
	}
}

// R25, R27: an answer is committed before the handler runs; while it is not known to be, the
// handler does not run. What the same request finds later is what was really written.
func TestUnknownCommitOfAnAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		before, after error
		unreadable    bool
		now, later    gate.Code // what the request gets; empty: the result
	}{
		"written, and readable":       {nil, errInjected, false, "", gate.ErrAlreadyCompleted},
		"written, and unreadable":     {nil, errInjected, true, gate.ErrUnavailable, gate.ErrOutcomeUnknown},
		"not written, and readable":   {errInjected, nil, false, gate.ErrUnavailable, ""},
		"not written, and unreadable": {errInjected, nil, true, gate.ErrUnavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			store := &faulty{Store: newMem()}
			g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
			c := call("deploy", `{"service":"api"}`)
			p := mustAsk(t, g, c)
			store.untold(checkpoint.Running, test.before, test.after, test.unreadable)
			answer := with(c, p, allow)
			ran := 0
			for _, want := range []gate.Code{test.now, test.later} {
				if want == "" {
					mustFinish(t, g, answer, `"deployed api"`)
					ran++
				} else {
					mustFail(t, g, answer, want)
				}
				effects.want(t, ran)
				store.heal()
			}
		})
	}
}

// R25: a commit that never returns is bounded, and settled by reading back under a bound of its
// own.
func TestCommitThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var effects counter
		store := &faulty{Store: memstore.New()}
		g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Lifetime: time.Hour})
		c := call("deploy", `{"service":"api"}`)
		p := mustAsk(t, g, c)
		store.hang(true) // what is written is written, and nobody is told
		mustFinish(t, g, with(c, p, allow), `"deployed api"`)
		store.hang(false)
		effects.want(t, 1)
	})
}

// R25: a finish mark is not waited for: losing one costs the caller nothing, and never a second
// run.
func TestLostFinishMark(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	store.set(func(b *checkpoint.Batch) (before, after error) {
		if b.Lazy {
			return errInjected, nil
		}
		return nil, nil
	})
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
	mustFail(t, g, with(c, p, allow), gate.ErrOutcomeUnknown)
	store.set(nil)
	// The mark is owed, and paid with a later request.
	mustFail(t, g, with(c, p, allow), gate.ErrAlreadyCompleted)
	effects.want(t, 1)
}

// A store that cannot be read is told as such, retryably, and nothing else is.
func TestStoreDown(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	store.failLoads(errInjected)
	e := mustFail(t, g, with(c, p, allow), gate.ErrUnavailable)
	if !e.Code.Retryable() || !errors.Is(e, errInjected) || e.Error() != "unavailable: the store does not serve" {
		t.Errorf("%v", e)
	}
	store.failLoads(nil)
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
}

// R25: a question whose commit has an unknown outcome is written once more. What is told to the host
// is why the first try failed, and not that the second one met it.
func TestCauseOfAnUnknownOutcome(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	var tries int
	store.set(func(*checkpoint.Batch) (before, after error) {
		if tries++; tries == 1 {
			return nil, errInjected
		}
		return nil, nil
	})
	store.failLoads(errors.New("not read"))
	var conflict *checkpoint.ConflictError
	e := mustFail(t, g, call("deploy", `{"service":"api"}`), gate.ErrUnavailable)
	if !errors.Is(e, errInjected) || !errors.As(e, &conflict) || tries != 2 {
		t.Errorf("after %d tries: %v", tries, errors.Unwrap(e))
	}
}
