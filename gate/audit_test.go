package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// An observer keeps what it is told.
type observer struct {
	mu     sync.Mutex
	events []gate.Event
}

func (o *observer) Observe(_ context.Context, e gate.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
}

func trail(t *testing.T, f interface {
	Audit(ctx context.Context, q gate.AuditQuery) (gate.AuditPage, error)
}) []gate.AuditEntry {
	t.Helper()
	page, err := f.Audit(t.Context(), gate.AuditQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Entries {
		if e.Problem != nil {
			t.Errorf("entry %d: %v", e.Seq, e.Problem)
		}
	}
	return page.Entries
}

// line is an entry in short.
func line(e checkpoint.Entry) string {
	s := fmt.Sprintf("%s %v round %d attempt %d", e.Action, e.Status, e.Round, e.Attempt)
	for _, part := range []struct{ name, value string }{{"by", e.By}, {"face", e.Face}, {"code", e.Code}} {
		if part.value != "" {
			s += fmt.Sprintf(" %s %s", part.name, part.value)
		}
	}
	return s
}

// R38: every transition leaves one entry that says who did what, and the observer is told the same
// in the same order.
func TestEveryTransitionLeavesAnEntry(t *testing.T) {
	clock := newClock()
	seen := &observer{}
	fails := true
	tool := raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "Go on")); err != nil {
			return nil, err
		}
		if fails {
			return nil, errors.New("private cause")
		}
		return "done", nil
	}, &gate.ToolOptions{Replay: gate.Repeatable})
	g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{tool}, Now: clock.Now, Observer: seen, Retention: time.Hour})
	mcp, err := g.NewFace("mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	inbox, err := g.NewFace("inbox", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := call("tool", `{}`)
	c.StartID = "work"
	mustAsk(t, mcp, c)
	c.Session = "s2"
	p := mustAsk(t, mcp, c)
	if err := inbox.Answer(t.Context(), gate.AnswerRequest{
		Interaction: p.Interaction, Round: 1, Answers: answers(p, "ann", `{"selectionIdx":0}`).Answers, Scope: "ann", By: "ann@example.com",
	}); err != nil {
		t.Fatal(err)
	}
	p = mustAsk(t, mcp, c)
	mustFail(t, mcp, with(c, p, allow), gate.ErrFailed)
	fails = false
	mustFinish(t, mcp, with(c, p, allow), `"done"`)
	plain := mustAsk(t, g, call("tool", `{}`))
	clock.add(10 * time.Minute)
	mustFail(t, g, with(call("tool", `{}`), plain, `{"selectionIdx":0}`), gate.ErrExpired)
	clock.add(time.Hour)
	if err := g.Close(t.Context()); err != nil { // its sweep removes both
		t.Fatal(err)
	}

	var got []string
	var entries []checkpoint.Entry
	for _, e := range seen.events {
		got = append(got, line(e.Entry))
		entries = append(entries, e.Entry)
	}
	want := []string{
		"started started round 0 attempt 1 face mcp",
		"asked open round 1 attempt 0 face mcp",
		"rejoined open round 1 attempt 0 face mcp",
		"answered answered round 1 attempt 0 by ann@example.com face inbox",
		"claimed running round 1 attempt 1 face mcp",
		"asked open round 2 attempt 0 face mcp",
		"answered running round 2 attempt 1 face mcp",
		"ended failed round 2 attempt 1 face mcp code failed",
		"recovered running round 2 attempt 2 face mcp",
		"ended finished round 2 attempt 2 face mcp",
		"asked open round 1 attempt 0",
		"expired expired round 1 attempt 0",
		"removed tombstone round 2 attempt 2",
		"removed expired round 0 attempt 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	for i, e := range entries {
		if e.Tool != "tool" || e.Scope.IsZero() || e.Time.IsZero() || e.Interaction.IsZero() {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	first := seen.events[1]
	if first.Scope != "ann" || !cmp.Equal(first.Questions, []string{"user_selection"}) || !first.Deadline.Equal(first.Asked.Add(10*time.Minute)) {
		t.Errorf("asked: %+v", first)
	}
}

// R38: an event says which state was left, so that a host can count what is open and time attempts
// without keeping anything of its own.
func TestEventsSayWhatWasLeft(t *testing.T) {
	clock := newClock()
	seen := &observer{}
	works := raw("works", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		clock.add(5 * time.Second)
		return "done", nil
	}, nil)
	g := open(t, blindMem(), gate.Options{Tools: []*gate.Tool{works}, Now: clock.Now, Observer: seen, Retention: time.Hour})
	c := call("works", `{}`)
	c.StartID = "work"
	mustAsk(t, g, c)
	clock.add(time.Second)
	c.Session = "s2"
	p := mustAsk(t, g, c)
	clock.add(time.Minute)
	mustAnswer(t, g, p, `{"selectionIdx":0}`)
	clock.add(time.Minute)
	mustFinish(t, g, c, `"done"`)
	fresh := call("works", `{}`)
	answered := mustAsk(t, g, fresh)
	mustAnswer(t, g, answered, `{"selectionIdx":0}`)
	unanswered := mustAsk(t, g, fresh)
	clock.add(10 * time.Minute)
	for _, p := range []*gate.Prompt{answered, unanswered} {
		mustFail(t, g, with(fresh, p, `{"selectionIdx":0}`), gate.ErrExpired)
	}
	var got []string
	for _, e := range seen.events {
		left := "nothing"
		if e.Before != 0 {
			left = fmt.Sprintf("%v after %v", e.Before, e.Entry.Time.Sub(e.Since))
		}
		got = append(got, fmt.Sprintf("%s: %s", e.Entry.Action, left))
		if e.Since.IsZero() != (e.Before == 0) {
			t.Errorf("%s: since %v", e.Entry.Action, e.Since)
		}
	}
	want := []string{
		"started: nothing",
		"asked: started after 0s",
		"rejoined: open after 1s",
		"answered: open after 1m0s",
		"claimed: answered after 1m0s",
		"ended: running after 5s",
		"asked: nothing",
		"answered: open after 0s",
		"asked: nothing",
		"expired: answered after 10m0s",
		"expired: open after 10m0s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// R38: the trail is a stream that a host pages through, and holds nothing of what was said.
func TestTrailIsAStream(t *testing.T) {
	var effects counter
	seen := &observer{}
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Observer: seen})
	var next uint64
	var got []checkpoint.Entry
	read := func(limit int) int {
		t.Helper()
		page, err := g.Audit(t.Context(), gate.AuditQuery{After: next, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			got = append(got, e.Entry)
		}
		next = page.Next
		return len(page.Entries)
	}
	if read(10) != 0 {
		t.Error("an empty trail has entries")
	}
	var tokens []string
	for range 5 {
		c := call("deploy", `{"service":"secret service"}`)
		p := mustAsk(t, g, c)
		tokens = append(tokens, string(p.Token))
		read(1)
		mustFinish(t, g, with(c, p, allow), `"deployed secret service"`)
	}
	for read(2) > 0 {
	}
	var told []checkpoint.Entry
	for _, e := range seen.events {
		told = append(told, e.Entry)
	}
	if diff := cmp.Diff(told, got); diff != "" || len(got) != 15 {
		t.Errorf("%d entries; told and trail differ (-told +trail):\n%s", len(got), diff)
	}
	entries, err := store.Audit(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		for _, secret := range append(tokens, "secret service", "allow_once", "ann") {
			if strings.Contains(string(e.Data), secret) {
				t.Errorf("entry %s holds %.20q", e.Data, secret)
			}
		}
	}
	_, err = g.Audit(t.Context(), gate.AuditQuery{Limit: -1})
	wantCode(t, "audit", err, gate.ErrInvalidArguments)
}

// R38, R39: entries go after their own retention, the oldest first and in small steps, not with
// their interaction.
func TestTrailIsTrimmed(t *testing.T) {
	var effects counter
	clock := newClock()
	g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now, AuditRetention: 48 * time.Hour})
	c := call("deploy", `{"service":"api"}`)
	for range 150 {
		mustFinish(t, g, with(c, mustAsk(t, g, c), allow), `"deployed api"`)
	}
	clock.add(time.Hour)
	mustFinish(t, g, with(c, mustAsk(t, g, c), allow), `"deployed api"`)
	all := trail(t, g)
	if len(all) != 453 {
		t.Fatalf("%d entries", len(all))
	}
	clock.add(47 * time.Hour)
	for range 10 {
		mustFail(t, g, call("deploy", `{}`), gate.ErrInvalidArguments)
		mustAsk(t, g, c)
	}
	left := trail(t, g)
	if len(left) == 0 || left[0].Seq != all[450].Seq {
		t.Errorf("the oldest is %d, want %d", left[0].Seq, all[450].Seq)
	}
	for i := 1; i < len(left); i++ {
		if left[i].Seq != left[i-1].Seq+1 {
			t.Errorf("after %d comes %d", left[i-1].Seq, left[i].Seq)
		}
	}
}

