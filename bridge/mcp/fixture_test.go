package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

const (
	modern   = "2026-07-28"
	legacy   = "2025-11-25"
	oldest   = "2025-06-18"
	allow    = `{"decision":"allow_once"}`
	reject   = `{"decision":"reject_once"}`
	minInt53 = -(1<<53 - 1)
)

var testKey = []byte("0123456789abcdef0123456789abcdef")

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", p)
	return len(p), nil
}

func logger(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(testLog{t}, nil)) }

// openGate opens a gate that the test's end closes.
func openGate(t *testing.T, store checkpoint.Store, opts gate.Options) *gate.Gate {
	t.Helper()
	if opts.Keys == nil {
		opts.Keys = [][]byte{testKey}
	}
	opts.Logger = logger(t)
	g, err := gate.Open(t.Context(), store, &opts)
	if err != nil {
		t.Fatalf("open gate: %v", err)
	}
	t.Cleanup(func() { g.Close(context.Background()) })
	return g
}

// A site is one server with its bridge.
type site struct {
	server *mcp.Server
	bridge *mcpbridge.Bridge
}

func newSite(t *testing.T, g *gate.Gate, opts *mcpbridge.Options, tools ...*gate.Tool) *site {
	t.Helper()
	if opts == nil {
		opts = &mcpbridge.Options{}
	}
	if opts.Logger == nil {
		opts.Logger = logger(t)
	}
	s := &site{server: mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, nil)}
	var err error
	if s.bridge, err = mcpbridge.New(s.server, g, opts); err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		if err := mcpbridge.AddTool(s.bridge, tool, nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.bridge.Close(ctx); err != nil {
			t.Errorf("close bridge: %v", err)
		}
		for session := range s.server.Sessions() { // not every client ends its own
			session.Close()
		}
	})
	return s
}

// memSite is a site on a gate and a store of its own.
func memSite(t *testing.T, opts *mcpbridge.Options, tools ...*gate.Tool) *site {
	t.Helper()
	return newSite(t, openGate(t, memstore.New(), gate.Options{Tools: tools}), opts, tools...)
}

// A person answers what a client asks: with one of the answers after the other, each
// accept:CONTENT, decline or cancel.
type person struct {
	mu      sync.Mutex
	answers []string
	asked   []*mcp.ElicitParams
}

func answering(answers ...string) *person { return &person{answers: answers} }

func (p *person) elicit(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, req.Params)
	if len(p.answers) == 0 {
		return nil, errors.New("nobody is there any more")
	}
	answer := p.answers[0]
	p.answers = p.answers[1:]
	action, content, _ := strings.Cut(answer, ":")
	result := &mcp.ElicitResult{Action: action}
	if content != "" {
		if err := json.Unmarshal([]byte(content), &result.Content); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// want compares how often the person was asked.
func (p *person) want(t *testing.T, n int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) != n {
		t.Errorf("asked %d times, want %d", len(p.asked), n)
	}
}

func (p *person) messages() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.asked {
		all = append(all, a.Message)
	}
	return all
}

// both are the capabilities of a client that can do both modes.
func both() *mcp.ClientCapabilities {
	return &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
		Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
	}}
}

// connect connects a client in process, over the bridge's transport. p may be nil: nobody can be
// asked.
func connect(t *testing.T, s *site, version string, p *person, change ...func(*mcp.ClientOptions)) *mcp.ClientSession {
	t.Helper()
	there, here := mcp.NewInMemoryTransports()
	return dial(t, s, s.bridge.Transport(there), here, version, p, change...)
}

// connectBare is connect without the bridge's transport.
func connectBare(t *testing.T, s *site, version string, p *person, change ...func(*mcp.ClientOptions)) *mcp.ClientSession {
	t.Helper()
	there, here := mcp.NewInMemoryTransports()
	return dial(t, s, there, here, version, p, change...)
}

func dial(t *testing.T, s *site, there, here mcp.Transport, version string, p *person, change ...func(*mcp.ClientOptions)) *mcp.ClientSession {
	t.Helper()
	ss, err := s.server.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	cs := client(t, here, version, p, change...)
	t.Cleanup(func() {
		cs.Close()
		ss.Wait()
	})
	return cs
}

