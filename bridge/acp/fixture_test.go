package acpbridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

var testKey = []byte("0123456789abcdef0123456789abcdef")

// openGate opens a gate that the test's end closes.
func openGate(t *testing.T, store checkpoint.Store, opts gate.Options) *gate.Gate {
	t.Helper()
	if opts.Keys == nil {
		opts.Keys = [][]byte{testKey}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	g, err := gate.Open(t.Context(), store, &opts)
	if err != nil {
		t.Fatalf("open gate: %v", err)
	}
	t.Cleanup(func() { g.Close(context.Background()) })
	return g
}

func memGate(t *testing.T, tools ...*gate.Tool) *gate.Gate {
	t.Helper()
	return openGate(t, memstore.New(), gate.Options{Tools: tools})
}

// anAgent is an agent whose Prompt is a function of the test's.
type anAgent struct {
	prompt func(ctx context.Context, turn *acpbridge.Turn, text string) error
	calls  func(method string)
}

func (a *anAgent) called(method string) {
	if a.calls != nil {
		a.calls(method)
	}
}

func (a *anAgent) Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, nil
}

func (a *anAgent) Initialize(_ context.Context, p acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{ProtocolVersion: p.ProtocolVersion, AuthMethods: []acp.AuthMethod{}}, nil
}

func (a *anAgent) Cancel(context.Context, acp.CancelNotification) error {
	a.called("cancel")
	return nil
}

func (a *anAgent) CloseSession(context.Context, acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	a.called("close")
	return acp.CloseSessionResponse{}, nil
}

func (a *anAgent) ListSessions(context.Context, acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	return acp.ListSessionsResponse{}, nil
}

func (a *anAgent) NewSession(context.Context, acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	return acp.NewSessionResponse{SessionId: "s1"}, nil
}

func (a *anAgent) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	if p.Meta != nil {
		return acp.PromptResponse{}, fmt.Errorf("meta of the prompt: %v", p.Meta)
	}
	err := a.prompt(ctx, acpbridge.TurnOf(ctx), p.Prompt[0].Text.Text)
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
}

func (a *anAgent) ResumeSession(context.Context, acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	return acp.ResumeSessionResponse{}, nil
}

func (a *anAgent) SetSessionConfigOption(context.Context, acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	return acp.SetSessionConfigOptionResponse{}, nil
}

func (a *anAgent) SetSessionMode(context.Context, acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	return acp.SetSessionModeResponse{}, nil
}

func (a *anAgent) LoadSession(context.Context, acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	return acp.LoadSessionResponse{}, nil
}

// caller is an agent whose prompts are calls: the text is the tool's name, which is the call's ID
// as well, and its arguments, if any, after a space. ended is told what came of each.
func caller(ended func(result string, err error)) *anAgent {
	return &anAgent{prompt: func(ctx context.Context, turn *acpbridge.Turn, text string) error {
		tool, arguments, _ := strings.Cut(text, " ")
		if arguments == "" {
			arguments = "{}"
		}
		id := acp.ToolCallId("call-" + tool)
		result, err := turn.CallTool(ctx, acpbridge.Call{ID: id, Tool: tool, Arguments: json.RawMessage(arguments)})
		if ended != nil {
			ended(string(result), err)
		}
		return nil
	}}
}

// callsAnew is caller, with another ID for each call.
func callsAnew() *anAgent {
	n := 0
	return &anAgent{prompt: func(ctx context.Context, turn *acpbridge.Turn, text string) error {
		n++
		tool, arguments, _ := strings.Cut(text, " ")
		call := acpbridge.Call{ID: acp.ToolCallId(fmt.Sprint("call-", n)), Tool: tool, Arguments: json.RawMessage(arguments)}
		_, err := turn.CallTool(ctx, call)
		return err
	}}
}

func asAnn(context.Context, acpbridge.Request) (acpbridge.Grant, error) {
	return acpbridge.Grant{Scope: "ann"}, nil
}

