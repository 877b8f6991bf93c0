package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R24, R28, R14: what an answerer can bring that names nothing.
func TestAnswererNamesNothing(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	for _, round := range []int{-1, 0, 2} {
		a := answers(p, "ann", allow)
		a.Round = round
		wantCode(t, "round", g.Answer(t.Context(), a), gate.ErrInvalidContinuation)
	}
	store.failLoads(errInjected)
	wantCode(t, "store down", g.Answer(t.Context(), answers(p, "ann", allow)), gate.ErrUnavailable)
	store.failLoads(nil)
	a := answers(p, strings.Repeat("x", 2000), allow)
	a.By = "ann"
	wantCode(t, "scope too long", g.Answer(t.Context(), a), gate.ErrTooLarge)
	mustAnswer(t, g, p, allow)
	c.Token = p.Token
	mustFinish(t, g, c, `"deployed api"`)

	p = mustAsk(t, g, call("deploy", `{"service":"db"}`))
	rewrite(t, store, p.Interaction, func(in *checkpoint.Interaction) { in.Rounds[0].Questions[0].Type = "nobody_knows_me" })
	e := wantCode(t, "unknown type", g.Answer(t.Context(), answers(p, "ann", allow)), gate.ErrRevisionChanged)
	if !e.StillOpen {
		t.Error("the question is not open")
	}
}

// R17, R28: a question is kept open only while it is: a round that was answered is answered, also
// while a later one is open.
func TestKeepOpenOfAnEarlierRound(t *testing.T) {
	var runs, effects counter
	g := openMem(t, twoRounds(&runs, &effects, &gate.ToolOptions{KeepOpen: true}))
	c := call("tool", `{}`)
	p1 := mustAsk(t, g, c)
	mustAsk(t, g, with(c, p1, `{"selectionIdx":0}`))
	mustFail(t, g, with(c, p1, `{"action":"decline"}`), gate.ErrAnswerConflict)
	wantCode(t, "from elsewhere", g.Answer(t.Context(), answers(p1, "ann", `{"action":"cancel"}`)), gate.ErrAnswerConflict)
	if e := mustFail(t, g, with(c, p1, `{"selectionIdx":7}`), gate.ErrInvalidAnswer); e.StillOpen {
		t.Error("an answered question is told to be open")
	}
}

// R24: who answered, when and through which face is recorded.
func TestWhoAnswered(t *testing.T) {
	var effects counter
	clock := newClock()
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now})
	face, err := g.NewFace("mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := call("deploy", `{"service":"api"}`)
	for elsewhere, by := range map[bool]string{false: "", true: "ann@example.com"} {
		p := mustAsk(t, face, c)
		asked := clock.Now()
		clock.add(time.Minute)
		if elsewhere {
			mustAnswer(t, face, p, allow)
		} else {
			mustFinish(t, face, with(c, p, allow), `"deployed api"`)
		}
		in := recorded(t, store, p.Interaction)
		a := in.Rounds[0].Answer
		if !a.Time.Equal(clock.Now()) || !in.Rounds[0].Asked.Equal(asked) || a.Face != "mcp" || a.Elsewhere != elsewhere || a.By != by || !in.Created.Equal(asked) {
			t.Errorf("recorded %+v, created %v", a, in.Created)
		}
	}
}

// R30: where the first prompt waits for ever, a later one can still be short.
func TestLaterPromptIsShorterThanForEver(t *testing.T) {
	clock := newClock()
	store := newMem()
	var during *checkpoint.Interaction
	g := open(t, store, gate.Options{Now: clock.Now, Lifetime: gate.NoExpiry, Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		page, err := store.List(ctx, checkpoint.Query{Statuses: []checkpoint.Status{checkpoint.Running}})
		if err == nil && len(page.Records) == 1 {
			during, err = checkpoint.Decode(page.Records[0])
		}
		if err != nil {
			return nil, err
		}
		q := choose("c", "d")
		q.Lifetime = time.Minute
		_, err = interrupt.Ask(ctx, q)
		return nil, err
	}, nil)}})
	c := call("tool", `{}`)
	first := with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)
	p2 := mustAsk(t, g, first)
	if !p2.Expires.Equal(clock.Now().Add(time.Minute)) {
		t.Errorf("expires %v", p2.Expires)
	}
	// X2: without a lifetime a claim is looked at after ten minutes.
	if during == nil || !during.Due.Equal(clock.Now().Add(10*time.Minute)) {
		t.Errorf("claimed %+v", during)
	}
	clock.add(time.Minute)
	mustFail(t, g, with(c, p2, `{"selectionIdx":0}`), gate.ErrExpired)
}

