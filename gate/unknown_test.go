package gate_test

import (
	"cmp"
	"context"
	"errors"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// R25, R31, F2, F3: while it is not known that a start ID's record is written, nothing runs. What
// the same call finds later is what was really written.
func TestUnknownCommitOfAStart(t *testing.T) {
	for name, test := range map[string]struct {
		before, after error
		unreadable    bool
		now, later    gate.Code // what the call gets; empty: the result
	}{
		"written, and readable":       {nil, errInjected, false, "", gate.ErrAlreadyCompleted},
		"written, and unreadable":     {nil, errInjected, true, gate.ErrUnavailable, gate.ErrOutcomeUnknown},
		"not written, and readable":   {errInjected, nil, false, gate.ErrUnavailable, ""},
		"not written, and unreadable": {errInjected, nil, true, gate.ErrUnavailable, ""},
		"refused as a conflict":       {&checkpoint.ConflictError{}, nil, false, gate.ErrBusy, ""},
		"refused as read-only":        {checkpoint.ErrReadOnly, nil, false, gate.ErrUnavailable, ""},
		"refused as lapsed":           {checkpoint.ErrLapsed, nil, false, gate.ErrUnavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			store := &faulty{Store: newMem()}
			g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(context.Context) (any, error) {
				effects.add()
				return "done", nil
			}, nil)}})
			store.untold(checkpoint.Started, test.before, test.after, test.unreadable)
			c := call("tool", `{}`)
			c.StartID = "work"
			ran := 0
			for _, want := range []gate.Code{test.now, test.later} {
				if want == "" {
					mustFinish(t, g, c, `"done"`)
					ran++
				} else {
					e := mustFail(t, g, c, want)
					if cause := cmp.Or(test.before, test.after); want == gate.ErrUnavailable && !errors.Is(e, cause) {
						t.Errorf("the host is not told why: %v", errors.Unwrap(e))
					}
				}
				effects.want(t, ran)
				store.heal()
			}
		})
	}
}

// R25, N3: an answer by another road is told recorded only when that is known; the same answer
// again settles it.
func TestUnknownCommitFromElsewhere(t *testing.T) {
	for name, test := range map[string]struct {
		before, after error
		unreadable    bool
		now           gate.Code
		recorded      checkpoint.Status
	}{
		"written, and readable":     {nil, errInjected, false, "", checkpoint.Answered},
		"written, and unreadable":   {nil, errInjected, true, gate.ErrUnavailable, checkpoint.Answered},
		"not written, and readable": {errInjected, nil, false, gate.ErrUnavailable, checkpoint.Open},
		"refused":                   {checkpoint.ErrLapsed, nil, false, gate.ErrUnavailable, checkpoint.Open},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			store := &faulty{Store: newMem()}
			g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
			c := call("deploy", `{"service":"api"}`)
			p := mustAsk(t, g, c)
			store.set(func(*checkpoint.Batch) (before, after error) {
				if test.unreadable {
					store.failLoads(errInjected)
				}
				return test.before, test.after
			})
			err := g.Answer(t.Context(), answers(p, "ann", allow))
			if test.now == "" && err != nil || test.now != "" && !errors.Is(err, test.now) {
				t.Errorf("want %q, have %v", test.now, err)
			}
			store.heal()
			if in := recorded(t, store, p.Interaction); in.Status != test.recorded {
				t.Errorf("recorded %v", in.Status)
			}
			mustAnswer(t, g, p, allow)
			c.Token = p.Token
			mustFinish(t, g, c, `"deployed api"`)
			effects.want(t, 1)
		})
	}
}

// R25: a write of somebody else's at the very revision of ours is not ours, though nobody was told
// what became of ours.
func TestSameRevisionOfAnother(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	opts := gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}}
	g, other := open(t, store, opts), open(t, store, opts)
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	store.set(func(*checkpoint.Batch) (before, after error) {
		store.set(nil)
		mustAnswer(t, other, p, reject)
		return errInjected, nil
	})
	mustFail(t, g, with(c, p, allow), gate.ErrAlreadyAnswered)
	effects.want(t, 0)
}

