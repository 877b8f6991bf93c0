package gate_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// What a ledger keeps of decisions beside themselves: its trail, its seals, its room.

// R19, R38: what becomes of decisions is in the trail and told to the observer, in the commit of
// the answer that brought it about; a round that they answered is told as such.
func TestTrailOfDecisions(t *testing.T) {
	var effects counter
	clock, seen := newClock(), &observer{}
	g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{remembering(&effects, nil)}, Now: clock.Now, Observer: seen, Retention: 1000 * time.Hour})
	face, err := g.NewFace("inbox", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := call("deploy", `{"service":"api"}`)
	p1, p2, p3 := mustAsk(t, g, c), mustAsk(t, g, c), mustAsk(t, g, c)
	mustAnswer(t, face, p1, allowAlways)
	allowance := decisions(t, g, "ann", 1)[0].ID
	c.StartID = "work"
	mustFinish(t, g, c, `"deployed api"`)
	mustAnswer(t, face, p2, rejectAlways)
	rejection := decisions(t, g, "ann", 1)[0].ID
	mustAnswer(t, face, p3, allowAlways)
	clock.add(24 * time.Hour)
	decisions(t, g, "ann", 0) // sweeps
	fresh := call("deploy", `{"service":"api"}`)
	mustAnswer(t, face, mustAsk(t, g, fresh), rejectAlways)
	last := decisions(t, g, "ann", 1)[0].ID
	if err := face.Revoke(t.Context(), "ann", last); err != nil {
		t.Fatal(err)
	}
	type entry struct {
		id         checkpoint.ID
		line, tool string
		remembered bool
	}
	var have []entry
	for _, e := range seen.events {
		if e.Entry.Status == checkpoint.Remembered || e.Entry.Remembered {
			have = append(have, entry{e.Entry.Interaction, line(e.Entry), e.Entry.Tool, e.Entry.Remembered})
		}
	}
	s, err := g.Inspect(t.Context(), "ann", "work")
	if err != nil {
		t.Fatal(err)
	}
	const kept = "remembered remembered round 0 attempt 0 by ann@example.com face inbox"
	want := []entry{
		{allowance, kept, "deploy", false},
		{s.ID, "answered running round 1 attempt 1 by ann@example.com", "deploy", true},
		{allowance, "removed remembered round 0 attempt 0 face inbox", "deploy", false},
		{rejection, kept, "deploy", false},
		{rejection, "removed remembered round 0 attempt 0", "deploy", false},
		{last, kept, "deploy", false},
		{last, "revoked remembered round 0 attempt 0 face inbox", "deploy", false},
	}
	if diff := cmp.Diff(want, have, cmp.AllowUnexported(entry{})); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
	var entries []checkpoint.Entry
	for _, e := range trail(t, g) {
		entries = append(entries, e.Entry)
	}
	told := map[checkpoint.Entry]int{}
	for _, e := range seen.events {
		told[e.Entry]++
	}
	for _, e := range entries {
		if told[e]--; told[e] < 0 {
			t.Errorf("in the trail and not told: %+v", e)
		}
	}
	if len(entries) != len(seen.events) {
		t.Errorf("%d entries, %d events", len(entries), len(seen.events))
	}
}

