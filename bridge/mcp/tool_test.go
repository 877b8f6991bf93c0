package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

type weatherResult struct {
	Degrees int    `json:"degrees"`
	Sky     string `json:"sky,omitempty"`
}

type place struct {
	Town string `json:"town" jsonschema:"where"`
}

func weatherTool() *gate.Tool {
	return gate.NewTool("weather", func(context.Context, place) (weatherResult, error) {
		return weatherResult{Degrees: 7, Sky: "grey"}, nil
	},
		&gate.ToolOptions{Title: "Weather", Description: "Tells the weather."})
}

// What a client sees of a tool is what the gate and the options say; what else the server has is
// untouched.
func TestShownTool(t *testing.T) {
	tool := weatherTool()
	s := newSite(t, openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}}), nil)
	err := s.bridge.AddTool(tool, &mcpbridge.ToolOptions{Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}})
	if err != nil {
		t.Fatal(err)
	}
	s.server.AddTool(&mcp.Tool{Name: "native", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if req.Params.InputResponses != nil {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "answered"}}}, nil
			}
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"x": &mcp.ElicitParams{Message: "?"}}}, nil
		})
	for _, version := range protocols {
		cs := connect(t, s, version, answering("accept"))
		listed, err := cs.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		shown := listed.Tools[1]
		got, _ := json.Marshal([]any{shown.Name, shown.Title, shown.Description, shown.Annotations.ReadOnlyHint, shown.InputSchema, shown.OutputSchema})
		want := `["weather","Weather","Tells the weather.",true,` +
			`{"additionalProperties":false,"properties":{"town":{"description":"where","type":"string"}},"required":["town"],"type":"object"},` +
			`{"anyOf":[{"additionalProperties":false,"properties":{"degrees":{"type":"integer"},"sky":{"type":"string"}},` +
			`"required":["degrees"],"type":"object"},{"description":"how the work ended that brought no result","properties":{` +
			`"code":{"type":"string"},"ended":{"type":"string"},"interaction":{"type":"string"},"link":{"type":"string"},` +
			`"message":{"type":"string"}},"required":["code","message"],"title":"Ending","type":"object"}],"type":"object"}]`
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		result := call(t, cs, "weather", `{"town":"Bonn"}`)
		wantText(t, result, `{"degrees":7,"sky":"grey"}`)
		if structured, _ := json.Marshal(result.StructuredContent); string(structured) != `{"degrees":7,"sky":"grey"}` {
			t.Errorf("structured %s", structured)
		}
		wantEnding(t, call(t, cs, "weather", `{"town":7}`), gate.ErrInvalidArguments)
		wantEnding(t, call(t, cs, "weather", `{"town":"a","town":"b"}`), gate.ErrInvalidArguments)
		wantText(t, call(t, cs, "native", `{}`), "answered")
	}
}

// A result is an object in structured content, and else text; a projection says it in other words.
func TestResults(t *testing.T) {
	for result, want := range map[string]string{
		`"a word"`: `[{"type":"text","text":"a word"}] null`,
		`7`:        `[{"type":"text","text":"7"}] null`,
		`null`:     `[{"type":"text","text":"null"}] null`,
		`[1]`:      `[{"type":"text","text":"[1]"}] null`,
		`{"a":1}`:  `[{"type":"text","text":"{\"a\":1}"}] {"a":1}`,
	} {
		s := memSite(t, nil, raw("tool", func(context.Context) (any, error) { return json.RawMessage(result), nil }, nil))
		r := call(t, connect(t, s, legacy, nil), "tool", `{}`)
		content, _ := json.Marshal(r.Content)
		structured, _ := json.Marshal(r.StructuredContent)
		if got := string(content) + " " + string(structured); got != want || r.IsError {
			t.Errorf("%s: %s, want %s", result, got, want)
		}
	}
	project := func(w weatherResult) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: w.Sky}}}
	}
	structuring := func(content any) func(weatherResult) *mcp.CallToolResult {
		return func(w weatherResult) *mcp.CallToolResult {
			result := project(w)
			result.StructuredContent = content
			return result
		}
	}
	const same = `{"degrees":7,"sky":"grey"}`
	for name, tc := range map[string]struct {
		project          func(weatherResult) *mcp.CallToolResult
		text, structured string
	}{
		"other words": {project, "grey", same},
		"none":        {func(weatherResult) *mcp.CallToolResult { return nil }, same, same},
		"a panic":     {func(weatherResult) *mcp.CallToolResult { panic("no words") }, same, same},
		"a question": {func(weatherResult) *mcp.CallToolResult {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"x": &mcp.ElicitParams{}}}
		}, same, same},
		"other content":               {structuring(map[string]int{"degrees": 8}), "grey", `{"degrees":8}`},
		"content of another type":     {structuring(map[string]string{"degrees": "many"}), same, same},
		"content that is no object":   {structuring([]int{7}), same, same},
		"content that is a raw null":  {structuring(json.RawMessage("null")), same, same},
		"content that is none at all": {structuring(func() {}), same, same},
	} {
		tool := weatherTool()
		s := newSite(t, openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}}), nil)
		if err := s.bridge.AddTool(tool, &mcpbridge.ToolOptions{Project: mcpbridge.Project(tc.project)}); err != nil {
			t.Fatal(err)
		}
		r := call(t, connect(t, s, modern, nil), "weather", `{"town":"Bonn"}`)
		wantText(t, r, tc.text)
		if structured, _ := json.Marshal(r.StructuredContent); string(structured) != tc.structured {
			t.Errorf("%s: structured %s", name, structured)
		}
	}
}