func client(t *testing.T, here mcp.Transport, version string, p *person, change ...func(*mcp.ClientOptions)) *mcp.ClientSession {
	t.Helper()
	opts := &mcp.ClientOptions{}
	if p != nil {
		opts.ElicitationHandler, opts.Capabilities = p.elicit, both()
	}
	for _, c := range change {
		c(opts)
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, opts).
		Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// byHand makes the client return what the server asks.
func byHand(o *mcp.ClientOptions) { o.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true} }

func call(t *testing.T, cs *mcp.ClientSession, tool, arguments string) *mcp.CallToolResult {
	t.Helper()
	return send(t, cs, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
}

func send(t *testing.T, cs *mcp.ClientSession, params *mcp.CallToolParams) *mcp.CallToolResult {
	t.Helper()
	result, err := cs.CallTool(t.Context(), params)
	if err != nil {
		t.Fatalf("call %s: %v", params.Name, err)
	}
	return result
}

func textOf(r *mcp.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}

// wantText wants a result that is no error and says that.
func wantText(t *testing.T, r *mcp.CallToolResult, want string) {
	t.Helper()
	if r.IsError || textOf(r) != want || r.NeedsInput() {
		t.Errorf("result %q (error %v, asks %v), want %q", textOf(r), r.IsError, r.NeedsInput(), want)
	}
}

// wantEnding wants a tool error with that code.
func wantEnding(t *testing.T, r *mcp.CallToolResult, want gate.Code) mcpbridge.Ending {
	t.Helper()
	var ending mcpbridge.Ending
	raw, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &ending)
	}
	if err != nil || !r.IsError || ending.Code != want {
		t.Errorf("result %q (error %v) with %s, want a tool error %s", textOf(r), r.IsError, raw, want)
	}
	return ending
}

// wantError wants a protocol error with that number and code.
func wantError(t *testing.T, err error, number int64, code gate.Code) mcpbridge.ErrorData {
	t.Helper()
	var wire *jsonrpc.Error
	var data mcpbridge.ErrorData
	if !errors.As(err, &wire) || wire.Code != number {
		t.Fatalf("error %v, want number %d", err, number)
	}
	if uerr := json.Unmarshal(wire.Data, &data); uerr != nil || data.Code != code {
		t.Errorf("error %v with data %s, want code %s", err, wire.Data, code)
	}
	return data
}

// codeOf is how a call ended: the code of its error or of its result's ending; "" for a result of the
// tool's.
func codeOf(t *testing.T, result *mcp.CallToolResult, err error) gate.Code {
	var end struct {
		Code gate.Code `json:"code"`
	}
	var data []byte
	var wire *jsonrpc.Error
	switch {
	case errors.As(err, &wire):
		data = wire.Data
	case err != nil:
		t.Errorf("neither a result nor an error of the bridge: %v", err)
		return "none"
	case !result.IsError:
		return ""
	default:
		if data, err = json.Marshal(result.StructuredContent); err != nil {
			t.Error(err)
		}
	}
	if err := json.Unmarshal(data, &end); err != nil || end.Code == "" {
		t.Errorf("an end without a code: %s, %v", data, err)
		return "none"
	}
	return end.Code
}

// The tools of the tests.

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
	Service string  `json:"service"`
	N       float64 `json:"n,omitempty"`
}

// deploy asks for a permission and then does what effects counts.
func deploy(effects *counter, opts *gate.ToolOptions) *gate.Tool {
	return gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service+" to production")); err != nil {
			return "", err
		}
		effects.add()
		return "deployed " + in.Service, nil
	}, opts)
}

// everyKind asks one question of each kind, in as many rounds.
func everyKind() *gate.Tool {
	return raw("every_kind", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("every_kind", "Go on?")); err != nil {
			return nil, err
		}
		choice, err := interrupt.Ask(ctx, interrupt.UserSelection(
			interrupt.UserChoice{Title: "north", Description: "cold", IsRecommended: true}, interrupt.UserChoice{Title: "south"}))
		if err != nil {
			return nil, err
		}
		form, err := interrupt.Ask(ctx, interrupt.Form("Who?", json.RawMessage(ticketSchema)))
		if err != nil {
			return nil, err
		}
		if _, err := interrupt.Ask(ctx, interrupt.URL("Connect your account", "https://example.com/connect")); err != nil {
			return nil, err
		}
		return map[string]any{"choice": choice.ConfirmedChoice.Title, "form": form.Content}, nil
	}, nil)
}