// R7, R14: a sweep looks at 16 records, goes on where it stopped, and comes past those that cannot
// be read. A gate that only reads does not sweep.
func TestSweepGoesOn(t *testing.T) {
	var effects counter
	clock := newClock()
	store := newMem()
	opts := gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now}
	g := open(t, store, opts)
	for i := range 40 {
		p := mustAsk(t, g, call("deploy", `{"service":"api"}`))
		clock.add(time.Millisecond)
		if i >= 20 {
			continue
		}
		record, err := store.Load(t.Context(), p.Interaction)
		if err != nil {
			t.Fatal(err)
		}
		record.Revision++
		record.Data = []byte(`{"v":99}`)
		if err := store.Commit(t.Context(), &checkpoint.Batch{Puts: []checkpoint.Put{{Record: record}}}); err != nil {
			t.Fatal(err)
		}
	}
	expired := func(g *gate.Gate) int {
		t.Helper()
		if _, err := g.List(t.Context(), gate.ListQuery{Scope: "ann"}); err != nil { // which sweeps
			t.Fatal(err)
		}
		page, err := store.List(t.Context(), checkpoint.Query{Statuses: []checkpoint.Status{checkpoint.Expired}})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Records)
	}
	clock.add(time.Hour)
	opts.ReadOnly = true
	reads := open(t, store, opts)
	for range 3 {
		if n := expired(reads); n != 0 {
			t.Errorf("a gate that only reads marked %d", n)
		}
	}
	for _, want := range []int{0, 12, 20} {
		if n := expired(g); n != want {
			t.Errorf("%d are marked, want %d", n, want)
		}
	}
}

// R27, R34: a result is JSON, and kept up to its limit; an outcome names its interaction where
// there is one, and an error too.
func TestOutcomes(t *testing.T) {
	result := json.RawMessage(`"12345678"`)
	fails, asks := false, true
	store := newMem()
	g := open(t, store, gate.Options{Limits: gate.Limits{Result: len(result)}, Tools: []*gate.Tool{
		gate.NewRawTool("tool", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			if asks {
				if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
					return nil, err
				}
			}
			if fails {
				return nil, &interrupt.Failure{Text: "no disk", Link: "https://example.com/disk", Err: errPrivate}
			}
			return result, nil
		}, &gate.ToolOptions{KeepResult: true}),
	}})
	c := call("tool", `{}`)
	run := func(kept bool) {
		t.Helper()
		p := mustAsk(t, g, c)
		answer := with(c, p, `{"selectionIdx":0}`)
		outcome, err := g.Invoke(t.Context(), answer)
		if err != nil || outcome.Interaction != p.Interaction {
			t.Fatalf("%+v, %v", outcome, err)
		}
		again, err := g.Invoke(t.Context(), answer)
		if kept && (err != nil || again.Interaction != p.Interaction || string(again.Result) != string(result)) {
			t.Errorf("again %+v, %v", again, err)
		}
		if !kept && !errors.Is(err, gate.ErrAlreadyCompleted) {
			t.Errorf("again %+v, %v", again, err)
		}
	}
	run(true)
	result = json.RawMessage(`"123456789"`)
	run(false)
	result = json.RawMessage(`not JSON`)
	mustFail(t, g, with(c, mustAsk(t, g, c), `{"selectionIdx":0}`), gate.ErrFailed)

	fails = true
	p := mustAsk(t, g, c)
	e := mustFail(t, g, with(c, p, `{"selectionIdx":0}`), gate.ErrFailed)
	if in := recorded(t, store, p.Interaction); e.Interaction != p.Interaction || in.Ending.Message != "no disk" || in.Ending.Link != e.Link {
		t.Errorf("%+v, recorded %+v", e, in.Ending)
	}
	asks = false
	if e := mustFail(t, g, c, gate.ErrFailed); !e.Interaction.IsZero() {
		t.Errorf("names %v, which is not recorded", e.Interaction)
	}
	fails, result = false, nil
	if outcome, err := g.Invoke(t.Context(), c); err != nil || !outcome.Interaction.IsZero() || string(outcome.Result) != "null" {
		t.Errorf("%+v, %v", outcome, err)
	}
}
