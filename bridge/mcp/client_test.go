package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// using is a tool of another gate that uses a tool of a server, after a question of its own.
func using(session *mcp.ClientSession, tool, arguments string) *gate.Tool {
	h := mcpbridge.NewClientHandler("the site", session, nil)
	return raw("using", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("using", "Use the site?")); err != nil {
			return nil, err
		}
		result, err := h.CallTool(ctx, "first", &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
		if err != nil {
			return nil, err
		}
		last := interrupt.ToolPermission("using", "Keep it?")
		if _, err := interrupt.Ask(ctx, last); err != nil {
			return nil, err
		}
		return textOf(result), nil
	}, nil)
}

// asking connects a client that is asked through a handler.
func asking(t *testing.T, s *site, version string) *mcp.ClientSession {
	t.Helper()
	there, here := mcp.NewInMemoryTransports()
	ss, err := s.server.Connect(t.Context(), s.bridge.Transport(there), nil)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := mcpbridge.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).
		Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		ss.Wait()
	})
	return cs
}

var fourKinds = []interrupt.Facility{interrupt.FacilityPermission, interrupt.FacilitySelection, interrupt.FacilityForm, interrupt.FacilityURL}

// A server's questions go to the person of whoever uses it, in rounds of the user's own gate, which
// is opened anew before each answer; the server's tool runs once, and no round is sent twice.
func TestClientHandler(t *testing.T) {
	var effects counter
	s := memSite(t, nil, everyKind(), deploy(&effects, nil))
	store := memstore.New()
	request := gate.Call{Tool: "using", Arguments: json.RawMessage(`{}`), Scope: "ann", Session: "s", Facilities: fourKinds}
	var messages []string
	var outcome gate.Outcome
	answers := []string{
		`{"optionId":"allow_once"}`, `{"content":{"decision":"allow_once"}}`, `{"content":{"choice":"0"}}`,
		`{"content":{"name":"Ann","sure":true}}`, `{}`, `{"optionId":"allow_once"}`,
	}
	for i := range len(answers) + 1 {
		g, err := gate.Open(t.Context(), store, &gate.Options{
			Tools: []*gate.Tool{using(asking(t, s, modern), "every_kind", `{}`)}, Keys: [][]byte{testKey}, Logger: logger(t),
		})
		if err != nil {
			t.Fatal(err)
		}
		outcome, err = g.Invoke(t.Context(), request)
		if err != nil {
			t.Fatalf("round %d: %v (%v)", i, err, errors.Unwrap(err))
		}
		if i < len(answers) {
			q := outcome.Prompt.Questions[0]
			messages = append(messages, string(q.Body))
			request.Token, request.Answers = outcome.Prompt.Token, gate.Answers{q.ID: json.RawMessage(answers[i])}
		}
		if err := g.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if want := `"{\"choice\":\"north\",\"form\":{\"name\":\"Ann\",\"sure\":true}}"`; string(outcome.Result) != want {
		t.Errorf("result %s, want %s", outcome.Result, want)
	}
	for i, part := range []string{"Use the site?", "the site asks: Go on?", "the site asks: every_kind asks", "the site asks: Who?",
		"the site asks: Connect your account", "Keep it?"} {
		if !strings.Contains(messages[i], part) {
			t.Errorf("question %d: %s, want %q", i+1, messages[i], part)
		}
	}
}

// A no is the server's to know, and what it makes of it is the call's result.
func TestClientHandlerDeclines(t *testing.T) {
	for action, want := range map[string]string{"decline": `"declined: the person declined to answer"`, "cancel": `"cancelled: the person broke off"`} {
		var effects counter
		s := memSite(t, nil, deploy(&effects, nil))
		tool := using(asking(t, s, modern), "deploy", `{"service":"api"}`)
		g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}})
		request := gate.Call{Tool: "using", Arguments: json.RawMessage(`{}`), Scope: "ann", Session: "s", Facilities: fourKinds}
		var outcome gate.Outcome
		for _, answer := range []string{"", `{"optionId":"allow_once"}`, `{"action":"` + action + `"}`, `{"optionId":"allow_once"}`} {
			if answer != "" {
				request.Token = outcome.Prompt.Token
				request.Answers = gate.Answers{outcome.Prompt.Questions[0].ID: json.RawMessage(answer)}
			}
			var err error
			if outcome, err = g.Invoke(t.Context(), request); err != nil {
				t.Fatalf("after %s: %v (%v)", answer, err, errors.Unwrap(err))
			}
		}
		if string(outcome.Result) != want {
			t.Errorf("result %s, want %s", outcome.Result, want)
		}
		effects.want(t, 0)
	}
}