// R25, H1: a later prompt whose commit stays unknown is not shown. Where it landed, the same answer
// brings it; where it did not, an attempt was made (R27).
func TestUnknownCommitOfALaterPrompt(t *testing.T) {
	for name, test := range map[string]struct {
		lands bool
		later gate.Code // empty: the prompt
	}{
		"not written":                 {false, gate.ErrOutcomeUnknown},
		"written, and nobody can see": {true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var runs, effects counter
			store := &faulty{Store: newMem()}
			g := open(t, store, gate.Options{Tools: []*gate.Tool{twoRounds(&runs, &effects, nil)}})
			c := call("tool", `{}`)
			first := with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)
			store.set(func(b *checkpoint.Batch) (before, after error) {
				if !writes(b, checkpoint.Open) {
					return nil, nil
				}
				store.failLoads(errInjected)
				if test.lands {
					test.lands = false // the first time
					return nil, errInjected
				}
				return errInjected, nil
			})
			mustFail(t, g, first, gate.ErrUnavailable)
			store.heal()
			if test.later != "" {
				mustFail(t, g, first, test.later)
			} else {
				mustFinish(t, g, with(c, mustAsk(t, g, first), allow), `"done"`)
			}
		})
	}
}

// R34, H5: a prompt that the store takes in no form is too large, and the attempt ended so.
func TestStoreTakesNoSuchPrompt(t *testing.T) {
	var runs, effects counter
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{twoRounds(&runs, &effects, nil)}})
	c := call("tool", `{}`)
	p := mustAsk(t, g, c)
	store.set(func(b *checkpoint.Batch) (before, after error) {
		if writes(b, checkpoint.Open) {
			return checkpoint.ErrInvalidBatch, nil
		}
		return nil, nil
	})
	mustFail(t, g, with(c, p, `{"selectionIdx":0}`), gate.ErrTooLarge)
	if in := recorded(t, store, p.Interaction); in.Status != checkpoint.Failed || in.Ending.Code != string(gate.ErrTooLarge) {
		t.Errorf("recorded %v, %+v", in.Status, in.Ending)
	}
}

// R16, R34: an answer that the store takes in no form changes nothing: another one is good.
func TestStoreTakesNoSuchAnswer(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	refuses := true
	store.set(func(b *checkpoint.Batch) (before, after error) {
		if refuses && (writes(b, checkpoint.Running) || writes(b, checkpoint.Answered)) {
			return checkpoint.ErrInvalidBatch, nil
		}
		return nil, nil
	})
	if e := mustFail(t, g, with(c, p, allow), gate.ErrTooLarge); !e.StillOpen || e.Interaction != p.Interaction {
		t.Errorf("refused with %+v", e)
	}
	if e := wantCode(t, "from elsewhere", g.Answer(t.Context(), answers(p, "ann", allow)), gate.ErrTooLarge); !e.StillOpen {
		t.Errorf("refused with %+v", e)
	}
	refuses = false
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
	effects.want(t, 1)
}

// R25, H1: a prompt whose commit landed unseen, and whose second commit is therefore a conflict
// that cannot be read back, is unknown: unavailable, and the same answer brings the prompt (P3).
func TestLandedPromptThatCannotBeReadBack(t *testing.T) {
	var runs, effects counter
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{twoRounds(&runs, &effects, nil)}})
	c := call("tool", `{}`)
	first := with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)
	store.set(func(b *checkpoint.Batch) (before, after error) {
		if !writes(b, checkpoint.Open) {
			return nil, nil
		}
		store.failLoads(errInjected) // nothing can be read back
		return nil, errInjected      // it is written, and nobody is told
	})
	mustFail(t, g, first, gate.ErrUnavailable)
	store.heal()
	mustAsk(t, g, first)
}