// R36: an observer's panic changes nothing. What it does not know is not told twice: an entry whose
// commit was refused is none.
func TestObserverPanics(t *testing.T) {
	var effects counter
	g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Observer: panicking{}})
	c := call("deploy", `{"service":"api"}`)
	mustFinish(t, g, with(c, mustAsk(t, g, c), allow), `"deployed api"`)
	if n := len(trail(t, g)); n != 3 {
		t.Errorf("%d entries", n)
	}
}

type panicking struct{}

func (panicking) Observe(context.Context, gate.Event) { panic("observer") }

// R25, R38: a commit that failed tells nobody; one that landed unseen is told once.
func TestObserverAndUnknownCommits(t *testing.T) {
	var effects counter
	seen := &observer{}
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Observer: seen})
	c := call("deploy", `{"service":"api"}`)
	store.fault = func(*checkpoint.Batch) (before, after error) { return errInjected, nil }
	mustFail(t, g, c, gate.ErrUnavailable)
	if len(seen.events) != 0 {
		t.Errorf("told %v", seen.events)
	}
	store.fault = func(*checkpoint.Batch) (before, after error) { return nil, errInjected }
	p := mustAsk(t, g, c)
	store.fault = nil
	if len(seen.events) != 1 || seen.events[0].Entry.Interaction != p.Interaction {
		t.Errorf("told %v", seen.events)
	}
	if n := len(trail(t, g)); n != 1 {
		t.Errorf("%d entries", n)
	}
}

