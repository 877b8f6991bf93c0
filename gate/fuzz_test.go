package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// Whatever comes in as a token, the tool does not run; whatever comes in as an answer to a good
// one, it runs only for what its own question takes, and nothing panics (R15, R16, R20, R34).
func FuzzInvoke(f *testing.F) {
	f.Add("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", []byte(`{"service":"api"}`), []byte(allow))
	f.Add("", []byte(`{"service": "api" }`), []byte(`{"action":"accept","optionId":"allow_once"}`))
	f.Add("x", []byte(`{"service":"api","service":"db"}`), []byte(`{"optionId":"allow_once","optionId":"reject_once"}`))
	f.Add("", []byte(`{"service":1e999999}`), []byte(`{"Action":"decline","optionId":"allow_once"}`))
	f.Add("", []byte("{\"service\":\"\xff\"}"), []byte(`{"action":"cancel","optionId":null}`))
	var effects counter
	g, err := gate.Open(context.Background(), newMem(), &gate.Options{
		Tools: []*gate.Tool{deploy(&effects, nil)}, Keys: [][]byte{testKey}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token string, arguments, answer []byte) {
		before := effects.n
		c := call("deploy", `{}`)
		c.Arguments, c.Token = arguments, gate.Token(token)
		outcome, err := g.Invoke(t.Context(), c)
		if token != "" && err == nil {
			t.Fatalf("token %q leads to %+v", token, outcome)
		}
		c = call("deploy", `{"service":"api"}`)
		p := mustAsk(t, g, c)
		_, err = g.Invoke(t.Context(), with(c, p, string(answer)))
		if ran := effects.n > before; ran != (err == nil) {
			t.Fatalf("ran %v with %v", ran, err)
		}
		question := interrupt.ToolPermission("deploy", "")
		if action, err := interrupt.Apply(question, answer); effects.n > before && (err != nil || action != interrupt.ActionAccept || !question.Allowed) {
			t.Fatalf("%q ran the tool: %s, %v", answer, json.RawMessage(answer), err)
		}
	})
}

// A payload of whatever type is read without a panic, and what is taken is taken again in the form
// that is recorded.
func FuzzPayload(f *testing.F) {
	for _, payload := range []string{allow, `{"selectionIdx":1}`, `{}`, `{"action":"decline"}`, `{"selectionIdx":-0}`, `[]`, `{"":{}}`} {
		f.Add([]byte(payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, q := range []interrupt.Interrupt{
			interrupt.ToolPermission("x", ""), choose("a", "b"), interrupt.URL("m", "https://example.com"), &foreign{Name: "x"},
		} {
			action, _, err := interrupt.Check(q, payload)
			again, errAgain := interrupt.Apply(q, payload)
			if (err == nil) != (errAgain == nil) || err == nil && action != again {
				t.Errorf("%s: checked %q, %v; applied %q, %v", q.TypeName(), action, err, again, errAgain)
			}
		}
	})
}

// R37: whatever stands in the place of sealed data, only what was sealed for that place opens.
func FuzzSealed(f *testing.F) {
	store := memstore.New()
	options := &gate.Options{
		Tools: []*gate.Tool{raw("tool", func(context.Context) (any, error) { return nil, choose("a", "b") }, nil)},
		Keys:  [][]byte{testKey}, DataKeys: [][]byte{dataKey}, Logger: slog.New(slog.DiscardHandler),
		Random: zeros{}, Now: newClock().Now,
	}
	g, err := gate.Open(context.Background(), store, options)
	if err != nil {
		f.Fatal(err)
	}
	outcome, err := g.Invoke(context.Background(), call("tool", `{}`))
	if err != nil {
		f.Fatal(err)
	}
	record, err := store.Load(context.Background(), outcome.Interaction)
	if err != nil {
		f.Fatal(err)
	}
	sealed := bytes.Clone(record.Data)
	f.Add(bytes.Clone(sealed))
	f.Add([]byte(`{"v":1}`))
	f.Add([]byte{1})
	f.Add(sealed[:38])
	rig := &rigged{Store: store, instead: &record}
	h, err := gate.Open(context.Background(), rig, options)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		record.Data = data
		s, err := h.InspectID(t.Context(), "ann", record.ID)
		if err != nil || (s.Problem == nil) != bytes.Equal(data, sealed) {
			t.Errorf("%x: %+v, %v", data, s, err)
		}
	})
}

// zeros is no randomness.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