const ticketSchema = `{"type":"object","properties":{
	"name":{"type":"string","minLength":2},
	"count":{"type":"integer","minimum":1,"maximum":9},
	"sure":{"type":"boolean"},
	"level":{"type":"string","oneOf":[{"const":"lo","title":"Low"},{"const":"hi","title":"High"}],"default":"lo"},
	"tags":{"type":"array","maxItems":2,"items":{"type":"string","enum":["a","b","c"]}}
},"required":["name","sure"]}`

// twoAtOnce asks two questions in one round.
func twoAtOnce() *gate.Tool {
	return raw("two_at_once", func(ctx context.Context) (any, error) {
		answered, err := interrupt.AskAll(ctx,
			interrupt.UserSelection(interrupt.UserChoice{Title: "a"}, interrupt.UserChoice{Title: "b"}),
			interrupt.Form("Why?", json.RawMessage(`{"type":"object","properties":{"why":{"type":"string","minLength":3}},"required":["why"]}`)))
		if err != nil {
			return nil, err
		}
		form := answered[1].(*interrupt.FormInterrupt)
		return answered[0].(*interrupt.UserSelectionInterrupt).ConfirmedChoice.Title + " " + string(form.Content), nil
	}, nil)
}

// rounds asks n selections, one after the other.
func rounds(n int) *gate.Tool {
	return raw("rounds", func(ctx context.Context) (any, error) {
		for i := range n {
			choice := interrupt.UserSelection(interrupt.UserChoice{Title: "a"}, interrupt.UserChoice{Title: "b"})
			choice.Key = fmt.Sprint(i)
			if _, err := interrupt.Ask(ctx, choice); err != nil {
				return nil, err
			}
		}
		return "done", nil
	}, nil)
}

// form asks one form.
func form(schema string) *gate.Tool {
	return raw("form", func(ctx context.Context) (any, error) {
		f, err := interrupt.Ask(ctx, interrupt.Form("Please", json.RawMessage(schema)))
		if err != nil {
			return nil, err
		}
		return string(f.Content), nil
	}, nil)
}

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

func (c *counter) want(t *testing.T, n int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n != n {
		t.Errorf("%d effects, want %d", c.n, n)
	}
}

// only is the one input request of a result, with its key.
func only(t *testing.T, r *mcp.CallToolResult) (string, *mcp.ElicitParams) {
	t.Helper()
	if !r.NeedsInput() || len(r.InputRequests) != 1 || len(r.RequestState) != gate.TokenLength || len(r.Content) > 0 {
		t.Fatalf("want one input request and a token, have %+v, %q", r, textOf(r))
	}
	for key, request := range r.InputRequests {
		return key, request.(*mcp.ElicitParams)
	}
	return "", nil
}

// with is the same call with a state and answers.
func with(tool, arguments, state string, answers mcp.InputResponseMap) *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments), RequestState: state, InputResponses: answers}
}

func accept(content string) *mcp.ElicitResult {
	r := &mcp.ElicitResult{Action: "accept"}
	if content != "" {
		if err := json.Unmarshal([]byte(content), &r.Content); err != nil {
			panic(err)
		}
	}
	return r
}

func contains(all []string, part string) bool {
	return slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, part) })
}

// elicitByKind answers the two questions of twoAtOnce, in whatever order they come.
func (p *person) elicitByKind(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	if req.Params.Message == "Why?" {
		return accept(`{"why":"so so"}`), nil
	}
	return accept(`{"choice":"0"}`), nil
}

// A clock that only moves when it is told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

// newClock begins now: the SDK compares the expiration of tokens with its own clock.
func newClock() *clock { return &clock{now: time.Now().UTC().Truncate(time.Second)} }

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
