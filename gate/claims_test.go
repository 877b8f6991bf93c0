package gate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// slow asks, and after the answer waits in its handler until it may leave.
type slow struct {
	entered, cancelled, leave chan struct{}
	runs                      counter
}

func newSlow() *slow {
	return &slow{entered: make(chan struct{}, 1), cancelled: make(chan struct{}, 1), leave: make(chan struct{})}
}

func (s *slow) tool(opts *gate.ToolOptions) *gate.Tool {
	return raw("slow", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		s.runs.add()
		s.entered <- struct{}{}
		select {
		case <-s.leave:
			return "done", nil
		case <-ctx.Done():
			s.cancelled <- struct{}{}
			<-s.leave // a handler need not listen
			return nil, ctx.Err()
		}
	}, opts)
}

type ended struct {
	outcome gate.Outcome
	err     error
}

func invoke(f host, c gate.Call) chan ended {
	done := make(chan ended, 1)
	go func() {
		outcome, err := f.Invoke(context.Background(), c)
		leaks.outcome(outcome)
		leaks.text(err)
		done <- ended{outcome, err}
	}()
	return done
}

// R23: one transition at a time over the handler, at one gate and at two; a different answer
// meanwhile is a conflict.
func TestBusyWhileTheHandlerRuns(t *testing.T) {
	s := newSlow()
	store := newMem()
	tools := gate.Options{Tools: []*gate.Tool{s.tool(nil)}}
	g, other := open(t, store, tools), open(t, store, tools)
	c := call("slow", `{}`)
	p := mustAsk(t, g, c)
	answer := with(c, p, `{"selectionIdx":0}`)
	done := invoke(g, answer)
	<-s.entered
	for _, face := range []host{g, other} {
		mustFail(t, face, answer, gate.ErrBusy)
		mustFail(t, face, with(c, p, `{"selectionIdx":1}`), gate.ErrAnswerConflict)
		look := c
		look.Token = p.Token
		mustFail(t, face, look, gate.ErrBusy)
	}
	close(s.leave)
	if e := <-done; e.err != nil || string(e.outcome.Result) != `"done"` {
		t.Fatalf("%+v, %v", e.outcome, e.err)
	}
	mustFail(t, other, answer, gate.ErrAlreadyCompleted)
	s.runs.want(t, 1)
}

// R23: within a process the claim covers the authorization of the execution as well.
func TestBusyWhileAuthorizing(t *testing.T) {
	var effects counter
	entered, leave := make(chan struct{}), make(chan struct{})
	block := false
	g := openMem(t, deploy(&effects, &gate.ToolOptions{Authorize: func(_ context.Context, e gate.Execution) error {
		if e.Round == 1 && block {
			block = false
			close(entered)
			<-leave
		}
		return nil
	}}))
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	block = true
	done := invoke(g, with(c, p, allow))
	<-entered
	mustFail(t, g, with(c, p, allow), gate.ErrBusy)
	mustFail(t, g, with(c, p, reject), gate.ErrBusy)
	effects.want(t, 0)
	close(leave)
	if e := <-done; e.err != nil {
		t.Fatal(e.err)
	}
	effects.want(t, 1)
}

// R23, R28: of many different answers at once, to two gates, exactly one wins; the others are told
// so.
func TestRacingAnswers(t *testing.T) {
	for range 20 {
		var effects counter
		store := newMem()
		tools := gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}}
		gates := []*gate.Gate{open(t, store, tools), open(t, store, tools)}
		c := call("deploy", `{"service":"api"}`)
		p := mustAsk(t, gates[0], c)
		var wg sync.WaitGroup
		codes := make(chan error, 16)
		for i := range cap(codes) {
			wg.Go(func() {
				payload := []string{allow, reject}[i%2]
				_, err := gates[i/2%2].Invoke(context.Background(), with(c, p, payload))
				codes <- err
			})
		}
		wg.Wait()
		close(codes)
		won := 0
		for err := range codes {
			switch {
			case err == nil, errors.Is(err, gate.ErrRejected):
				won++
			case errors.Is(err, gate.ErrBusy), errors.Is(err, gate.ErrAnswerConflict), errors.Is(err, gate.ErrAlreadyCompleted):
			default:
				t.Errorf("a loser got %v", err)
			}
		}
		if won != 1 {
			t.Errorf("%d answers won", won)
		}
	}
}

// R23, R32: Close waits for handlers up to its context; then their contexts are cancelled, their
// claims are dead, another gate takes over as the tool chose, and what the former owner still
// writes is refused.
func TestStalledOwner(t *testing.T) {
	s := newSlow()
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{s.tool(nil)}})
	recovered := gate.Options{Tools: []*gate.Tool{raw("slow", func(ctx context.Context) (any, error) {
		if r, _ := interrupt.ResumeFrom(ctx); !r.Recovery || r.Attempt != 2 {
			t.Errorf("resumes %+v", r)
		}
		return "recovered", nil
	}, &gate.ToolOptions{Replay: gate.Recover, KeepResult: true})}}
	other := open(t, store, recovered)
	c := call("slow", `{}`)
	p := mustAsk(t, g, c)
	answer := with(c, p, `{"selectionIdx":0}`)
	done := invoke(g, answer)
	<-s.entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v", err)
	}
	<-s.cancelled
	mustFinish(t, other, answer, `"recovered"`)
	close(s.leave)
	wantCode(t, "the stalled owner", (<-done).err, gate.ErrOutcomeUnknown)
	mustFinish(t, other, answer, `"recovered"`) // its late write changed nothing
	record, err := store.Load(t.Context(), p.Interaction)
	if err != nil || record.Claim.Epoch != 2 || record.Claim.Owner != "" {
		t.Errorf("claim %+v, %v", record.Claim, err) // every claim has an epoch of its own
	}
}

