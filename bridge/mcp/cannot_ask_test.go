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
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A capable client has these capabilities and asks nobody.
func capable(caps *mcp.ElicitationCapabilities) func(*mcp.ClientOptions) {
	return func(o *mcp.ClientOptions) {
		o.Capabilities = &mcp.ClientCapabilities{Elicitation: caps}
		o.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	}
}

func stored(t *testing.T, store checkpoint.Store) int {
	t.Helper()
	page, err := store.List(t.Context(), checkpoint.Query{})
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Records)
}

// R13, M7: a client that cannot be asked is not asked: it is told which capability is needed, or
// the tool's guidance, and nothing is stored.
func TestMissingCapability(t *testing.T) {
	url := func(context.Context) (any, error) { return nil, interrupt.URL("Connect", "https://example.com") }
	choice := func(context.Context) (any, error) {
		return nil, interrupt.UserSelection(interrupt.UserChoice{Title: "a"}, interrupt.UserChoice{Title: "b"})
	}
	var runs counter
	tools := []*gate.Tool{
		raw("url", url, nil), raw("choice", choice, nil),
		raw("needs_url", func(context.Context) (any, error) { runs.add(); return nil, nil },
			&gate.ToolOptions{Needs: []interrupt.Facility{interrupt.FacilityURL}}),
		raw("guided", choice, &gate.ToolOptions{Guidance: "use the console", Link: "https://console.example.com"}),
	}
	store := memstore.New()
	s := newSite(t, openGate(t, store, gate.Options{Tools: tools}), nil, tools...)
	none := (*mcp.ElicitationCapabilities)(nil)
	forms, urls := &mcp.ElicitationCapabilities{}, &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}
	for _, tc := range []struct {
		tool string
		caps *mcp.ElicitationCapabilities
		want string // "": it is asked
	}{
		{"choice", none, `{"elicitation":{"form":{}}}`},
		{"choice", urls, `{"elicitation":{"form":{}}}`},
		{"url", none, `{"elicitation":{"url":{}}}`},
		{"url", forms, `{"elicitation":{"url":{}}}`},
		{"needs_url", forms, `{"elicitation":{"url":{}}}`},
	} {
		_, err := connect(t, s, modern, nil, capable(tc.caps)).CallTool(t.Context(), &mcp.CallToolParams{Name: tc.tool})
		wantError(t, err, mcp.CodeMissingRequiredClientCapabilities, gate.ErrConfirmationRequired)
		var data struct{ RequiredCapabilities json.RawMessage }
		wire, _ := errors.AsType[*jsonrpc.Error](err)
		if err := json.Unmarshal(wire.Data, &data); err != nil || string(data.RequiredCapabilities) != tc.want {
			t.Errorf("%s: required %s, want %s", tc.tool, data.RequiredCapabilities, tc.want)
		}
		for _, version := range sessions {
			result := call(t, connect(t, s, version, nil, capable(tc.caps)), tc.tool, `{}`)
			wantEnding(t, result, gate.ErrConfirmationRequired)
		}
	}
	// 2025-06-18 has no URLs, whatever a client declares.
	wantEnding(t, call(t, connect(t, s, oldest, nil, capable(both().Elicitation)), "url", `{}`), gate.ErrConfirmationRequired)
	for _, version := range protocols {
		ending := wantEnding(t, call(t, connect(t, s, version, nil, capable(none)), "guided", `{}`), gate.ErrConfirmationRequired)
		if ending.Message != "use the console" || ending.Link != "https://console.example.com" {
			t.Errorf("%s: %+v", version, ending)
		}
	}
	runs.want(t, 0)
	if n := stored(t, store); n != 0 {
		t.Errorf("%d records", n)
	}
}

// A custom question has no form in MCP, and no capability would help.
type custom struct{ Text string }

func (c *custom) TypeName() string           { return "mcpbridge_test.custom" }
func (c *custom) Serialize() ([]byte, error) { return json.Marshal(c) }
func (c *custom) Return([]byte) error        { return nil }
func (c *custom) Error() string              { return c.Text }

func init() { interrupt.Register(func() interrupt.Interrupt { return new(custom) }) }

func TestCustomQuestion(t *testing.T) {
	s := memSite(t, nil, raw("custom", func(context.Context) (any, error) { return nil, &custom{"?"} }, nil))
	_, err := connect(t, s, modern, &person{}).CallTool(t.Context(), &mcp.CallToolParams{Name: "custom"})
	wantError(t, err, mcpbridge.CodeUnsupportedForm, gate.ErrUnsupportedForm)
	wantEnding(t, call(t, connect(t, s, legacy, &person{}), "custom", `{}`), gate.ErrConfirmationRequired)
}

