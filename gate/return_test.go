package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

func giveBack(id, payload string) gate.Return {
	return gate.Return{InterruptID: id, Payload: json.RawMessage(payload), Scope: "ann", By: "ann@example.com"}
}

// R24: a question is answered by its id, by the same road as any answer from elsewhere.
func TestReturnInterrupt(t *testing.T) {
	var effects counter
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	id := p.Questions[0].ID
	e := wantCode(t, "an unfit answer", g.ReturnInterrupt(t.Context(), giveBack(id, `{"optionId":"perhaps"}`)), gate.ErrInvalidAnswer)
	if !e.StillOpen || e.Question != id || e.Path != "/optionId" {
		t.Errorf("%+v", e)
	}
	stranger := giveBack(id, allow)
	stranger.Scope = "bob"
	wantCode(t, "a stranger", g.ReturnInterrupt(t.Context(), stranger), gate.ErrUnauthorized)
	stranger.Scope = ""
	wantCode(t, "nobody", g.ReturnInterrupt(t.Context(), stranger), gate.ErrUnauthorized)
	for range 2 { // N4: the same again is confirmed
		if err := g.ReturnInterrupt(t.Context(), giveBack(id, allow)); err != nil {
			t.Fatal(err)
		}
	}
	if a := recorded(t, store, p.Interaction).Rounds[0].Answer; a.By != "ann@example.com" || !a.Elsewhere {
		t.Errorf("recorded %+v", a)
	}
	wantCode(t, "another answer", g.ReturnInterrupt(t.Context(), giveBack(id, reject)), gate.ErrAnswerConflict)
	effects.want(t, 0)
	c.Token = p.Token
	mustFinish(t, g, c, `"deployed api"`)
}

// R36: an id that no question has is a question that is not found, however alike it is to one.
func TestReturnToNoQuestion(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	p := mustAsk(t, g, call("deploy", `{"service":"api"}`))
	id := p.Questions[0].ID
	hex := p.Interaction.String()
	for _, bad := range []string{
		"", ".", "..", "x", hex, hex + ".1", hex + ".1.2", hex + ".1.0", hex + ".1.01", hex + ".01.1", hex + ".+1.1", hex + ".0.1", hex + ".-1.1",
		hex + ".2.1", hex + ".1.1.1", hex + ".1.1 ", " " + id, strings.ToUpper(hex) + ".1.1", hex[1:] + ".1.1",
		checkpoint.ID{1}.String() + ".1.1", hex + ".99999999999999999999.1", hex + ".1.",
	} {
		if bad == id {
			continue // without a letter in it, upper case is the same
		}
		err := g.ReturnInterrupt(t.Context(), giveBack(bad, allow))
		wantCode(t, bad, err, gate.ErrInvalidContinuation)
		if !errors.Is(err, interrupt.ErrInterruptNotFound) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	effects.want(t, 0)
	if err := g.ReturnInterrupt(t.Context(), giveBack(id, allow)); err != nil {
		t.Error(err)
	}
}

// R18: one answer to one of several questions names the missing one, and records nothing.
func TestReturnOneOfSeveral(t *testing.T) {
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
		_, err := interrupt.AskAll(ctx, choose("a", "b"), choose("c", "d"))
		return nil, err
	}, nil)}})
	p := mustAsk(t, g, call("tool", `{}`))
	for i, missing := range []int{1, 0} {
		err := g.ReturnInterrupt(t.Context(), giveBack(p.Questions[i].ID, `{"selectionIdx":0}`))
		if e := wantCode(t, "one of two", err, gate.ErrInvalidAnswer); e.Question != p.Questions[missing].ID || !e.StillOpen {
			t.Errorf("%+v", e)
		}
	}
	if in := recorded(t, store, p.Interaction); in.Status != checkpoint.Open {
		t.Errorf("recorded %v", in.Status)
	}
}

// R36: whatever an id is, it leads to its question or to none, and nothing panics.
func FuzzReturnInterrupt(f *testing.F) {
	g, err := gate.Open(context.Background(), newMem(), &gate.Options{
		Tools: []*gate.Tool{deploy(new(counter), nil)}, Keys: [][]byte{testKey}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		f.Fatal(err)
	}
	outcome, err := g.Invoke(context.Background(), call("deploy", `{"service":"api"}`))
	if err != nil {
		f.Fatal(err)
	}
	id := outcome.Prompt.Questions[0].ID
	f.Add(id)
	f.Fuzz(func(t *testing.T, tried string) {
		// An answer that does not fit: the question stays open for the next one.
		err := g.ReturnInterrupt(t.Context(), giveBack(tried, `{}`))
		want := gate.ErrInvalidContinuation
		if tried == id {
			want = gate.ErrInvalidAnswer
		}
		if !errors.Is(err, want) {
			t.Fatalf("%q: %v", tried, err)
		}
	})
}