// R1, R36: what a handler fails with stays with the host, but for what it made public; the SDK's
// own errors are no way around that.
func TestFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		text string
	}{
		"private": {errors.New("the password is 1234"), "failed: the tool failed"},
		"public": {&interrupt.Failure{Text: "no such town", Link: "https://example.com/towns", Err: errors.New("private")},
			"failed: no such town\nhttps://example.com/towns"},
		"of the SDK": {mcp.URLElicitationRequiredError([]*mcp.ElicitParams{{Mode: "url", URL: "https://example.com", Message: "go"}}),
			"failed: the tool failed"},
	} {
		s := memSite(t, nil, raw("tool", func(context.Context) (any, error) { return nil, tc.err }, nil))
		for _, version := range protocols {
			r := call(t, connect(t, s, version, nil), "tool", `{}`)
			wantEnding(t, r, gate.ErrFailed)
			if textOf(r) != tc.text {
				t.Errorf("%s: %q, want %q", name, textOf(r), tc.text)
			}
		}
	}
}

// R36: the host's log says what a handler failed with, and nothing of arguments that do not fit.
func TestCausesAreLogged(t *testing.T) {
	var book logbook
	log := slog.New(slog.NewTextHandler(&book, nil))
	failing := raw("tool", func(context.Context) (any, error) { return nil, errors.New("no disk at /srv") }, nil)
	typed := deploy(&counter{}, nil)
	s := newSite(t, openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{failing, typed}}), &mcpbridge.Options{Logger: log}, failing, typed)
	session := connect(t, s, protocols[0], nil)
	wantEnding(t, call(t, session, "tool", `{}`), gate.ErrFailed)
	wantEnding(t, call(t, session, "deploy", `{"service":["a secret"]}`), gate.ErrInvalidArguments)
	book.with(t, `level=WARN msg="mcp call ended" tool=tool code=failed`, `cause="no disk at /srv"`)
	book.without(t, "a secret")
}

// A result that breaks the schema which the tool published is no success to a client.
func TestResultOfAnotherType(t *testing.T) {
	tool := raw("tool", func(context.Context) (any, error) { return map[string]string{"degrees": "many"}, nil }, nil)
	s := newSite(t, openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}}), nil)
	schema := json.RawMessage(`{"type":"object","properties":{"degrees":{"type":"integer"}}}`)
	if err := s.bridge.AddTool(tool, &mcpbridge.ToolOptions{OutputSchema: schema}); err != nil {
		t.Fatal(err)
	}
	wantEnding(t, call(t, connect(t, s, modern, nil), "tool", `{}`), gate.ErrFailed)
}

// What is wrong with a tool or a bridge is an error when it is made.
func TestMistakes(t *testing.T) {
	none := func(context.Context) (any, error) { return nil, nil }
	good := raw("tool", none, nil)
	noSchema := gate.NewTool("no_schema", func(context.Context, place) (chan int, error) { return nil, nil }, nil)
	header := raw("header", none, &gate.ToolOptions{
		Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"a b"}}}`),
	})
	g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{good, noSchema, header}})
	s := newSite(t, g, nil)
	publishing := func(schema string) *mcpbridge.ToolOptions {
		return &mcpbridge.ToolOptions{OutputSchema: json.RawMessage(schema)}
	}
	if err := s.bridge.AddTool(good, publishing(`{"type":"object"}`)); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"no server":             second(mcpbridge.New(nil, g, nil)),
		"no gate":               second(mcpbridge.New(s.server, nil, nil)),
		"negative prompts":      second(mcpbridge.New(s.server, g, &mcpbridge.Options{MaxPrompts: -1})),
		"negative wire":         second(mcpbridge.New(s.server, g, &mcpbridge.Options{MaxWire: -1})),
		"no tool":               s.bridge.AddTool(nil, nil),
		"no handler":            s.bridge.AddTool(gate.NewRawTool("tool", nil, nil), nil),
		"not the gate's":        s.bridge.AddTool(raw("other", none, nil), nil),
		"only its name":         s.bridge.AddTool(raw("tool", none, nil), nil),
		"result is no object":   s.bridge.AddTool(good, publishing(`{"type":"string"}`)),
		"broken output schema":  s.bridge.AddTool(good, publishing(`{"type":"object","properties":7}`)),
		"reference to the root": s.bridge.AddTool(good, publishing(`{"type":"object","properties":{"a":{"items":[{"$ref":"#"}]}}}`)),
		"no schema":             s.bridge.AddTool(noSchema, nil),
		"the SDK's":             s.bridge.AddTool(header, nil),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second(_ *mcpbridge.Bridge, err error) error { return err }