// An editor is the client's end of a connection, message by message.
type editor struct {
	t      *testing.T
	bridge *acpbridge.Bridge
	out    io.WriteCloser
	from   chan message

	mu     sync.Mutex
	nextID int
}

// A message is one that the agent sent.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *acp.RequestError
	Text   string `json:"-"`
}

// open connects an editor with the agent, before anything is said.
func open(t *testing.T, g *gate.Gate, opts *acpbridge.Options, agent acpbridge.Agent) *editor {
	t.Helper()
	o := acpbridge.Options{}
	if opts != nil {
		o = *opts
	}
	if o.Authorize == nil {
		o.Authorize = asAnn
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
		if testing.Verbose() {
			o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil)) // the SDK logs when the test is over, too
		}
	}
	if o.PollInterval == 0 {
		o.PollInterval = 5 * time.Millisecond
	}
	b, err := acpbridge.New(g, &o)
	if err != nil {
		t.Fatal(err)
	}
	in, out := io.Pipe()
	back, agentOut := io.Pipe()
	e := &editor{t: t, bridge: b, out: out, from: make(chan message, 1024)}
	if _, err := b.Connect(agent, agentOut, in); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(e.from)
		lines := bufio.NewReader(back)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			m := message{Text: line}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Errorf("not a message: %s", line)
			}
			e.from <- m
		}
	}()
	t.Cleanup(func() {
		out.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			t.Errorf("close bridge: %v", err)
		}
		agentOut.Close()
	})
	return e
}

// The capabilities of clients.
const (
	plain = `{}`
	both  = `{"elicitation":{"form":{},"url":{}}}`
)

// connect is open, and the beginning of a session s1.
func connect(t *testing.T, g *gate.Gate, opts *acpbridge.Options, agent acpbridge.Agent, capabilities string) *editor {
	t.Helper()
	e := open(t, g, opts, agent)
	e.response(e.request("initialize", `{"protocolVersion":1,"clientCapabilities":`+capabilities+`}`))
	return e
}

func (e *editor) write(format string, args ...any) {
	e.t.Helper()
	if _, err := fmt.Fprintf(e.out, format+"\n", args...); err != nil {
		e.t.Errorf("write: %v", err)
	}
}

// line is a request as text, and its id.
func (e *editor) line(method, params string) (line, id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.nextID++
	id = fmt.Sprintf(`"e%d"`, e.nextID)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params), id
}

func (e *editor) request(method, params string) (id string) {
	e.t.Helper()
	line, id := e.line(method, params)
	e.write("%s", line)
	return id
}

func promptOf(text string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`{"sessionId":"s1","prompt":[{"type":"text","text":%s}]}`, quoted)
}

func (e *editor) prompt(text string) (id string) {
	e.t.Helper()
	return e.request("session/prompt", promptOf(text))
}

