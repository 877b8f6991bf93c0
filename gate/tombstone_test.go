package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R31, R39: a start ID stays used well past retention, whatever became of its work; what was said
// does not stay. T1 has the codes.
func TestTombstones(t *testing.T) {
	for name, tc := range map[string]struct {
		end    func(t *testing.T, g *gate.Gate, c gate.Call, p *gate.Prompt)
		replay gate.Replay
		code   gate.Code
		ended  gate.Code
	}{
		"finished": {end: func(t *testing.T, g *gate.Gate, c gate.Call, p *gate.Prompt) {
			mustFinish(t, g, with(c, p, allow), `"deployed api"`)
		}, code: gate.ErrAlreadyCompleted},
		"finished, could recover": {end: func(t *testing.T, g *gate.Gate, c gate.Call, p *gate.Prompt) {
			mustFinish(t, g, with(c, p, allow), `"deployed api"`)
		}, replay: gate.Recover, code: gate.ErrAlreadyCompleted},
		"rejected": {end: func(t *testing.T, g *gate.Gate, c gate.Call, p *gate.Prompt) {
			mustFail(t, g, with(c, p, reject), gate.ErrRejected)
		}, code: gate.ErrAlreadyCompleted, ended: gate.ErrRejected},
		"expired": {end: func(*testing.T, *gate.Gate, gate.Call, *gate.Prompt) {}, code: gate.ErrExpired},
		"failed": {end: func(t *testing.T, g *gate.Gate, c gate.Call, p *gate.Prompt) {
			mustFail(t, g, with(c, p, `{"optionId":"broken"}`), gate.ErrFailed)
		}, replay: gate.Repeatable, code: gate.ErrOutcomeUnknown, ended: gate.ErrFailed},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			store := newMem()
			tool := raw("deploy", func(ctx context.Context) (any, error) {
				q := interrupt.ToolPermission("deploy", "Deploy the secret api")
				q.Options = append(interrupt.DefaultPermissionOptions(),
					interrupt.PermissionOption{OptionID: "broken", Name: "Break", Kind: interrupt.PermissionAllowOnce})
				p, err := interrupt.Ask(ctx, q)
				if err != nil {
					return nil, err
				}
				if p.SelectedOptionID == "broken" {
					return nil, errors.New("broken")
				}
				return "deployed api", nil
			}, &gate.ToolOptions{Replay: tc.replay})
			g := open(t, store, gate.Options{Tools: []*gate.Tool{tool}, Now: clock.Now, Retention: time.Hour, StartRetention: 100 * time.Hour})
			c := call("deploy", `{"service":"api"}`)
			c.StartID = "work"
			p := mustAsk(t, g, c)
			tc.end(t, g, c, p)
			sweep := func() {
				for range 3 {
					mustAsk(t, g, call("deploy", `{}`))
				}
			}
			clock.add(11 * time.Minute)
			sweep() // marks what expired
			clock.add(time.Hour)
			sweep()
			in := recorded(t, store, p.Interaction)
			if in.Status != checkpoint.Tombstone || in.Arguments != nil || in.Rounds != nil {
				t.Fatalf("left: %+v", in)
			}
			if e := mustFail(t, g, c, tc.code); e.Ended != tc.ended || e.Interaction != p.Interaction {
				t.Errorf("error %+v", e)
			}
			mustFail(t, g, with(c, p, allow), gate.ErrInvalidContinuation)
			other := c
			other.Arguments = json.RawMessage(`{"service":"db"}`)
			mustFail(t, g, other, gate.ErrStartConflict)
			s, err := g.Inspect(t.Context(), "ann", "work")
			if err != nil || s.Status != checkpoint.Tombstone || s.Code != tc.ended || s.GoesOn || s.Problem != nil {
				t.Errorf("inspect: %+v, %v", s, err)
			}
			clock.add(100*time.Hour - time.Millisecond)
			sweep()
			mustFail(t, g, c, tc.code)
			clock.add(time.Millisecond)
			sweep() // X5
			mustAsk(t, g, c)
		})
	}
}

// R31: a start ID can stay used for ever.
func TestTombstoneForEver(t *testing.T) {
	var effects counter
	clock := newClock()
	g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now, StartRetention: gate.NoExpiry})
	c := call("deploy", `{"service":"api"}`)
	c.StartID = "work"
	mustFinish(t, g, with(c, mustAsk(t, g, c), allow), `"deployed api"`)
	for range 5 {
		clock.add(10_000 * time.Hour)
		mustAsk(t, g, call("deploy", `{"service":"db"}`))
	}
	mustFail(t, g, c, gate.ErrAlreadyCompleted)
	effects.want(t, 1)
}

