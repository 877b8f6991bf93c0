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

// recorded reads the record of an interaction.
func recorded(t *testing.T, store checkpoint.Store, id checkpoint.ID) *checkpoint.Interaction {
	t.Helper()
	record, err := store.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	in, err := checkpoint.Decode(record)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// rewrite replaces the record by one that was changed behind the gate's back.
func rewrite(t *testing.T, store checkpoint.Store, id checkpoint.ID, change func(*checkpoint.Interaction)) {
	t.Helper()
	in := recorded(t, store, id)
	epoch := in.Claim.Epoch
	in.Revision++
	change(in)
	record, err := checkpoint.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	batch := &checkpoint.Batch{Puts: []checkpoint.Put{{Record: record, Epoch: epoch}}}
	if err := store.Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
}

// What a row of docs/transitions.md commits (R23): the state, the claim, and when to look again.
func TestWhatRowsCommit(t *testing.T) {
	var effects counter
	clock := newClock()
	store := &faulty{Store: newMem()}
	var g *gate.Gate
	var during *checkpoint.Interaction // the record while the handler runs
	fails := true
	tool := raw("tool", func(ctx context.Context) (any, error) {
		page, err := store.List(ctx, checkpoint.Query{Statuses: []checkpoint.Status{checkpoint.Started, checkpoint.Running}})
		if err != nil || len(page.Records) != 1 {
			return nil, errors.Join(err, errors.New("no record of this run"))
		}
		if during, err = checkpoint.Decode(page.Records[0]); err != nil {
			return nil, err
		}
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		if _, err := interrupt.Ask(ctx, choose("c", "d")); err != nil {
			return nil, err
		}
		if fails {
			return nil, errPrivate
		}
		effects.add()
		return "done", nil
	}, &gate.ToolOptions{Replay: gate.Repeatable, Revision: "7"})
	g = open(t, store, gate.Options{Tools: []*gate.Tool{tool}, Now: clock.Now, Lifetime: time.Hour, Retention: 3 * time.Hour})
	owner := store.member.Owner()
	want := func(row string, in *checkpoint.Interaction, status checkpoint.Status, revision uint64, claim checkpoint.Claim, due time.Time) {
		t.Helper()
		if in.Status != status || in.Revision != revision || in.Claim != claim || !in.Due.Equal(due) || !in.Updated.Equal(clock.Now()) {
			t.Errorf("%s: status %v, revision %d, claim %+v, due %v, updated %v; want %v, %d, %+v, %v, %v",
				row, in.Status, in.Revision, in.Claim, in.Due, in.Updated, status, revision, claim, due, clock.Now())
		}
	}
	claim := func(owner string, epoch uint64, attempt uint32) checkpoint.Claim {
		return checkpoint.Claim{Owner: owner, Epoch: epoch, Attempt: attempt}
	}
	c := call("tool", `{}`)
	c.StartID = "work"
	began := clock.Now()
	deadline := began.Add(time.Hour)
	p1 := mustAsk(t, g, c)
	id := p1.Interaction
	want("F2", during, checkpoint.Started, 1, claim(owner, 1, 1), deadline)
	want("H1", recorded(t, store, id), checkpoint.Open, 2, claim("", 1, 0), deadline)

	clock.add(time.Minute)
	mustAnswer(t, g, p1, `{"selectionIdx":0}`)
	want("N3", recorded(t, store, id), checkpoint.Answered, 3, claim("", 1, 0), deadline)
	clock.add(time.Minute)
	mustAsk(t, g, c)
	want("N2", during, checkpoint.Running, 4, claim(owner, 2, 1), clock.Now().Add(time.Hour))
	want("H1", recorded(t, store, id), checkpoint.Open, 5, claim("", 2, 0), deadline)

	moved := c
	moved.Session = "s2"
	p2 := mustAsk(t, g, moved)
	want("P1m", recorded(t, store, id), checkpoint.Open, 6, claim("", 2, 0), deadline)

	clock.add(time.Minute)
	answer := with(moved, p2, `{"selectionIdx":0}`)
	mustFail(t, g, answer, gate.ErrFailed)
	want("N1", during, checkpoint.Running, 7, claim(owner, 3, 1), clock.Now().Add(time.Hour))
	want("H4", recorded(t, store, id), checkpoint.Failed, 8, claim("", 3, 1), clock.Now().Add(3*time.Hour))

	fails = false
	mustFinish(t, g, answer, `"done"`)
	want("A2", during, checkpoint.Running, 9, claim(owner, 4, 2), clock.Now().Add(time.Hour))
	in := recorded(t, store, id)
	want("H2", in, checkpoint.Finished, 10, claim("", 4, 2), clock.Now().Add(3*time.Hour))
	if !in.Created.Equal(began) || in.ToolRevision != "7" || in.Ending.Code != "" || !in.Ending.Time.Equal(clock.Now()) {
		t.Errorf("finished: %+v", in)
	}
	effects.want(t, 1)
}

// R30, X1: what a request finds overdue it marks, whichever way it came; a read-only gate does not.
func TestOverdueOnEveryAccess(t *testing.T) {
	late := map[string]func(g *gate.Gate, c gate.Call, p *gate.Prompt) error{
		"token": func(g *gate.Gate, c gate.Call, p *gate.Prompt) error {
			c.Token = p.Token
			_, err := g.Invoke(context.Background(), c)
			return err
		},
		"answer": func(g *gate.Gate, c gate.Call, p *gate.Prompt) error {
			_, err := g.Invoke(context.Background(), with(c, p, allow))
			return err
		},
		"start id": func(g *gate.Gate, c gate.Call, _ *gate.Prompt) error {
			_, err := g.Invoke(context.Background(), c)
			return err
		},
		"from elsewhere": func(g *gate.Gate, _ gate.Call, p *gate.Prompt) error {
			return g.Answer(context.Background(), answers(p, "ann", allow))
		},
	}
	for name, access := range late {
		for _, readOnly := range []bool{false, true} {
			for _, answered := range []bool{false, true} {
				var effects counter
				clock := newClock()
				store := blindMem()
				opts := gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now}
				g := open(t, store, opts)
				c := call("deploy", `{"service":"api"}`)
				c.StartID = "work"
				p := mustAsk(t, g, c)
				want := checkpoint.Open
				if answered {
					mustAnswer(t, g, p, allow)
					want = checkpoint.Answered
				}
				clock.add(10 * time.Minute)
				opts.ReadOnly = readOnly
				if s, err := open(t, store, opts).Inspect(t.Context(), "ann", "work"); err != nil || s.Status != checkpoint.Expired || s.GoesOn {
					t.Errorf("%s: inspected %+v, %v", name, s, err)
				}
				err := access(open(t, store, opts), c, p)
				e := wantCode(t, name, err, gate.ErrExpired)
				if !strings.Contains(e.Message, "own key") {
					t.Errorf("%s: the message does not say where to look: %v", name, e)
				}
				if !readOnly {
					want = checkpoint.Expired
				}
				if have := recorded(t, store, p.Interaction).Status; have != want {
					t.Errorf("%s, read-only %v, answered %v: recorded %v, want %v", name, readOnly, answered, have, want)
				}
				effects.want(t, 0)
			}
		}
	}
}