// What a server must not ask, or what cannot be shown, is asked of nobody; a refusal by the
// protocol is told.
func TestClientHandlerRefuses(t *testing.T) {
	native := func(requests mcp.InputRequestMap) *site {
		s := memSite(t, nil)
		s.server.AddTool(&mcp.Tool{Name: "tool", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{InputRequests: requests, RequestState: "x"}, nil
			})
		return s
	}
	asksFor := func(schema string) mcp.InputRequestMap {
		return mcp.InputRequestMap{"x": &mcp.ElicitParams{Message: "?", RequestedSchema: json.RawMessage(schema)}}
	}
	for name, tc := range map[string]struct {
		requests mcp.InputRequestMap
		text     string
	}{
		"a secret": {asksFor(`{"type":"object","properties":{"apiKey":{"type":"string"}}}`), `the site asks for a secret, "apiKey", in a form`},
		"nested":   {asksFor(`{"type":"object","properties":{"a":{"type":"object"}}}`), "the site asks what cannot be shown"},
		"rounded": {asksFor(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}`),
			`the site asks for a number, "n", with a bound beyond`},
		"plain http":        {mcp.InputRequestMap{"x": &mcp.ElicitParams{Mode: "url", Message: "?", URL: "http://example.com"}}, "the site asks what cannot be shown"},
		"a mode of its own": {mcp.InputRequestMap{"x": &mcp.ElicitParams{Mode: "voice", Message: "?"}}, `the site asks in the mode "voice"`},
		//lint:ignore SA1019 what is deprecated is asked for all the same
		"roots":           {mcp.InputRequestMap{"x": &mcp.ListRootsParams{}}, "the site asks for something that is no question"},
		"nothing, really": {mcp.InputRequestMap{}, "the site is busy"},
	} {
		e := failing(t, asking(t, native(tc.requests), modern), "tool", gate.ErrFailed)
		if !strings.HasPrefix(e.Message, tc.text) {
			t.Errorf("%s: %q, want %q", name, e.Message, tc.text)
		}
	}
	if e := failing(t, asking(t, memSite(t, nil), modern), "none", gate.ErrFailed); !strings.HasPrefix(e.Message, "the site refused the call") {
		t.Errorf("unknown tool: %q", e.Message)
	}
	closing := memSite(t, nil)
	closing.server.AddTool(&mcp.Tool{Name: "tool", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, &jsonrpc.Error{Code: -32004, Message: "server is closing"}
		})
	if e := failing(t, asking(t, closing, modern), "tool", gate.ErrFailed); strings.HasPrefix(e.Message, "the site refused") { // nobody knows
		t.Errorf("a closing server: %q", e.Message)
	}
	gone := asking(t, memSite(t, nil), modern)
	gone.Close()
	if e := failing(t, gone, "tool", gate.ErrFailed); strings.HasPrefix(e.Message, "the site refused") { // nobody knows
		t.Errorf("a closed connection: %q", e.Message)
	}
}

// failing allows the first question of using and wants that end.
func failing(t *testing.T, session *mcp.ClientSession, tool string, want gate.Code) *gate.Error {
	t.Helper()
	g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{using(session, tool, `{}`)}})
	request := gate.Call{Tool: "using", Arguments: json.RawMessage(`{}`), Scope: "ann", Session: "s", Facilities: fourKinds}
	outcome, err := g.Invoke(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	request.Token = outcome.Prompt.Token
	request.Answers = gate.Answers{outcome.Prompt.Questions[0].ID: json.RawMessage(`{"optionId":"allow_once"}`)}
	_, err = g.Invoke(t.Context(), request)
	e, ok := errors.AsType[*gate.Error](err)
	if !ok || e.Code != want {
		t.Fatalf("%v, want %s", err, want)
	}
	return e
}

// A result that cannot be kept is returned all the same; after another question nobody knows it.
func TestClientHandlerLargeResult(t *testing.T) {
	s := memSite(t, nil, raw("large", func(context.Context) (any, error) { return strings.Repeat("x", 100<<10), nil }, nil))
	session := asking(t, s, modern)
	large := &mcp.CallToolParams{Name: "large"}
	alone, asks := plain("alone", mcpbridge.NewClientHandler("the site", session, nil), large), using(session, "large", `{}`)
	g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{alone, asks}})
	if _, result := newPlay(g, "alone").through(t); len(result) != 100<<10+2 {
		t.Errorf("a result of %d bytes", len(result))
	}
	p := newPlay(g, "using")
	p.through(t, `{"optionId":"allow_once"}`)
	if err := p.answer(t.Context(), `{"optionId":"allow_once"}`); !errors.Is(err, gate.ErrOutcomeUnknown) {
		t.Errorf("end %v", err)
	}
}
