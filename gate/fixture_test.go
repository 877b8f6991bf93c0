package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A clock that only moves when it is told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// everything is what a host can ask that can ask anything.
var everything = []interrupt.Facility{
	interrupt.FacilityPermission, interrupt.FacilitySelection, interrupt.FacilityForm, interrupt.FacilityURL,
}

var testKey = []byte("0123456789abcdef0123456789abcdef")

// open opens a gate that the test's end closes.
func open(t *testing.T, store checkpoint.Store, opts gate.Options) *gate.Gate {
	t.Helper()
	if opts.Keys == nil {
		opts.Keys = [][]byte{testKey}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	opts.Logger = slog.New(slog.NewMultiHandler(opts.Logger.Handler(), slog.NewTextHandler(&leaks, nil)))
	opts.Observer = overheard{opts.Observer}
	g, err := gate.Open(t.Context(), store, &opts)
	if err != nil {
		t.Fatalf("open gate: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		leaks.trail(ctx, g)
		if err := g.Close(ctx); err != nil {
			t.Errorf("close gate: %v", err)
		}
	})
	return g
}

func openMem(t *testing.T, tools ...*gate.Tool) *gate.Gate {
	t.Helper()
	return open(t, memstore.New(), gate.Options{Tools: tools})
}

// A host is a gate or one of its faces.
type host interface {
	Invoke(ctx context.Context, call gate.Call) (gate.Outcome, error)
	Answer(ctx context.Context, a gate.AnswerRequest) error
}

// call is a request of Ann's in the one session there is.
func call(tool, arguments string) gate.Call {
	return gate.Call{Tool: tool, Arguments: json.RawMessage(arguments), Scope: "ann", Session: "s1", Facilities: everything}
}

// with is the same call with a token and one payload for each question of the prompt.
func with(c gate.Call, p *gate.Prompt, payloads ...string) gate.Call {
	c.Token = p.Token
	c.Answers = gate.Answers{}
	for i, payload := range payloads {
		c.Answers[p.Questions[i].ID] = json.RawMessage(payload)
	}
	return c
}

// mustAsk invokes and wants a prompt.
func mustAsk(t *testing.T, f host, c gate.Call) *gate.Prompt {
	t.Helper()
	outcome, err := f.Invoke(t.Context(), c)
	if err != nil {
		t.Fatalf("invoke %s: %v (cause %v)", c.Tool, err, errors.Unwrap(err))
	}
	leaks.outcome(outcome)
	if outcome.Prompt == nil {
		t.Fatalf("invoke %s: want a prompt, have result %s", c.Tool, outcome.Result)
	}
	return outcome.Prompt
}

// mustFinish invokes and wants that result.
func mustFinish(t *testing.T, f host, c gate.Call, want string) {
	t.Helper()
	outcome, err := f.Invoke(t.Context(), c)
	if err != nil {
		t.Fatalf("invoke %s: %v (cause %v)", c.Tool, err, errors.Unwrap(err))
	}
	if outcome.Prompt != nil || string(outcome.Result) != want {
		t.Fatalf("invoke %s: want result %s, have %s, prompt %v", c.Tool, want, outcome.Result, outcome.Prompt)
	}
}

// mustFail invokes and wants that code.
func mustFail(t *testing.T, f host, c gate.Call, want gate.Code) *gate.Error {
	t.Helper()
	outcome, err := f.Invoke(t.Context(), c)
	return wantCode(t, fmt.Sprintf("invoke %s: outcome %+v", c.Tool, outcome), err, want)
}

func wantCode(t *testing.T, what string, err error, want gate.Code) *gate.Error {
	t.Helper()
	leaks.text(err)
	var e *gate.Error
	if !errors.As(err, &e) || e.Code != want || !errors.Is(err, want) { // a cause may be of another code
		t.Fatalf("%s: want %s, have %v", what, want, err)
	}
	return e
}

// A counter counts runs of a handler.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *counter) want(t *testing.T, n int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n != n {
		t.Errorf("want %d runs, have %d", n, c.n)
	}
}

type deployInput struct {
	Service string `json:"service"`
	Secret  string `json:"secret,omitempty"`
}

// deploy is the handler of the README: one permission, then the effect, which the counter counts.
func deploy(effects *counter, opts *gate.ToolOptions) *gate.Tool {
	return gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service)); err != nil {
			return "", err
		}
		effects.add()
		return "deployed " + in.Service, nil
	}, opts)
}

const (
	allow  = `{"optionId":"allow_once"}`
	reject = `{"optionId":"reject_once"}`
)

func newMem() *memstore.Store { return memstore.New() }

// blindMem is a store in which only requests find what is due.
func blindMem() *faulty { return &faulty{Store: memstore.New(), blind: true} }