// X2, X3: a sweep leaves a held claim alone, here and at another gate, and marks a dead one
// abandoned; R27 goes on from there.
func TestSweepsOfClaims(t *testing.T) {
	s := newSlow()
	clock := newClock()
	store := &faulty{Store: newMem()}
	opts := gate.Options{Tools: []*gate.Tool{s.tool(&gate.ToolOptions{Replay: gate.Repeatable})}, Now: clock.Now}
	other := open(t, store, opts)
	g := open(t, store, opts) // the one that dies
	c := call("slow", `{}`)
	p := mustAsk(t, g, c)
	done := invoke(g, with(c, p, `{"selectionIdx":0}`))
	<-s.entered
	clock.add(time.Hour)
	look := func() *checkpoint.Interaction {
		t.Helper()
		for _, each := range []*gate.Gate{g, other} {
			if _, err := each.List(t.Context(), gate.ListQuery{Scope: "ann"}); err != nil {
				t.Fatal(err)
			}
		}
		return recorded(t, store, p.Interaction)
	}
	if in := look(); in.Status != checkpoint.Running || in.Claim.Owner == "" {
		t.Errorf("a held claim was swept: %v", in.Status)
	}
	store.crash()
	in := look()
	if in.Status != checkpoint.Abandoned || in.Claim != (checkpoint.Claim{Epoch: 2, Attempt: 1}) || !in.Due.Equal(clock.Now().Add(24*time.Hour)) {
		t.Errorf("a dead claim: %v, %+v, due %v", in.Status, in.Claim, in.Due)
	}
	close(s.leave)
	wantCode(t, "the dead one", (<-done).err, gate.ErrOutcomeUnknown)
}