// R14, R37, R39, X6: what cannot be read still expires, by its plain fields, and its start ID stays
// used. A claim of another gate that is alive keeps it.
func TestUnreadableStillExpires(t *testing.T) {
	var effects counter
	for name, startID := range map[string]string{"with a start id": "work", "without": ""} {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			store := newMem()
			seen := &observer{}
			g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now, Retention: time.Hour, Observer: seen})
			c := call("deploy", `{"service":"api"}`)
			c.StartID = startID
			p := mustAsk(t, g, c)
			spoil(t, store, p.Interaction)
			exists := func(want bool) {
				t.Helper()
				mustAsk(t, g, call("deploy", `{"service":"db"}`))
				record, err := store.Load(t.Context(), p.Interaction)
				if here := err == nil && record.Status != checkpoint.Tombstone; here != want {
					t.Errorf("here: %v (%v, %v), want %v", here, record.Status, err, want)
				}
			}
			if s, err := g.InspectID(t.Context(), "ann", p.Interaction); err != nil || s.Problem == nil {
				t.Errorf("inspect: %+v, %v", s, err)
			}
			clock.add(70*time.Minute - time.Millisecond)
			exists(true)
			clock.add(time.Millisecond)
			exists(false)
			if !slices.ContainsFunc(seen.events, func(e gate.Event) bool {
				return e.Entry.Interaction == p.Interaction && e.Entry.Action == checkpoint.ActionRemoved && e.Before == checkpoint.Open
			}) {
				t.Errorf("nobody is told that an open question is gone: %+v", seen.events)
			}
			if startID != "" {
				mustFail(t, g, c, gate.ErrOutcomeUnknown)
			}
		})
	}
}

// spoil makes a record unreadable and leaves its plain fields.
func spoil(t *testing.T, store checkpoint.Store, id checkpoint.ID) {
	t.Helper()
	record, err := store.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	record.Revision++
	record.Data = []byte(`{"v":99}`)
	batch := &checkpoint.Batch{Puts: []checkpoint.Put{{Record: record, Epoch: record.Claim.Epoch}}}
	if err := store.Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
}

// R4, R27, R39: a step that is done is not done again when its record is past retention and the
// same start ID comes again: tombstone and rows are one commit (X4).
func TestStepsAfterRetention(t *testing.T) {
	for _, replay := range []gate.Replay{gate.Repeatable, gate.Recover} {
		t.Run(fmt.Sprint(replay), func(t *testing.T) {
			var effects counter
			clock := newClock()
			fails := true
			store := newMem()
			g := open(t, store, gate.Options{Now: clock.Now, Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
				for i := range 250 { // more than a page
					if _, err := interrupt.Once(ctx, fmt.Sprint(i), effect(&effects, "x", nil), nil); err != nil {
						return nil, err
					}
				}
				if fails {
					return nil, errors.New("later trouble")
				}
				return "done", nil
			}, &gate.ToolOptions{Replay: replay})}})
			e := mustFail(t, g, starting(), gate.ErrFailed)
			fails = false
			clock.add(25 * time.Hour)
			mustFail(t, g, starting(), gate.ErrOutcomeUnknown)
			effects.want(t, 250)
			rows, err := store.Rows(t.Context(), e.Interaction, "", 1)
			if err != nil || len(rows) != 0 {
				t.Errorf("left under the tombstone: %d rows, %v", len(rows), err)
			}
		})
	}
}

// R14, R39: rows that cannot be read do not keep their record for ever.
func TestDamagedRowsGo(t *testing.T) {
	var effects counter
	clock := newClock()
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Now: clock.Now, Tools: []*gate.Tool{deploy(&effects, nil), raw("tool", func(ctx context.Context) (any, error) {
		return interrupt.Once(ctx, "s", effect(&effects, "x", nil), nil)
	}, nil)}, StartRetention: 48 * time.Hour})
	outcome, err := g.Invoke(t.Context(), starting())
	if err != nil {
		t.Fatal(err)
	}
	store.rowsFault = errInjected
	clock.add(25 * time.Hour)
	mustAsk(t, g, call("deploy", `{"service":"api"}`))
	if in := recorded(t, store, outcome.Interaction); in.Status != checkpoint.Tombstone {
		t.Errorf("still %v", in.Status)
	}
	store.rowsFault = checkpoint.ErrUnavailable
	clock.add(49 * time.Hour)
	for range 3 {
		mustAsk(t, g, call("deploy", `{"service":"api"}`))
	}
	if _, err := store.Load(t.Context(), outcome.Interaction); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("still there: %v", err)
	}
}

// R31, X6: what cannot be read takes its join hash for a start ID when it goes, and joins nobody.
func TestUnreadableIsNotJoined(t *testing.T) {
	var effects counter
	clock := newClock()
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock.Now, Retention: time.Hour})
	c := joining("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	spoil(t, store, p.Interaction)
	clock.add(3 * time.Hour)
	mustAsk(t, g, call("deploy", `{"service":"db"}`)) // X6
	q := mustAsk(t, g, c)
	mustFinish(t, g, with(c, q, allow), `"deployed api"`)
}
