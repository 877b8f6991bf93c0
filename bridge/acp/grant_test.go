package acpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// R24: the host is asked for every round as whom the session is served; what it refuses, and a
// panic of its, is unauthorized, and its words stay with it.
func TestAuthorize(t *testing.T) {
	var effects counter
	g := memGate(t, deploy(&effects, nil))
	rounds := 0
	var ended error
	opts := &acpbridge.Options{Authorize: func(_ context.Context, r acpbridge.Request) (acpbridge.Grant, error) {
		if r.Session != "s1" || r.Tool != "deploy" || r.Client.Name != "editor" {
			t.Errorf("request %+v", r)
		}
		switch rounds++; rounds {
		case 2:
			return acpbridge.Grant{}, errors.New("her licence has run out")
		case 3:
			panic("the directory is down")
		}
		return acpbridge.Grant{Scope: "ann"}, nil
	}}
	e := open(t, g, opts, caller(func(_ string, err error) { ended = err }))
	e.response(e.request("initialize", `{"protocolVersion":1,"clientInfo":{"name":"editor","version":"1"}}`))
	id := e.prompt(`deploy {"service":"api"}`)
	e.answer(e.asked(permission), selected("allow_once"))
	after := e.ends(id, "end_turn")
	if !errors.Is(ended, gate.ErrUnauthorized) || strings.Contains(ended.Error(), "licence") {
		t.Errorf("ended with %v", ended)
	}
	e.ends(e.prompt(`deploy {"service":"api"}`), "end_turn")
	if !errors.Is(ended, gate.ErrUnauthorized) {
		t.Errorf("a panic: %v", ended)
	}
	for _, m := range after {
		if strings.Contains(m.Text, "licence") {
			t.Errorf("told: %s", m.Text)
		}
	}
	effects.want(t, 0)
	if s := recorded(t, g); s.Status != checkpoint.Open { // and the answer was not recorded
		t.Errorf("recorded as %v", s.Status)
	}
}

// Another scope does not find the question, though it knows session and call.
func TestAnotherScope(t *testing.T) {
	var effects counter
	g := memGate(t, deploy(&effects, nil))
	e := connect(t, g, nil, caller(nil), plain)
	e.prompt(`deploy {"service":"api"}`)
	mine := questionID(t, e.asked(permission))
	opts := &acpbridge.Options{Authorize: func(context.Context, acpbridge.Request) (acpbridge.Grant, error) {
		return acpbridge.Grant{Scope: "bob"}, nil
	}}
	other := connect(t, g, opts, caller(nil), plain)
	other.prompt(`deploy {"service":"api"}`)
	if theirs := questionID(t, other.asked(permission)); theirs == mine {
		t.Error("bob is asked ann's question")
	}
}

func questionID(t *testing.T, q message) string {
	var p struct {
		Meta map[string]struct{ ID string } `json:"_meta"`
	}
	if err := json.Unmarshal(q.Params, &p); err != nil || p.Meta["parley/interrupt"].ID == "" {
		t.Fatalf("no id in %s, %v", q.Params, err)
	}
	return p.Meta["parley/interrupt"].ID
}