// X4, R39, R31: an ended interaction is removed after retention; one with a start ID stays, so that
// the work is not begun anew.
func TestSweepsOfEnded(t *testing.T) {
	var effects counter
	clock := newClock()
	store := newMem()
	opts := gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now, Retention: time.Hour}
	g := open(t, store, opts)
	plain := call("deploy", `{"service":"api"}`)
	started := plain
	started.StartID = "work"
	p := mustAsk(t, g, plain)
	mustFinish(t, g, with(plain, p, allow), `"deployed api"`)
	mustFinish(t, g, with(started, mustAsk(t, g, started), allow), `"deployed api"`)
	exists := func(want bool) {
		t.Helper()
		if _, err := store.Load(t.Context(), p.Interaction); (err == nil) != want {
			t.Errorf("%v", err)
		}
	}
	clock.add(time.Hour - time.Millisecond)
	mustAsk(t, g, plain)
	exists(true)
	clock.add(time.Millisecond)
	if err := g.Close(t.Context()); err != nil { // R7: a sweep rides on Close, too
		t.Fatal(err)
	}
	exists(false)
	g = open(t, store, opts)
	clock.add(700 * time.Hour)
	mustAsk(t, g, plain)
	mustFail(t, g, started, gate.ErrAlreadyCompleted)
	effects.want(t, 2)
}

// R21, R22: after a rejoin took a later round over, no token of the former session or face leads
// anywhere, whatever the state.
func TestTakeoverHolds(t *testing.T) {
	var runs, effects counter
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{twoRounds(&runs, &effects, &gate.ToolOptions{KeepResult: true})}})
	face, err := g.NewFace("mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := call("tool", `{}`)
	for name, take := range map[string]func(gate.Call) (host, gate.Call){
		"session": func(c gate.Call) (host, gate.Call) { c.Session = "s2"; return g, c },
		"face":    func(c gate.Call) (host, gate.Call) { return face, c },
	} {
		c.StartID = name
		p1 := mustAsk(t, g, c)
		first := with(c, p1, `{"selectionIdx":0}`)
		mustAsk(t, g, first)
		taker, taken := take(c)
		p2 := mustAsk(t, taker, taken)
		mustFail(t, g, first, gate.ErrInvalidContinuation) // open
		mustAnswer(t, g, p2, allow)
		mustFail(t, g, first, gate.ErrInvalidContinuation) // answered
		mustFinish(t, taker, with(taken, p2, allow), `"done"`)
		mustFail(t, g, first, gate.ErrInvalidContinuation) // finished
		mustFinish(t, taker, with(taken, p2, allow), `"done"`)
	}
}

