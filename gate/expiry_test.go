package gate_test

import (
	"context"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R30: ten minutes by default, exactly; an invalid or a late answer changes nothing but that it is
// late.
func TestDeadline(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		code  gate.Code
	}{
		"just before": {10*time.Minute - time.Millisecond, ""},
		"exactly":     {10 * time.Minute, gate.ErrExpired},
		"after":       {time.Hour, gate.ErrExpired},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			clock := newClock()
			g := open(t, blindMem(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now})
			c := call("deploy", `{"service":"api"}`)
			p := mustAsk(t, g, c)
			if want := clock.Now().Add(10 * time.Minute); !p.Expires.Equal(want) {
				t.Errorf("expires %v, want %v", p.Expires, want)
			}
			clock.add(test.after)
			if test.code == "" {
				mustFinish(t, g, with(c, p, allow), `"deployed api"`)
				return
			}
			stranger := with(c, p, allow)
			stranger.Scope = "bob"
			mustFail(t, g, stranger, gate.ErrInvalidContinuation) // R21: expired is told only where all else matched
			mustFail(t, g, with(c, p, allow), test.code)
			look := c
			look.Token = p.Token
			mustFail(t, g, look, test.code)
			effects.want(t, 0)
		})
	}
}

// R30: the lifetime is configurable up to none, a tool or a question may shorten it, and nothing
// extends it.
func TestLifetimes(t *testing.T) {
	limited := func(d time.Duration) *interrupt.UserSelectionInterrupt {
		q := choose("a", "b")
		q.Lifetime = d
		return q
	}
	for name, test := range map[string]struct {
		gate, tool, question time.Duration
		want                 time.Duration // 0: none
	}{
		"none":                        {gate.NoExpiry, 0, 0, 0},
		"the gate's":                  {time.Hour, 0, 0, time.Hour},
		"the tool's is shorter":       {time.Hour, time.Minute, 0, time.Minute},
		"the tool's is longer":        {time.Minute, time.Hour, 0, time.Minute},
		"the tool's beside none":      {gate.NoExpiry, time.Minute, 0, time.Minute},
		"the question's is shorter":   {time.Hour, time.Minute, time.Second, time.Second},
		"the question's is longer":    {time.Hour, time.Minute, 2 * time.Hour, time.Minute},
		"the question's beside none":  {gate.NoExpiry, 0, time.Second, time.Second},
		"less than the store's grain": {gate.NoExpiry, 0, 1500 * time.Microsecond, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			tool := raw("tool", func(context.Context) (any, error) { return nil, limited(test.question) }, &gate.ToolOptions{Lifetime: test.tool})
			g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{tool}, Now: clock.Now, Lifetime: test.gate})
			p := mustAsk(t, g, call("tool", `{}`))
			want := time.Time{}
			if test.want > 0 {
				want = clock.Now().Add(test.want)
			}
			if !p.Expires.Equal(want) {
				t.Errorf("expires %v, want %v", p.Expires, want)
			}
		})
	}
}

// R30: a later prompt never extends the deadline, a child may expire before its parent, and
// replaying the parent does not bring it back.
func TestLaterPromptDoesNotExtend(t *testing.T) {
	clock := newClock()
	second := time.Duration(0)
	g := open(t, blindMem(), gate.Options{Now: clock.Now, Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		q := choose("c", "d")
		q.Lifetime = second
		_, err := interrupt.Ask(ctx, q)
		return nil, err
	}, nil)}})
	c := call("tool", `{}`)
	p1 := mustAsk(t, g, c)
	clock.add(6 * time.Minute)
	p2 := mustAsk(t, g, with(c, p1, `{"selectionIdx":0}`))
	if !p2.Expires.Equal(p1.Expires) {
		t.Errorf("the second prompt expires %v, the first %v", p2.Expires, p1.Expires)
	}

	second = time.Minute
	p1 = mustAsk(t, g, c)
	first := with(c, p1, `{"selectionIdx":0}`)
	p2 = mustAsk(t, g, first)
	clock.add(time.Minute)
	mustFail(t, g, with(c, p2, `{"selectionIdx":0}`), gate.ErrExpired)
	mustFail(t, g, first, gate.ErrExpired)
}

// R30: a clock that steps back revives nothing, also after a restart; the latest time ever recorded
// is a floor.
func TestClockStepsBack(t *testing.T) {
	var effects counter
	clock := newClock()
	store := blindMem()
	tools := gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now}
	g := open(t, store, tools)
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	clock.add(11 * time.Minute)
	mustAsk(t, g, call("deploy", `{"service":"db"}`)) // another interaction records the time
	clock.add(-10 * time.Minute)
	mustFail(t, g, with(c, p, allow), gate.ErrExpired)
	mustFail(t, open(t, store, tools), with(c, p, allow), gate.ErrExpired)
	effects.want(t, 0)
}