// What does not come over the process's own standard input and output is nobody's by default.
func TestConnect(t *testing.T) {
	g := memGate(t)
	b, err := acpbridge.New(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	in, out := io.Pipe()
	defer out.Close()
	if _, err := b.Connect(caller(nil), out, in); err == nil {
		t.Error("connected without an Authorize")
	}
	b, err = acpbridge.New(g, &acpbridge.Options{Authorize: asAnn})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Connect(nil, out, in); err == nil {
		t.Error("connected without an agent")
	}
	if _, err := b.Connect(caller(nil), io.Discard, strings.NewReader("")); err != nil {
		t.Error(err)
	}
	if _, err := b.Connect(caller(nil), io.Discard, strings.NewReader("")); err == nil {
		t.Error("connected twice")
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for name, opts := range map[string]*acpbridge.Options{
		"max open": {MaxOpen: -1}, "max wire": {MaxWire: -1}, "poll interval": {PollInterval: -1},
	} {
		if _, err := acpbridge.New(g, opts); err == nil {
			t.Errorf("%s: negative and taken", name)
		}
	}
	if _, err := acpbridge.New(nil, nil); err == nil {
		t.Error("made without a gate")
	}
}

// R20: no message holds what could be a token.
func TestNoToken(t *testing.T) {
	var effects counter
	e := connect(t, memGate(t, deploy(&effects, nil), region()), nil, caller(nil), both)
	id := e.prompt(`deploy {"service":"api"}`)
	seen := []message{e.asked(permission)}
	e.answer(seen[0], selected("allow_once"))
	seen = append(seen, e.ends(id, "end_turn")...)
	id = e.prompt("region")
	seen = append(seen, e.asked(elicit))
	e.answer(seen[len(seen)-1], `{"action":"decline"}`)
	seen = append(seen, e.ends(id, "end_turn")...)
	for _, m := range seen {
		if token := regexp.MustCompile(`[A-Za-z0-9_-]{43}`).FindString(m.Text); token != "" {
			t.Errorf("%q in %s", token, m.Text)
		}
	}
}

// R13: with an inbox, a question that the client cannot be asked waits there; the same call in a
// later turn goes on when it was answered.
func TestOutOfBand(t *testing.T) {
	g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{region()}, PromptLink: func(id checkpoint.ID) string {
		return "https://inbox.example.com/" + id.String()
	}})
	var result string
	var ended error
	e := connect(t, g, &acpbridge.Options{OutOfBand: true}, caller(func(r string, err error) { result, ended = r, err }), plain)
	e.ends(e.prompt("region"), "end_turn")
	s := recorded(t, g)
	failed, ok := errors.AsType[*gate.Error](ended)
	if !ok || failed.Code != gate.ErrConfirmationRequired || failed.Link != "https://inbox.example.com/"+s.ID.String() {
		t.Fatalf("ended with %v", ended)
	}
	answers := gate.Answers{s.Prompt.Questions[0].ID: json.RawMessage(`{"selectionIdx":0}`)}
	if err := g.Answer(t.Context(), gate.AnswerRequest{Interaction: s.ID, Round: 1, Scope: "ann", Answers: answers}); err != nil {
		t.Fatal(err)
	}
	e.ends(e.prompt("region"), "end_turn")
	if ended != nil || result != `"south"` {
		t.Errorf("then %s, %v", result, ended)
	}
}

// Calls whose question waits are shown as pending when a session is loaded, and nobody is asked.
func TestWaiting(t *testing.T) {
	var effects counter
	g := memGate(t, deploy(&effects, nil), region())
	calls := []acpbridge.Call{
		{ID: "call-region", Tool: "region"}, {ID: "call-deploy", Tool: "deploy", Arguments: json.RawMessage(`{"service":"api"}`)},
		{ID: "never", Tool: "region"},
	}
	first := connect(t, g, nil, caller(nil), both)
	id := first.prompt("region")
	first.answer(first.asked(elicit), `{"action":"decline"}`)
	first.ends(id, "end_turn")
	first.prompt(`deploy {"service":"api"}`)
	first.asked(permission)
	first.out.Close()
	waitFor(t, func() bool { // the turn has ended, or it would have the question
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		return first.bridge.Close(ctx) == nil
	})
	var waiting []acpbridge.Call
	agent := &loader{anAgent: caller(nil)}
	e := connect(t, g, nil, agent, both)
	agent.load = func(ctx context.Context) (err error) {
		waiting, err = e.bridge.Waiting(ctx, "s1", calls)
		return err
	}
	_, before := e.response(e.request("session/load", `{"sessionId":"s1","cwd":"/","mcpServers":[]}`))
	if len(waiting) != 1 || waiting[0].ID != "call-deploy" {
		t.Errorf("waiting: %v", waiting)
	}
	if got := statuses("call-deploy", before); len(before) != 1 || !slices.Equal(got, []string{"pending"}) {
		t.Errorf("shown: %v", before)
	}
}