// R19, R37: decisions are sealed as everything is, are sealed anew with everything, and open in no
// other place.
func TestSealedDecisions(t *testing.T) {
	var effects counter
	store := newMem()
	opts := gate.Options{Tools: []*gate.Tool{remembering(&effects, nil)}, DataKeys: [][]byte{dataKey}}
	g := open(t, store, opts)
	c, other := call("deploy", `{"service":"secret-argument"}`), call("deploy", `{"service":"another"}`)
	mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways), `"deployed secret-argument"`)
	mustFail(t, g, with(other, mustAsk(t, g, other), rejectAlways), gate.ErrRejected)
	mustFinish(t, g, c, `"deployed secret-argument"`)
	all, _ := everythingStored(t, store)
	if bytes.Contains(all, []byte("secret-argument")) || bytes.Contains(all, []byte("allow_always")) {
		t.Error("a decision is in plain text")
	}
	ids := map[string]checkpoint.ID{}
	for _, d := range decisions(t, g, "ann", 2) {
		ids[d.Kind] = d.ID
	}

	report, err := gate.Reencrypt(t.Context(), store, &gate.ReencryptOptions{DataKeys: [][]byte{newDataKey, dataKey}})
	if err != nil || report.Unread != 0 || report.Left != 0 || report.Current != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	if d := decisions(t, g, "ann", 2)[0]; d.Problem == nil {
		t.Error("a gate without the new key reads it")
	}
	opts.DataKeys = [][]byte{newDataKey}
	g = open(t, store, opts)
	mustFinish(t, g, c, `"deployed secret-argument"`)
	mustFail(t, g, other, gate.ErrRejected)

	// Whoever can write the store puts the allowance where the rejection is.
	allowance, err := store.Load(t.Context(), ids["allow_always"])
	if err != nil {
		t.Fatal(err)
	}
	rejection, err := store.Load(t.Context(), ids["reject_always"])
	if err != nil {
		t.Fatal(err)
	}
	rejection.Revision++
	rejection.Data = allowance.Data
	if err := store.Commit(t.Context(), &checkpoint.Batch{Puts: []checkpoint.Put{{Record: rejection}}}); err != nil {
		t.Fatal(err)
	}
	mustAsk(t, g, other) // it answers nothing
}

// R19, R37: nor does an allowance that was put where another question looks, in plain text.
func TestMovedDecision(t *testing.T) {
	var effects counter
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{remembering(&effects, nil)}})
	c, other := call("deploy", `{"service":"api"}`), call("deploy", `{"service":"another"}`)
	mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways), `"deployed api"`)
	mustFail(t, g, with(other, mustAsk(t, g, other), rejectAlways), gate.ErrRejected)
	var batch checkpoint.Batch
	all := map[string]checkpoint.Record{}
	for _, d := range decisions(t, g, "ann", 2) {
		record, err := store.Load(t.Context(), d.ID)
		if err != nil {
			t.Fatal(err)
		}
		all[d.Kind] = record
	}
	moved, gone := all["allow_always"], all["reject_always"]
	moved.Start, gone.Start = gone.Start, moved.Start
	moved.Revision++
	gone.Revision++
	batch.Puts = []checkpoint.Put{{Record: moved}, {Record: gone}}
	if err := store.Commit(t.Context(), &batch); err != nil {
		t.Fatal(err)
	}
	mustAsk(t, g, other)
	mustAsk(t, g, c)
}

// R33: a round that decisions answer needs room for the prompt that may follow; where there is none
// the prompt is shown, for which there is. What is reserved is given back.
func TestRememberedRoundNeedsRoom(t *testing.T) {
	for name, test := range map[string]struct {
		bytes int64
		asks  bool
	}{"no room": {0, true}, "room": {15_000, false}} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			store := newMem()
			tools := []*gate.Tool{remembering(&effects, nil)}
			c := call("deploy", `{"service":"api"}`)
			plenty := open(t, store, gate.Options{Tools: tools})
			mustFinish(t, plenty, with(c, mustAsk(t, plenty, c), allowAlways), `"deployed api"`)
			stored, err := store.Usage(t.Context(), checkpoint.Hash{})
			if err != nil {
				t.Fatal(err)
			}
			g := open(t, store, gate.Options{
				Tools: tools, Limits: gate.Limits{Prompt: 10_000, State: 5_000},
				Capacity: gate.Capacity{Bytes: stored.Bytes + 15_000 + checkpoint.Charge + 1_000 + test.bytes},
			})
			if test.asks {
				mustAsk(t, g, c)
				return
			}
			mustFinish(t, g, c, `"deployed api"`)
			c.Scope = "bob"
			mustAsk(t, g, c)
		})
	}
}