// R30: an approval that was given but not yet executed expires with its interaction.
func TestApprovalExpires(t *testing.T) {
	var effects counter
	clock := newClock()
	g := open(t, blindMem(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	mustAnswer(t, g, p, allow)
	clock.add(10 * time.Minute)
	c.Token = p.Token
	mustFail(t, g, c, gate.ErrExpired)
	effects.want(t, 0)
}

// R24, R30: time passes while a request is authorized; what is late then is late.
func TestDeadlinePassesDuringAuthorization(t *testing.T) {
	var effects counter
	clock := newClock()
	slow := time.Duration(0)
	g := open(t, blindMem(), gate.Options{Now: clock.Now, Tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{
		Authorize: func(context.Context, gate.Execution) error {
			clock.add(slow)
			return nil
		},
	})}})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	slow = 10 * time.Minute
	mustFail(t, g, with(c, p, allow), gate.ErrExpired)
	effects.want(t, 0)
}

// R30: a prompt after the deadline is not shown; the attempt was made, and R27 goes on from there.
func TestPromptAfterTheDeadline(t *testing.T) {
	clock := newClock()
	g := open(t, newMem(), gate.Options{Now: clock.Now, Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		if r, _ := interrupt.ResumeFrom(ctx); r.Recovery {
			return "recovered", nil
		}
		clock.add(time.Hour)
		_, err := interrupt.Ask(ctx, choose("c", "d"))
		return nil, err
	}, &gate.ToolOptions{Replay: gate.Recover})}})
	c := call("tool", `{}`)
	c.StartID = "work"
	p := mustAsk(t, g, c)
	mustFail(t, g, with(c, p, `{"selectionIdx":0}`), gate.ErrExpired)
	mustFail(t, g, with(c, p, `{"selectionIdx":0}`), gate.ErrExpired) // the token's deadline
	mustFinish(t, g, c, `"recovered"`)                                // the start ID has none
}

// R30, R39: what expired is marked and what ended long ago removed by sweeps that ride on requests;
// open interactions stay.
func TestSweep(t *testing.T) {
	var effects counter
	clock := newClock()
	g := open(t, newMem(), gate.Options{
		Tools: []*gate.Tool{deploy(&effects, nil), raw("waits", func(context.Context) (any, error) { return nil, choose("a", "b") }, nil)},
		Now:   clock.Now, Lifetime: time.Hour, Retention: 2 * time.Hour,
	})
	finished := call("deploy", `{"service":"api"}`)
	mustFinish(t, g, with(finished, mustAsk(t, g, finished), allow), `"deployed api"`)
	for range 40 { // more than a page
		mustAsk(t, g, call("deploy", `{"service":"api"}`))
	}
	clock.add(time.Hour)
	count := func(status checkpoint.Status) int {
		t.Helper()
		page, err := g.List(t.Context(), gate.ListQuery{AllScopes: true, Statuses: []checkpoint.Status{status}})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Interactions)
	}
	for range 8 {
		count(checkpoint.Open) // a sweep rides on each
	}
	if open, expired := count(checkpoint.Open), count(checkpoint.Expired); open != 0 || expired != 40 {
		t.Errorf("%d open, %d expired; want 0, 40", open, expired)
	}
	young := mustAsk(t, g, call("waits", `{}`))
	clock.add(59 * time.Minute)
	mustAsk(t, g, call("waits", `{}`))
	clock.add(2 * time.Hour)
	for range 8 {
		count(checkpoint.Open)
	}
	if n := count(checkpoint.Expired) + count(checkpoint.Finished); n != 2 { // young and its brother expired just now
		t.Errorf("%d ended interactions are kept, want 2", n)
	}
	if s, err := g.InspectID(t.Context(), "ann", young.Interaction); err != nil || s.Status != checkpoint.Expired {
		t.Errorf("young: %v, %v", s.Status, err)
	}
}

// R39: NoExpiry keeps what ended for ever, and a retention under a millisecond is one, not none.
func TestRetentionForEver(t *testing.T) {
	var effects counter
	for retention, kept := range map[time.Duration]bool{gate.NoExpiry: true, time.Microsecond: false} {
		clock := newClock()
		store := newMem()
		tools := []*gate.Tool{deploy(&effects, &gate.ToolOptions{KeepResult: true})}
		g := open(t, store, gate.Options{Tools: tools, Now: clock.Now, Retention: retention})
		c := call("deploy", `{"service":"api"}`)
		p := mustAsk(t, g, c)
		mustFinish(t, g, with(c, p, allow), `"deployed api"`)
		mustFinish(t, g, with(c, p, allow), `"deployed api"`) // not gone in the same moment
		clock.add(10_000 * time.Hour)
		for range 3 {
			mustAsk(t, g, c)
		}
		if _, err := store.Load(t.Context(), p.Interaction); (err == nil) != kept {
			t.Errorf("retention %v: %v", retention, err)
		}
	}
}
