package mcpbridge_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// A pipe is a transport that reads one message.
type pipe struct {
	mcp.Connection
	message jsonrpc.Message
}

func (p pipe) Connect(context.Context) (mcp.Connection, error) { return p, nil }
func (p pipe) Read(context.Context) (jsonrpc.Message, error)   { return p.message, nil }

// Whatever a message is, the bridge's transport hands on one that says the same to the SDK, but for
// the input responses of its own tools, a state that is no string, an answer that the SDK cannot
// decode, and its note in _meta.
func FuzzTransport(f *testing.F) {
	tool := form(anyNumbers)
	g, err := gate.Open(f.Context(), memstore.New(), &gate.Options{Tools: []*gate.Tool{tool}, Keys: [][]byte{testKey}})
	if err != nil {
		f.Fatal(err)
	}
	bridge, err := mcpbridge.New(mcp.NewServer(&mcp.Implementation{Name: "site"}, nil), g, nil)
	if err != nil {
		f.Fatal(err)
	}
	if err := bridge.AddTool(tool, nil); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		message, err := jsonrpc.DecodeMessage(body)
		if err != nil {
			return
		}
		before := said(message)
		connection, err := bridge.Transport(pipe{message: message}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		through, err := connection.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if after := said(through); before != after {
			t.Errorf("%s\nsaid %s\nand now %s", body, before, after)
		}
	})
}

// said is what a message says without what the transport may change. Of two members of a name the
// last one counts, as for the SDK.
func said(m jsonrpc.Message) string {
	var part json.RawMessage
	switch m := m.(type) {
	case *jsonrpc.Request:
		part = m.Params
	case *jsonrpc.Response:
		part = m.Result
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(part, &members) != nil || members == nil {
		return string(part)
	}
	delete(members, "inputResponses")
	delete(members, "_meta")
	isAction := func(name string) bool { return strings.EqualFold(name, "action") }
	var answer struct {
		Action  string
		Content map[string]any
	}
	if slices.ContainsFunc(slices.Collect(maps.Keys(members)), isAction) && json.Unmarshal(part, &answer) != nil {
		return "{}"
	}
	if state := string(members["requestState"]); state != "null" && !strings.HasPrefix(state, `"`) || state == `"-"` {
		delete(members, "requestState")
	}
	out, _ := json.Marshal(members)
	return string(out)
}

// Whatever a client answers, the tool runs only for one of the options as they were offered, and a
// reply is always one of the protocol's.
func FuzzAnswer(f *testing.F) {
	f.Fuzz(func(t *testing.T, response string) {
		if !json.Valid([]byte(response)) {
			return
		}
		var effects counter
		c := dialRaw(t, memSite(t, nil, deploy(&effects, nil)), true)
		key, state := c.asked("deploy", `{"service":"api"}`, "")
		r := c.round("deploy", `{"service":"api"}`, responses(key, state, response))
		var answer struct {
			Action  string
			Content struct{ Decision string }
		}
		// Without an error the answer reads as a yes to any reader.
		yes := json.Unmarshal([]byte(response), &answer) == nil && answer.Action == "accept" && answer.Content.Decision == "allow_once"
		if done := r.Error == nil && !r.Result.IsError && r.Result.ResultType == "complete"; done && !yes {
			t.Errorf("%s deployed", response)
		} else if done {
			effects.want(t, 1)
		} else {
			effects.want(t, 0)
		}

		if !strings.HasPrefix(response, "{") {
			return
		}
		old := dialRaw(t, memSite(t, nil, deploy(&effects, nil)), true)
		old.initialize(legacy)
		old.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"deploy","arguments":{"service":"api"}}}`)
		old.read()
		old.send(`{"jsonrpc":"2.0","id":1,"result":` + response + `}`)
		text := old.read()
		if deployed := strings.Contains(text, `"deployed api"`); deployed && !yes {
			t.Errorf("%s deployed in a session: %s", response, text)
		}
	})
}