// R13, R31: where the host has an inbox, the question of a client that cannot be asked waits there,
// with its link; the same call goes on when it is answered, with its start ID or without one.
func TestAnsweredElsewhere(t *testing.T) {
	for _, version := range protocols {
		for _, startID := range []string{"", "work 1"} {
			t.Run(version+" "+startID, func(t *testing.T) {
				var effects counter
				tool := deploy(&effects, &gate.ToolOptions{})
				g := openGate(t, memstore.New(), gate.Options{
					Tools: []*gate.Tool{tool}, PromptLink: func(id checkpoint.ID) string { return "https://inbox.example.com/" + id.String() },
				})
				s := newSite(t, g, &mcpbridge.Options{OutOfBand: true, Authorize: func(context.Context, mcpbridge.Request) (mcpbridge.Grant, error) {
					return mcpbridge.Grant{Scope: "ann", StartID: startID}, nil
				}}, tool)
				var ending mcpbridge.Ending
				for range 2 { // the same call before the answer is at the same question
					before := ending
					ending = wantEnding(t, call(t, connect(t, s, version, nil), "deploy", `{"service":"api"}`), gate.ErrConfirmationRequired)
					if ending.Link != "https://inbox.example.com/"+ending.Interaction || before.Link != "" && before.Link != ending.Link {
						t.Fatalf("%+v, before %+v", ending, before)
					}
				}
				id, err := checkpoint.ParseID(ending.Interaction)
				if err != nil {
					t.Fatal(err)
				}
				err = g.Answer(t.Context(), gate.AnswerRequest{Interaction: id, Round: 1, Scope: "ann", By: "ann", Answers: gate.Answers{
					id.String() + ".1.1": json.RawMessage(`{"optionId":"allow_once"}`),
				}})
				if err != nil {
					t.Fatal(err)
				}
				wantText(t, call(t, connect(t, s, version, nil), "deploy", `{"service":"api"}`), "deployed api")
				effects.want(t, 1)
			})
		}
	}
}

// R13, R31: what a client that can be asked is not asked, since it does not fit, waits elsewhere only
// where its call finds it again: by a start ID.
func TestUnfitAnsweredElsewhere(t *testing.T) {
	for _, version := range []string{modern, legacy} {
		for _, startID := range []string{"", "work 1"} {
			t.Run(version+" "+startID, func(t *testing.T) {
				store := memstore.New()
				tool := form(`{"type":"object","properties":{"password":{"type":"string"}}}`)
				g := openGate(t, store, gate.Options{Tools: []*gate.Tool{tool}})
				s := newSite(t, g, &mcpbridge.Options{OutOfBand: true, Authorize: func(context.Context, mcpbridge.Request) (mcpbridge.Grant, error) {
					return mcpbridge.Grant{Scope: "ann", StartID: startID}, nil
				}}, tool)
				p := answering()
				cs := connect(t, s, version, p)
				if startID == "" {
					_, err := cs.CallTool(t.Context(), with("form", `{}`, "", nil))
					wantError(t, err, mcpbridge.CodeUnsupportedForm, gate.ErrUnsupportedForm)
					if n := stored(t, store); n != 0 {
						t.Errorf("%d records", n)
					}
					return
				}
				ending := wantEnding(t, call(t, cs, "form", `{}`), gate.ErrConfirmationRequired)
				id, err := checkpoint.ParseID(ending.Interaction)
				if err != nil {
					t.Fatal(err)
				}
				err = g.Answer(t.Context(), gate.AnswerRequest{Interaction: id, Round: 1, Scope: "ann", By: "ann", Answers: gate.Answers{
					id.String() + ".1.1": json.RawMessage(`{"content":{"password":"x"}}`),
				}})
				if err != nil {
					t.Fatal(err)
				}
				wantText(t, call(t, cs, "form", `{}`), `{"password":"x"}`)
				p.want(t, 0)
			})
		}
	}
}

// A tool can take that road for clients that could be asked, too.
func TestToolAnsweredElsewhere(t *testing.T) {
	var effects counter
	tool := deploy(&effects, &gate.ToolOptions{Guidance: "ask the release manager"})
	g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}})
	s := newSite(t, g, &mcpbridge.Options{OutOfBand: true})
	if err := s.bridge.AddTool(tool, &mcpbridge.ToolOptions{AnswerElsewhere: true}); err != nil {
		t.Fatal(err)
	}
	for _, version := range protocols {
		p := answering("accept:" + allow)
		ending := wantEnding(t, call(t, connect(t, s, version, p), "deploy", `{"service":"api"}`), gate.ErrConfirmationRequired)
		if ending.Message != "ask the release manager" || ending.Interaction == "" {
			t.Errorf("%+v", ending)
		}
		p.want(t, 0)
	}
	effects.want(t, 0)
	if err := newSite(t, g, nil).bridge.AddTool(tool, &mcpbridge.ToolOptions{AnswerElsewhere: true}); err == nil {
		t.Error("a bridge without an inbox takes it")
	}
}

// R34: what is too large for a message is not asked, and nothing is stored. The SDK writes a quote in
// the arguments as four bytes; HTML it escapes in results only.
func TestWireFormIsBounded(t *testing.T) {
	for _, version := range protocols {
		for char, asked := range map[string]int{`"`: 0, "<": 1} {
			store := memstore.New()
			var effects counter
			tool := deploy(&effects, nil)
			s := newSite(t, openGate(t, store, gate.Options{Tools: []*gate.Tool{tool}}), &mcpbridge.Options{MaxWire: 12 << 10}, tool)
			arguments, _ := json.Marshal(map[string]string{"service": strings.Repeat(char, 3<<10)})
			p := answering("accept:" + allow)
			_, err := connect(t, s, version, p).CallTool(t.Context(), &mcp.CallToolParams{Name: "deploy", Arguments: json.RawMessage(arguments)})
			if version == modern {
				asked = 0
			}
			if p.want(t, asked); asked > 0 {
				if err != nil {
					t.Errorf("%s: %v", version, err)
				}
				continue
			}
			wantError(t, err, mcpbridge.CodeUnsupportedForm, gate.ErrUnsupportedForm)
			if n := stored(t, store); n != 0 {
				t.Errorf("%d records", n)
			}
		}
	}
}