const cancelLine = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}`

func (e *editor) answer(m message, result string) {
	e.t.Helper()
	e.write(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func selected(option string) string {
	return fmt.Sprintf(`{"outcome":{"outcome":"selected","optionId":%q}}`, option)
}

const cancelledOutcome = `{"outcome":{"outcome":"cancelled"}}`

// next is the next message, whatever it is.
func (e *editor) next() message {
	e.t.Helper()
	select {
	case m, ok := <-e.from:
		if !ok {
			e.t.Fatal("the agent says no more")
		}
		return m
	case <-time.After(30 * time.Second):
		e.t.Fatal("the agent says nothing")
	}
	return message{}
}

// asked is the next request of the agent. Notifications before it are passed over, and kept in
// seen.
func (e *editor) asked(method string, seen ...*[]message) message {
	e.t.Helper()
	for {
		m := e.next()
		switch {
		case m.Method == method:
			return m
		case m.Method == "" || m.ID != nil:
			e.t.Fatalf("want %s, have %s", method, m.Text)
		}
		for _, all := range seen {
			*all = append(*all, m)
		}
	}
}

// askedAt is asked, with responses passed over as well.
func (e *editor) askedAt(method string) message {
	e.t.Helper()
	for {
		if m := e.next(); m.Method == method {
			return m
		}
	}
}

// gone waits for the turns of an editor that went.
func (e *editor) gone() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 20*time.Second)
	defer cancel()
	if err := e.bridge.Close(ctx); err != nil {
		e.t.Error(err)
	}
}

const (
	permission = "session/request_permission"
	elicit     = "elicitation/create"
)

// response is the response to a request, and what came before it.
func (e *editor) response(id string) (message, []message) {
	e.t.Helper()
	var before []message
	for {
		m := e.next()
		if string(m.ID) == id && m.Method == "" {
			return m, before
		}
		before = append(before, m)
	}
}

// ends wants the turn to end with that stop reason, and returns the updates before.
func (e *editor) ends(id, stop string) []message {
	e.t.Helper()
	m, before := e.response(id)
	var r struct{ StopReason string }
	if m.Error != nil || json.Unmarshal(m.Result, &r) != nil || r.StopReason != stop {
		e.t.Errorf("the turn ends with %s, want %s", m.Text, stop)
	}
	return before
}

// statuses are those of a tool call in messages, in their order.
func statuses(call string, messages []message) (all []string) {
	for _, m := range messages {
		var p struct {
			Update struct{ ToolCallID, Status string }
		}
		if json.Unmarshal(m.Params, &p) == nil && p.Update.ToolCallID == call && p.Update.Status != "" {
			all = append(all, p.Update.Status)
		}
	}
	return all
}

// The tools of the tests.

// A counter counts effects.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *counter) want(t *testing.T, n int) {
	t.Helper()
	if have := c.count(); have != n {
		t.Errorf("%d effects, want %d", have, n)
	}
}

func raw(name string, h func(ctx context.Context) (any, error), opts *gate.ToolOptions) *gate.Tool {
	return gate.NewRawTool(name, func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		result, err := h(ctx)
		if err != nil {
			return nil, err
		}
		return json.Marshal(result)
	}, opts)
}

type deployInput struct {
	Service string `json:"service"`
	Token   string `json:"token,omitempty"`
}

// slow asks for a permission, and is at work from began until release.
func slow(effects *counter, began chan<- struct{}, release <-chan struct{}) *gate.Tool {
	return raw("slow", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("slow", "May it?")); err != nil {
			return nil, err
		}
		close(began)
		<-release
		effects.add()
		return "done", nil
	}, &gate.ToolOptions{KeepResult: true})
}

// deploy asks for a permission and then does what effects counts.
func deploy(effects *counter, opts *gate.ToolOptions) *gate.Tool {
	return gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service+" to production")); err != nil {
			return "", err
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
		effects.add()
		return "deployed " + in.Service, nil
	}, opts)
}

func choice() *interrupt.UserSelectionInterrupt {
	return interrupt.UserSelection(interrupt.UserChoice{Title: "south"},
		interrupt.UserChoice{Title: "north", Description: "cold", IsRecommended: true})
}

// asks asks one question and returns it as it was answered.
func asks[Q interrupt.Interrupt](name string, q Q, result func(ctx context.Context, q Q) any) *gate.Tool {
	return raw(name, func(ctx context.Context) (any, error) {
		answered, err := interrupt.Ask(ctx, q)
		if err != nil {
			return nil, err
		}
		return result(ctx, answered), nil
	}, nil)
}

func region() *gate.Tool {
	return asks("region", choice(), func(_ context.Context, q *interrupt.UserSelectionInterrupt) any { return q.ConfirmedChoice.Title })
}

func form(schema string) *gate.Tool {
	return asks("form", interrupt.Form("Please", json.RawMessage(schema)), func(_ context.Context, q *interrupt.FormInterrupt) any {
		return q.Content
	})
}

func page() *gate.Tool {
	return asks("page", interrupt.URL("Sign in", "https://example.com/sign-in?id=1"), func(context.Context, *interrupt.URLInterrupt) any {
		return "went"
	})
}