// R30: a call whose question expired while no client was there is returned, so that its end is told.
func TestWaitingExpired(t *testing.T) {
	var effects counter
	var now atomic.Int64
	now.Store(time.Now().UnixNano())
	clock := func() time.Time { return time.Unix(0, now.Load()) }
	g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: clock})
	e := connect(t, g, &acpbridge.Options{Now: clock}, caller(nil), plain)
	e.prompt(`deploy {"service":"api"}`)
	e.asked(permission)
	e.out.Close()
	e.gone()
	now.Add(int64(time.Hour))
	e = connect(t, g, &acpbridge.Options{Now: clock}, caller(nil), plain)
	call := acpbridge.Call{ID: "call-deploy", Tool: "deploy", Arguments: json.RawMessage(`{"service":"api"}`)}
	waiting, err := e.bridge.Waiting(t.Context(), "s1", []acpbridge.Call{call})
	if err != nil || len(waiting) != 1 {
		t.Fatalf("waiting: %v, %v", waiting, err)
	}
	got := e.ends(e.prompt(`deploy {"service":"api"}`), "end_turn")
	if s := statuses("call-deploy", got); !slices.Equal(s, []string{"pending", "pending", "failed"}) {
		t.Errorf("told: %v", s)
	}
	effects.want(t, 0)
}

// A loader is an agent whose sessions can be loaded.
type loader struct {
	*anAgent
	load func(ctx context.Context) error
}

func (l *loader) LoadSession(ctx context.Context, _ acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	return acp.LoadSessionResponse{}, l.load(ctx)
}

// R36: what the gate refuses in session/load has its number there, too.
func TestLoadUnauthorized(t *testing.T) {
	agent := &loader{anAgent: caller(nil)}
	opts := &acpbridge.Options{Authorize: func(context.Context, acpbridge.Request) (acpbridge.Grant, error) {
		return acpbridge.Grant{}, errors.New("her licence has run out")
	}}
	e := connect(t, memGate(t), opts, agent, plain)
	agent.load = func(ctx context.Context) error {
		_, err := e.bridge.Waiting(ctx, "s1", []acpbridge.Call{{ID: "c", Tool: "deploy"}})
		return fmt.Errorf("load: %w", err)
	}
	m, _ := e.response(e.request("session/load", `{"sessionId":"s1","cwd":"/","mcpServers":[]}`))
	if m.Error == nil || m.Error.Code != -32000 || strings.Contains(m.Text, "licence") {
		t.Errorf("have %s", m.Text)
	}
}

// An agent of three methods is one; what it has not is not found, also what the SDK would call
// without looking, and nothing of that ends the process.
func TestSmallAgent(t *testing.T) {
	var effects counter
	whole := caller(nil)
	agent := struct{ acpbridge.Agent }{whole}
	if _, is := any(agent).(acp.Agent); is {
		t.Fatal("it has more than it should")
	}
	e := connect(t, memGate(t, deploy(&effects, nil)), nil, agent, plain)
	for method, params := range map[string]string{
		"authenticate": `{"methodId":"x"}`, "session/load": `{"sessionId":"s1","cwd":"/","mcpServers":[]}`, "session/list": `{}`,
		"session/resume": `{"sessionId":"s1","cwd":"/"}`, "session/set_mode": `{"sessionId":"s1","modeId":"x"}`, "logout": `{}`, "nes/start": `{}`,
		"session/of/a/later/version": `{}`, "_extension": `{}`, "session/set_config_option": `{"sessionId":"s1","configId":"a","value":"b"}`,
	} {
		m, _ := e.response(e.request(method, params))
		if m.Error == nil || m.Error.Code != -32601 || !strings.Contains(m.Text, `"method":"`+method+`"`) {
			t.Errorf("%s: %s", method, m.Text)
		}
	}
	e.write(`{"jsonrpc":"2.0","method":"document/didOpen","params":{}}`)
	e.prompt(`deploy {"service":"api"}`)
	e.asked(permission)
	m, _ := e.response(e.request("session/close", `{"sessionId":"s1"}`))
	if m.Error != nil {
		t.Errorf("close: %s", m.Text)
	}
}

// After its response nothing of a turn is sent, and no call begins.
func TestTurnIsOver(t *testing.T) {
	var effects counter
	var turn *acpbridge.Turn
	e := connect(t, memGate(t, deploy(&effects, nil)), nil, &anAgent{prompt: func(_ context.Context, kept *acpbridge.Turn, _ string) error {
		turn = kept
		return kept.Say("hello")
	}}, plain)
	if said := e.ends(e.prompt("x"), "end_turn"); len(said) != 1 || !strings.Contains(said[0].Text, "hello") {
		t.Errorf("said %v", said)
	}
	if err := turn.Say("and one more thing"); err == nil {
		t.Error("said after the turn")
	}
	if _, err := turn.CallTool(t.Context(), acpbridge.Call{ID: "x", Tool: "deploy"}); !errors.Is(err, gate.ErrUnavailable) {
		t.Errorf("called after the turn: %v", err)
	}
	e.wantQuiet()
}