// R33: a decision takes room, like the answer that it comes with.
func TestDecisionNeedsRoom(t *testing.T) {
	var effects counter
	store := newMem()
	tools := []*gate.Tool{remembering(&effects, nil)}
	for arguments, room := range map[string]int64{`{"service":"api"}`: 500, fmt.Sprintf(`{"service":"%02000d"}`, 1): 2_000} {
		p := mustAsk(t, open(t, store, gate.Options{Tools: tools}), call("deploy", arguments))
		stored, err := store.Usage(t.Context(), checkpoint.Hash{})
		if err != nil {
			t.Fatal(err)
		}
		g := open(t, store, gate.Options{
			Tools: tools, Limits: gate.Limits{Prompt: 100, State: 1}, Capacity: gate.Capacity{Bytes: stored.Bytes + room},
		})
		if e := wantCode(t, "elsewhere", g.Answer(t.Context(), answers(p, "ann", allowAlways)), gate.ErrBusy); !e.StillOpen {
			t.Errorf("error %+v", e)
		}
		decisions(t, g, "ann", 0)
		mustAnswer(t, g, p, allow)
	}
}

// R33: an interaction that such a round creates is counted once.
func TestRememberedInteractionIsCountedOnce(t *testing.T) {
	var effects counter
	store := newMem()
	tools := []*gate.Tool{permit("tool", &effects, nil, keyed("a", "tool", ""), keyed("b", "tool", ""))}
	plenty := open(t, store, gate.Options{Tools: tools})
	c := call("tool", `{}`)
	mustFinish(t, plenty, with(c, mustAsk(t, plenty, with(c, mustAsk(t, plenty, c), allowAlways)), allowAlways), `"done"`)
	g := open(t, store, gate.Options{Tools: tools, Capacity: gate.Capacity{OpenPerScope: 1}})
	mustFinish(t, g, c, `"done"`)
	effects.want(t, 2)
}

// R35: where decisions answer in between, the runs of one call are one sequence to its host: no
// step back, and the interval holds over them.
func TestProgressOverRememberedRounds(t *testing.T) {
	clock := newClock()
	var pause time.Duration
	g := open(t, newMem(), gate.Options{Now: clock.Now, Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		for _, completed := range []float64{1, 2} {
			if err := progress(ctx, completed); err != nil {
				return nil, err
			}
			clock.add(pause)
		}
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "")); err != nil {
			return nil, err
		}
		clock.add(pause)
		return "done", progress(ctx, 3)
	}, &gate.ToolOptions{Remember: &gate.RememberOptions{}})}})
	c := call("tool", `{}`)
	mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways), `"done"`)
	for _, test := range []struct {
		pause time.Duration
		want  []float64
	}{{time.Second, []float64{1, 2, 2, 3}}, {0, []float64{1}}} {
		l := listen(nil)
		pause = test.pause
		clock.add(time.Hour)
		mustFinish(t, g, heardBy(l, "tool"), `"done"`)
		l.want(t, test.want...)
		l.wantInvalid(t)
	}
}

// R31: a call that may join goes on by itself where decisions answer, and leaves nothing to join.
func TestJoinAndRememberedRounds(t *testing.T) {
	var effects counter
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "")); err != nil {
			return nil, err
		}
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		effects.add()
		return "done", nil
	}, &gate.ToolOptions{Remember: &gate.RememberOptions{}})}})
	c := call("tool", `{}`)
	mustAsk(t, g, with(c, mustAsk(t, g, c), allowAlways))
	c.Join = true
	p := mustAsk(t, g, c)
	if p.Round != 2 {
		t.Fatalf("shown %+v", p)
	}
	if joined := mustAsk(t, g, c); joined.Interaction != p.Interaction || joined.Token != p.Token {
		t.Errorf("shown %+v", joined)
	}
	mustFinish(t, g, with(c, p, `{"selectionIdx":0}`), `"done"`)
	effects.want(t, 1)
}
