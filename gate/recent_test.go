package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R14, R27: what a gate still has of what it wrote is what another gate reads, whatever the handler
// wrote: white space in its state and its result, and text that is not UTF-8.
func TestRecentIsWhatIsStored(t *testing.T) {
	var seen []string
	note := func(format string, args ...any) { seen = append(seen, fmt.Sprintf(format, args...)) }
	tool := gate.NewRawTool("t", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		resumed, _ := interrupt.ResumeFrom(ctx)
		for _, a := range resumed.Answers {
			payload := strings.ReplaceAll(string(a.Payload), a.InterruptID, "ID")
			note("state %s, answer %s %s", resumed.State, a.Action, payload)
		}
		for _, title := range []string{"First <a>", "Second \u2028"} {
			if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("t", title)); err != nil {
				return nil, interrupt.WithState(err, json.RawMessage(" { \"at\" : \"<"+title+">\" , \"n\":[ 1.50 ] }"))
			}
		}
		return json.RawMessage(" { \"done\" : true } "), nil
	}, &gate.ToolOptions{KeepResult: true})
	failing := gate.NewRawTool("failing", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("t", "Third")); err != nil {
			return nil, err
		}
		return nil, &interrupt.Failure{Text: "half a character: \xe2\x80", Link: "https://example.com/\xff"}
	}, nil)

	// walk goes through an interaction of each tool, each step by the gate that is next.
	walk := func(next func() host, inspect func(id checkpoint.ID) gate.Summary) {
		c := call("t", `{"b":1, "a":"\u2028"}`)
		first := mustAsk(t, next(), c)
		second := mustAsk(t, next(), with(c, first, allow))
		note("questions %s, %s", first.Questions[0].Body, second.Questions[0].Body)
		last := with(c, second, allow)
		for range 2 { // the second one is a replay, of the kept result
			outcome, err := next().Invoke(t.Context(), last)
			if err != nil {
				t.Fatal(err)
			}
			note("result %s", outcome.Result)
		}
		c = call("failing", `{}`)
		third := mustAsk(t, next(), c)
		mustFail(t, next(), with(c, third, allow), gate.ErrFailed)
		s := inspect(third.Interaction)
		note("%s %s %q %s", s.Status, s.Code, s.Message, s.Arguments)
	}
	tools := gate.Options{Tools: []*gate.Tool{tool, failing}}
	store := newMem()
	one, other := open(t, store, tools), open(t, store, tools)
	inspect := func(g *gate.Gate) func(id checkpoint.ID) gate.Summary {
		return func(id checkpoint.ID) gate.Summary {
			s, err := g.InspectID(t.Context(), "ann", id)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	walk(func() host { return one }, inspect(one))
	recent := seen
	seen = nil
	turn := 0
	walk(func() host { turn++; return []host{one, other}[turn%2] }, inspect(one))
	// A result is returned as the handler wrote it, and kept as it is recorded.
	if diff := cmp.Diff(seen, recent); diff != "" {
		t.Errorf("(-by the gate that did not write it +by the one that did):\n%s", diff)
	}
}

// R37: that a gate wrote a record is no reason to believe what is loaded: each plain field is
// compared, and so is the data.
func TestRecentIsNotBelieved(t *testing.T) {
	for name, spoil := range map[string]func(*checkpoint.Record){
		"revision": func(r *checkpoint.Record) { r.Revision++ },
		"status":   func(r *checkpoint.Record) { r.Status = checkpoint.Running },
		"scope":    func(r *checkpoint.Record) { r.Scope[0]++ },
		"start":    func(r *checkpoint.Record) { r.Start[0]++ },
		"due":      func(r *checkpoint.Record) { r.Due = r.Due.Add(time.Millisecond) },
		"owner":    func(r *checkpoint.Record) { r.Claim.Owner = "somebody" },
		"epoch":    func(r *checkpoint.Record) { r.Claim.Epoch++ },
		"attempt":  func(r *checkpoint.Record) { r.Claim.Attempt++ },
		"data":     func(r *checkpoint.Record) { r.Data[len(r.Data)-1] = ' ' },
	} {
		store := &spoiling{Store: newMem()}
		var effects counter
		g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
		c := call("deploy", `{"service":"api"}`)
		prompt := mustAsk(t, g, c)
		store.spoil = spoil
		outcome, err := g.Invoke(t.Context(), with(c, prompt, allow))
		if !errors.Is(err, gate.ErrUnavailable) {
			t.Errorf("%s: %+v, %v", name, outcome, err)
		}
		store.spoil = nil
		mustFinish(t, g, with(c, prompt, allow), `"deployed api"`)
		effects.want(t, 1)
	}
}

// A spoiling store loads records other than they are.
type spoiling struct {
	checkpoint.Store
	spoil func(*checkpoint.Record)
}

func (s *spoiling) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Record, error) {
	r, err := s.Store.Load(ctx, id)
	if s.spoil != nil && err == nil {
		s.spoil(&r)
	}
	return r, err
}

// More interactions than are kept decoded, and larger ones, are all answered.
func TestRecentIsBounded(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	var calls []gate.Call
	for i := range 1100 {
		c := call("deploy", fmt.Sprintf(`{"service":"s%d"}`, i))
		if i%100 == 0 {
			large, _ := json.Marshal(deployInput{Service: fmt.Sprintf("s%d-%020000d", i, i)})
			c = call("deploy", string(large))
		}
		calls = append(calls, with(c, mustAsk(t, g, c), allow))
	}
	for _, c := range calls {
		if _, err := g.Invoke(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	effects.want(t, len(calls))
}