// R3: an observer is no part of the handler's run: it is given nothing to ask, report or record
// with.
func TestObserverIsOutsideTheRun(t *testing.T) {
	told := 0
	tool := raw("tool", func(ctx context.Context) (any, error) {
		return interrupt.Once(ctx, "s", func(context.Context, string) (string, error) { return "x", nil }, nil)
	}, nil)
	g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{tool}, Observer: observing(func(ctx context.Context, _ gate.Event) {
		told++
		if _, ok := interrupt.ResumeFrom(ctx); ok {
			t.Error("it has the handler's resume")
		}
		if err := interrupt.Progress(ctx, interrupt.Update{}); !errors.Is(err, interrupt.ErrNoRun) {
			t.Errorf("progress: %v", err)
		}
	})})
	mustFinish(t, g, call("tool", `{}`), `"x"`)
	if told == 0 {
		t.Error("told nothing")
	}
}

type observing func(ctx context.Context, e gate.Event)

func (o observing) Observe(ctx context.Context, e gate.Event) { o(ctx, e) }

// R38: an entry of a newer release, which cannot be read here, is not trimmed before its time.
func TestUnreadableEntriesAreKept(t *testing.T) {
	var effects counter
	clock := newClock()
	store := newMem()
	if err := store.Commit(t.Context(), &checkpoint.Batch{Audit: [][]byte{[]byte(`{"v":99}`)}}); err != nil {
		t.Fatal(err)
	}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now, AuditRetention: time.Hour})
	mustAsk(t, g, call("deploy", `{"service":"api"}`))
	first := func() uint64 {
		t.Helper()
		entries, err := store.Audit(t.Context(), 0, 1)
		if err != nil || len(entries) == 0 {
			t.Fatal(entries, err)
		}
		return entries[0].Seq
	}
	mustAsk(t, g, call("deploy", `{"service":"api"}`))
	if first() != 1 {
		t.Error("trimmed")
	}
	clock.add(2 * time.Hour)
	mustAsk(t, g, call("deploy", `{"service":"api"}`))
	if first() == 1 {
		t.Error("kept after what came behind it")
	}
}

// R38: of two gates that write the same transition at the same moment, one does, and one tells.
func TestOneGateTells(t *testing.T) {
	var effects counter
	var events observer
	clock := newClock()
	store := blindMem()
	opts := gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now, Observer: &events}
	g, other := open(t, store, opts), open(t, store, opts)
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	clock.add(10 * time.Minute)
	store.set(func(*checkpoint.Batch) (before, after error) {
		store.set(nil)
		mustFail(t, other, with(c, p, allow), gate.ErrExpired)
		return nil, nil
	})
	mustFail(t, g, with(c, p, allow), gate.ErrExpired)
	var told []string
	for _, e := range events.events {
		told = append(told, line(e.Entry))
	}
	want := []string{"asked open round 1 attempt 0", "expired expired round 1 attempt 0"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +have):\n%s", diff)
	}
}
