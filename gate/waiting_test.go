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
	"github.com/parley-go/parley/interrupt"
)

func wait(g *gate.Gate, c gate.Call) chan ended {
	done := make(chan ended, 1)
	go func() {
		outcome, err := g.Wait(context.Background(), c)
		done <- ended{outcome, err}
	}()
	return done
}

// R23, R24: who waits while the handler runs is not busy but waits, and gets what comes of it.
func TestWaitWhileTheHandlerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		g := open(t, memstore.New(), gate.Options{Tools: []*gate.Tool{s.tool(&gate.ToolOptions{KeepResult: true})}})
		c := call("slow", `{}`)
		answer := with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)
		done := invoke(g, answer)
		<-s.entered
		c.Token = answer.Token
		waiting := wait(g, c)
		synctest.Wait()
		close(s.leave)
		<-done
		if w := <-waiting; w.err != nil || string(w.outcome.Result) != `"done"` {
			t.Errorf("%+v", w)
		}
		s.runs.want(t, 1)
	})
}

// R31: who waits by start ID from before the first prompt waits for its answer.
func TestWaitFromBeforeTheFirstPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan struct{}, 2), make(chan struct{})
		g := open(t, memstore.New(), gate.Options{Lifetime: gate.NoExpiry, Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
			entered <- struct{}{}
			<-leave
			if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
				return nil, err
			}
			return "done", nil
		}, nil)}})
		c := call("tool", `{}`)
		c.StartID = "work"
		done := invoke(g, c)
		<-entered
		waiting := wait(g, c)
		synctest.Wait()
		close(leave)
		first := <-done
		if first.err != nil {
			t.Fatal(first.err)
		}
		synctest.Wait()
		mustAnswer(t, g, first.outcome.Prompt, `{"selectionIdx":0}`)
		if w := <-waiting; w.err != nil || string(w.outcome.Result) != `"done"` {
			t.Errorf("%+v", w)
		}
	})
}

// A closed gate shows nothing more, on any road (R32, S1).
func TestClosedGateShowsNothing(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	c := call("deploy", `{"service":"api"}`)
	c.StartID = "work"
	p := mustAsk(t, g, c)
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, list := g.List(t.Context(), gate.ListQuery{Scope: "ann"})
	_, byStart := g.Inspect(t.Context(), "ann", "work")
	_, byID := g.InspectID(t.Context(), "ann", p.Interaction)
	_, wait := g.Wait(t.Context(), c)
	for what, err := range map[string]error{"list": list, "inspect": byStart, "inspect by id": byID, "wait": wait} {
		wantCode(t, what, err, gate.ErrUnavailable)
	}
}

// V1, V2: what lists and inspections refuse, and say of a store that does not serve.
func TestLookingAtNothing(t *testing.T) {
	var effects counter
	store := &unlisted{faulty: &faulty{Store: newMem()}}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	long := string(make([]byte, 2000))
	for what, test := range map[string]struct {
		look func() error
		want gate.Code
	}{
		"list, long scope":       {func() error { _, err := g.List(t.Context(), gate.ListQuery{Scope: long}); return err }, gate.ErrTooLarge},
		"list, negative limit":   {func() error { _, err := g.List(t.Context(), gate.ListQuery{Scope: "ann", Limit: -1}); return err }, gate.ErrInvalidArguments},
		"inspect, long scope":    {func() error { _, err := g.Inspect(t.Context(), long, "work"); return err }, gate.ErrTooLarge},
		"inspect, long start id": {func() error { _, err := g.Inspect(t.Context(), "ann", long); return err }, gate.ErrTooLarge},
		"inspect, no start id":   {func() error { _, err := g.Inspect(t.Context(), "ann", ""); return err }, gate.ErrStartUnknown},
		"list, store down": {func() error {
			store.fault = errInjected
			_, err := g.List(t.Context(), gate.ListQuery{Scope: "ann"})
			return err
		}, gate.ErrUnavailable},
		"inspect, store down": {func() error {
			store.failLoads(errInjected)
			_, err := g.InspectID(t.Context(), "ann", checkpoint.ID{1})
			return err
		}, gate.ErrUnavailable},
	} {
		e := wantCode(t, what, test.look(), test.want)
		if test.want == gate.ErrUnavailable && !errors.Is(e, errInjected) {
			t.Errorf("%s: the host is not told why: %v", what, errors.Unwrap(e))
		}
		store.fault = nil
		store.failLoads(nil)
	}
}

// An unlisted store lists nothing, where it is told so.
type unlisted struct {
	*faulty
	fault error
}

func (u *unlisted) List(ctx context.Context, q checkpoint.Query) (checkpoint.Page, error) {
	if u.fault != nil {
		return checkpoint.Page{}, u.fault
	}
	return u.faulty.List(ctx, q)
}