// R21: everything that a prompt shows and is matched by is in its digest.
func TestPromptDigestCovers(t *testing.T) {
	for name, change := range map[string]func(q *checkpoint.Question, in *checkpoint.Interaction){
		"revision": func(_ *checkpoint.Question, in *checkpoint.Interaction) { in.ToolRevision = "8" },
		"id":       func(q *checkpoint.Question, _ *checkpoint.Interaction) { q.ID += "0" },
		"type":     func(q *checkpoint.Question, _ *checkpoint.Interaction) { q.Type = "url" },
		"key":      func(q *checkpoint.Question, _ *checkpoint.Interaction) { q.Key = "k" },
		"digest":   func(q *checkpoint.Question, _ *checkpoint.Interaction) { q.Digest[0]++ },
		"body":     func(q *checkpoint.Question, _ *checkpoint.Interaction) { q.Body = json.RawMessage(`{"options":[]}`) },
		"arguments": func(_ *checkpoint.Question, in *checkpoint.Interaction) {
			in.Arguments = json.RawMessage(`{"service":"db"}`)
		},
		"count":           func(_ *checkpoint.Question, in *checkpoint.Interaction) { in.Rounds[0].Mint.Count++ },
		"key of the mint": func(_ *checkpoint.Question, in *checkpoint.Interaction) { in.Rounds[0].Mint.Key = "other" },
	} {
		var effects counter
		store := newMem()
		g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{Revision: "7", FormerRevisions: []string{"8"}})}})
		c := call("deploy", `{"service":"api"}`)
		p := mustAsk(t, g, c)
		rewrite(t, store, p.Interaction, func(in *checkpoint.Interaction) { change(&in.Rounds[0].Questions[0], in) })
		t.Log(name)
		mustFail(t, g, with(c, p, allow), gate.ErrInvalidContinuation)
		if name == "arguments" {
			other := with(c, p, allow)
			other.Arguments = json.RawMessage(`{"service":"db"}`)
			mustFail(t, g, other, gate.ErrInvalidContinuation)
		}
		effects.want(t, 0)
	}
}

// R23, R25: of two gates that commit the same answer at the same moment one runs the handler; the
// other's write was not this one.
func TestForeignWriteIsNotOurs(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	opts := gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}}
	other := open(t, store, opts)
	g := open(t, store, opts)
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	answer := with(c, p, allow)
	first := true
	store.set(func(b *checkpoint.Batch) (before, after error) {
		if first && writes(b, checkpoint.Running) {
			first = false // the other gate is in between, whole
			mustFinish(t, other, answer, `"deployed api"`)
		}
		return nil, nil
	})
	mustFail(t, g, answer, gate.ErrAlreadyCompleted)
	effects.want(t, 1)
}

// R24, N6: a request that lost against another write starts over, and finds what it left.
func TestConflictStartsOver(t *testing.T) {
	for name, request := range map[string]func(g *gate.Gate, c gate.Call, p *gate.Prompt) error{
		"invoke": func(g *gate.Gate, c gate.Call, p *gate.Prompt) error {
			_, err := g.Invoke(context.Background(), with(c, p, allow))
			return err
		},
		"answer": func(g *gate.Gate, _ gate.Call, p *gate.Prompt) error {
			return g.Answer(context.Background(), answers(p, "ann", allow))
		},
	} {
		for times, want := range map[int]gate.Code{1: "", 100: gate.ErrBusy} {
			var effects counter
			store := &faulty{Store: newMem()}
			g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
			c := call("deploy", `{"service":"api"}`)
			p := mustAsk(t, g, c)
			lost := 0
			store.set(func(b *checkpoint.Batch) (before, after error) {
				if lost++; lost > times {
					return nil, nil
				}
				return &checkpoint.ConflictError{ID: p.Interaction}, nil
			})
			err := request(g, c, p)
			if want == "" && err != nil || want != "" && !errors.Is(err, want) {
				t.Errorf("%s after %d conflicts: %v", name, times, err)
			}
		}
	}
}

// R25: the caller's cancellation breaks off the handler, and nothing that is being recorded.
func TestCancelledCaller(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	store.set(func(*checkpoint.Batch) (before, after error) { cancel(); return nil, nil })
	outcome, err := g.Invoke(ctx, with(c, p, allow))
	if err != nil || string(outcome.Result) != `"deployed api"` {
		t.Errorf("%+v, %v", outcome, err)
	}
	if in := recorded(t, store, p.Interaction); in.Status != checkpoint.Finished {
		t.Errorf("recorded %v", in.Status)
	}
}