// R32: from the beginning of Close on there are no new requests and no new prompts; running
// handlers are waited for.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan struct{}), make(chan struct{})
		store := memstore.New()
		g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
			close(entered)
			<-leave
			_, err := interrupt.Ask(ctx, choose("a", "b"))
			return nil, err
		}, nil)}})
		running := invoke(g, call("tool", `{}`))
		<-entered
		closed := make(chan error, 1)
		go func() { closed <- g.Close(context.Background()) }()
		synctest.Wait()
		mustFail(t, g, call("tool", `{}`), gate.ErrUnavailable)
		wantCode(t, "answer", g.Answer(t.Context(), gate.AnswerRequest{Scope: "ann"}), gate.ErrUnavailable)
		select {
		case <-closed:
			t.Fatal("Close did not wait")
		default:
		}
		close(leave)
		wantCode(t, "a prompt after Close began", (<-running).err, gate.ErrUnavailable)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if page, err := store.List(t.Context(), checkpoint.Query{}); err != nil || len(page.Records) != 0 {
			t.Errorf("stored: %v, %v", page, err)
		}
		if err := g.Close(t.Context()); err != nil { // twice is fine
			t.Error(err)
		}
	})
}

// R32: closing one face stops its prompts and leaves the others and direct calls alone.
func TestCloseFace(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	one, err := g.NewFace("one", nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := g.NewFace("two", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := call("deploy", `{"service":"api"}`)
	p1, p2 := mustAsk(t, one, c), mustAsk(t, two, c)
	if err := one.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustFail(t, one, with(c, p1, allow), gate.ErrUnavailable)
	mustFinish(t, two, with(c, p2, allow), `"deployed api"`)
	mustAsk(t, g, c)
	again, err := g.NewFace("one", nil) // reopened under its name: its tokens are good
	if err != nil {
		t.Fatal(err)
	}
	mustFinish(t, again, with(c, p1, allow), `"deployed api"`)
}

// R32: a gate opened read-only shows and confirms what is recorded, runs nothing and takes no new
// answer.
func TestReadOnly(t *testing.T) {
	var runs, effects counter
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{twoRounds(&runs, &effects, nil)}})
	reader := open(t, store, gate.Options{Tools: []*gate.Tool{twoRounds(&runs, &effects, nil)}, ReadOnly: true})
	c := call("tool", `{}`)
	p1 := mustAsk(t, g, c)
	first := with(c, p1, `{"selectionIdx":0}`)
	mustFail(t, reader, first, gate.ErrUnavailable)
	mustFail(t, reader, c, gate.ErrUnavailable)
	wantCode(t, "answer", reader.Answer(t.Context(), answers(p1, "ann", `{"selectionIdx":0}`)), gate.ErrUnavailable)
	p2 := mustAsk(t, g, first)
	if seen := mustAsk(t, reader, first); seen.Token != p2.Token {
		t.Error("the reader's token is another")
	}
	if err := reader.Answer(t.Context(), answers(p1, "ann", `{"selectionIdx":0}`)); err != nil {
		t.Errorf("a recorded answer is not confirmed: %v", err)
	}
	mustFail(t, reader, with(c, p1, `{"selectionIdx":1}`), gate.ErrAnswerConflict)
	mustFinish(t, g, with(c, p2, allow), `"done"`)
	mustFail(t, reader, with(c, p2, allow), gate.ErrAlreadyCompleted)
	if page, err := reader.List(t.Context(), gate.ListQuery{Scope: "ann", Statuses: []checkpoint.Status{checkpoint.Finished}}); err != nil || len(page.Interactions) != 1 {
		t.Errorf("%v, %v", page, err)
	}
	runs.want(t, 3)
}

// R24: the host's authorization comes first, on every request; the tool's, before anything is
// recorded.
func TestAuthorization(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	var host, tool error
	g := open(t, store, gate.Options{
		Authorize: func(context.Context, gate.Call) error { return host },
		Tools:     []*gate.Tool{deploy(&effects, &gate.ToolOptions{Authorize: func(context.Context, gate.Execution) error { return tool }})},
	})
	c := call("deploy", `{"service":"api"}`)
	host = errPrivate
	mustFail(t, g, c, gate.ErrUnauthorized)
	host, tool = nil, errPrivate
	mustFail(t, g, c, gate.ErrUnauthorized)
	tool = nil
	p := mustAsk(t, g, c)
	commits, loads := store.counts()
	host = errPrivate
	e := mustFail(t, g, with(c, p, allow), gate.ErrUnauthorized)
	if _, after := store.counts(); after != loads {
		t.Error("the store was touched before the host authorized")
	}
	if !errors.Is(e, errPrivate) || e.Error() != "unauthorized: the request is not authorized" {
		t.Errorf("text %q", e.Error())
	}
	host, tool = nil, errPrivate
	mustFail(t, g, with(c, p, allow), gate.ErrUnauthorized)
	if after, _ := store.counts(); after != commits {
		t.Error("something was recorded for an execution that is not authorized")
	}
	tool = choose("a", "b") // a callback cannot ask
	e = mustFail(t, g, with(c, p, allow), gate.ErrUnauthorized)
	var q interrupt.Interrupt
	if errors.As(e, &q) {
		t.Error("the callback's question can be found in the error")
	}
	tool = nil
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
	effects.want(t, 1)
}