// V1, V2: a summary says where the interaction stands and how it ended, and a list holds what is
// not ended where nothing else is asked for.
func TestSummary(t *testing.T) {
	clock := newClock()
	store := newMem()
	tool := func(opts gate.ToolOptions) *gate.Tool {
		return raw("tool", func(ctx context.Context) (any, error) {
			if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
				return nil, err
			}
			return nil, &interrupt.Failure{Text: "no disk", Err: errPrivate}
		}, &opts)
	}
	at := func(tools ...*gate.Tool) *gate.Gate {
		return open(t, store, gate.Options{Tools: tools, Now: clock.Now})
	}
	g := at(tool(gate.ToolOptions{Replay: gate.Repeatable}))
	c := call("tool", `{}`)
	created := clock.Now()
	p := mustAsk(t, g, c)
	clock.add(1000000)
	answer := with(c, p, `{"selectionIdx":0}`)
	for range 2 {
		mustFail(t, g, answer, gate.ErrFailed)
	}
	for name, test := range map[string]struct {
		g      *gate.Gate
		goesOn bool
	}{
		"repeatable":         {g, true},
		"recover":            {at(tool(gate.ToolOptions{Replay: gate.Recover})), true},
		"never again":        {at(tool(gate.ToolOptions{})), false},
		"another revision":   {at(tool(gate.ToolOptions{Replay: gate.Repeatable, Revision: "2"})), false},
		"the tool is gone":   {at(), false},
		"repeatable, as was": {at(tool(gate.ToolOptions{Replay: gate.Repeatable, Revision: "2", FormerRevisions: []string{""}})), true},
	} {
		s, err := test.g.InspectID(t.Context(), "ann", p.Interaction)
		if err != nil || s.ID != p.Interaction || s.Status != checkpoint.Failed || s.Tool != "tool" || !s.Created.Equal(created) ||
			!s.Updated.Equal(clock.Now()) || s.Attempts != 2 || s.Code != gate.ErrFailed || s.Message != "no disk" || s.GoesOn != test.goesOn {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if page, err := test.g.List(t.Context(), gate.ListQuery{Scope: "ann"}); err != nil || len(page.Interactions) != 0 {
			t.Errorf("%s: listed %+v, %v", name, page, err)
		}
	}
	// It would meet the same end again.
	for _, code := range []gate.Code{gate.ErrInteractionLimit, gate.ErrExpired} {
		rewrite(t, store, p.Interaction, func(in *checkpoint.Interaction) { in.Ending.Code = string(code) })
		if s, err := g.InspectID(t.Context(), "ann", p.Interaction); err != nil || s.GoesOn || s.Code != code {
			t.Errorf("%s: %+v, %v", code, s, err)
		}
	}
}

// R32: Close waits for every running handler, and not for those that only wait.
func TestCloseWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan struct{}, 2), make(chan struct{})
		g := open(t, memstore.New(), gate.Options{
			PollInterval: time.Hour, Lifetime: gate.NoExpiry,
			Tools: []*gate.Tool{raw("tool", func(context.Context) (any, error) {
				entered <- struct{}{}
				<-leave
				return "done", nil
			}, nil), raw("asks", func(context.Context) (any, error) { return nil, choose("a", "b") }, nil)},
		})
		first, second := invoke(g, call("tool", `{}`)), invoke(g, call("tool", `{}`))
		<-entered
		<-entered
		c := call("asks", `{}`)
		c.Token = mustAsk(t, g, c).Token
		waiting := wait(g, c)
		synctest.Wait()
		began := time.Now()
		closed := make(chan error, 1)
		go func() { closed <- g.Close(context.Background()) }()
		wantCode(t, "who waits", (<-waiting).err, gate.ErrUnavailable)
		leave <- struct{}{}
		synctest.Wait()
		select {
		case err := <-closed:
			t.Errorf("closed although a handler runs: %v", err)
		default:
		}
		leave <- struct{}{}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		for _, done := range []chan ended{first, second} {
			if d := <-done; d.err != nil {
				t.Error(d.err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// Wait returns the context's own error when that ends first.
func TestWaitIsBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, memstore.New(), gate.Options{Tools: []*gate.Tool{raw("asks", func(context.Context) (any, error) { return nil, choose("a", "b") }, nil)}})
		c := call("asks", `{}`)
		c.Token = mustAsk(t, g, c).Token
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := g.Wait(ctx, c)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; err != context.Canceled {
			t.Errorf("%v", err)
		}
	})
}

// R24: who waits for several interactions hears of the one that is answered, also by another process.
func TestWatch(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		tool := func() []*gate.Tool {
			return []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
				_, err := interrupt.Ask(ctx, choose("a", "b"))
				return "done", err
			}, nil)}
		}
		here := open(t, process(), gate.Options{Tools: tool()})
		there := open(t, process(), gate.Options{Tools: tool()})
		first, second := mustAsk(t, here, call("tool", `{}`)), mustAsk(t, here, call("tool", `{}`))
		changed, stop := here.Watch(first.Interaction, second.Interaction)
		defer stop()
		select {
		case <-changed:
			t.Error("it changed before it was answered")
		default:
		}
		mustAnswer(t, there, second, `{"selectionIdx":0}`)
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Error("nobody tells that it was answered")
		}
	})
}