// A call that goes on when the agent's Prompt has returned is broken off, told to its end, and
// waited for.
func TestPromptReturnsEarly(t *testing.T) {
	var effects counter
	g := memGate(t, deploy(&effects, nil))
	ended := make(chan error, 1)
	asked := make(chan struct{})
	e := connect(t, g, nil, &anAgent{prompt: func(ctx context.Context, turn *acpbridge.Turn, _ string) error {
		go func() {
			_, err := turn.CallTool(ctx, acpbridge.Call{ID: "c", Tool: "deploy", Arguments: json.RawMessage(`{"service":"api"}`)})
			ended <- err
		}()
		<-asked
		return nil
	}}, plain)
	id := e.prompt("x")
	e.asked(permission)
	close(asked)
	if got := statuses("c", e.ends(id, "end_turn")); !slices.Equal(got, []string{"failed"}) {
		t.Errorf("statuses %v", got)
	}
	if err := <-ended; !errors.Is(err, gate.ErrUnavailable) {
		t.Errorf("ended with %v", err)
	}
	e.wantQuiet()
	if s := recorded(t, g); s.Status != checkpoint.Open {
		t.Errorf("recorded as %v", s.Status)
	}
}

// A cancel that comes while the host is asked once more, after the answer, lets nothing happen.
func TestCancelBeforeCommit(t *testing.T) {
	var effects counter
	g := memGate(t, deploy(&effects, nil))
	rounds := 0
	var e *editor
	opts := &acpbridge.Options{Authorize: func(ctx context.Context, _ acpbridge.Request) (acpbridge.Grant, error) {
		if rounds++; rounds == 2 {
			e.write(cancelLine)
			e.write(`{"jsonrpc":"2.0","method":"nothing"}`) // read when the line before it was
		}
		return acpbridge.Grant{Scope: "ann"}, nil
	}}
	e = connect(t, g, opts, caller(nil), plain)
	id := e.prompt(`deploy {"service":"api"}`)
	e.answer(e.asked(permission), selected("allow_once"))
	e.ends(id, "cancelled")
	effects.want(t, 0)
	if s := recorded(t, g); s.Code != gate.ErrCancelled {
		t.Errorf("recorded as %v %v", s.Status, s.Code)
	}
}

// What is wrong with a call is its end, and the turn goes on; an agent whose Prompt returns a code
// has it in the response.
func TestWrongCalls(t *testing.T) {
	var ended error
	var effects counter
	view := func(string, json.RawMessage) acpbridge.View { panic("no view") }
	e := connect(t, memGate(t, deploy(&effects, nil)), &acpbridge.Options{View: view}, &anAgent{
		prompt: func(ctx context.Context, turn *acpbridge.Turn, text string) error {
			call := acpbridge.Call{ID: "c", Tool: "deploy", Arguments: json.RawMessage(text)}
			if text == "unknown" {
				call = acpbridge.Call{ID: "c", Tool: "none"}
			}
			if text == "nameless" {
				call.ID = ""
			}
			_, ended = turn.CallTool(ctx, call)
			if text == "unknown" {
				return ended
			}
			return nil
		},
	}, plain)
	for text, want := range map[string]gate.Code{
		"nameless": gate.ErrInvalidArguments, `{"service":1}`: gate.ErrInvalidArguments, `{"service":"a","service":"b"}`: gate.ErrInvalidArguments,
	} {
		if e.ends(e.prompt(text), "end_turn"); !errors.Is(ended, want) {
			t.Errorf("%s: ended with %v", text, ended)
		}
	}
	m, _ := e.response(e.prompt("unknown"))
	if m.Error == nil || m.Error.Code != -32602 || m.Error.Data.(map[string]any)["code"] != "unknown_tool" {
		t.Errorf("unknown tool: %s", m.Text)
	}
}
