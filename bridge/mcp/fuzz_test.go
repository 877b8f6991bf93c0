package mcpbridge_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// Whatever a body is, the bridge's handler hands on a message that says the same, but for the input
// responses of its own tools and its note in _meta; a member that is there twice is refused.
func FuzzHandler(f *testing.F) {
	tool := form(anyNumbers)
	g, err := gate.Open(f.Context(), memstore.New(), &gate.Options{Tools: []*gate.Tool{tool}, Keys: [][]byte{testKey}})
	if err != nil {
		f.Fatal(err)
	}
	bridge, err := mcpbridge.New(mcp.NewServer(&mcp.Implementation{Name: "site"}, nil), g, nil)
	if err != nil {
		f.Fatal(err)
	}
	if err := mcpbridge.AddTool[any](bridge, tool, nil); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var through []byte
		h := bridge.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			through, _ = io.ReadAll(r.Body)
		}))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)))
		if w.Code != http.StatusOK {
			return
		}
		before, after := plainMessage(body), plainMessage(through)
		if before != after {
			t.Errorf("%s\nbecame %s:\n%s\nis not %s", body, through, before, after)
		}
	})
}

// plainMessage is a message without what the handler may change: the SDK's reading of a message is
// that of the last member of a name.
func plainMessage(body []byte) string {
	var m any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&m) != nil || d.More() {
		return string(bytes.TrimSpace(body))
	}
	all, batch := m.([]any)
	if !batch {
		all = []any{m}
	}
	for _, m := range all {
		message, _ := m.(map[string]any)
		for _, name := range []string{"params", "result"} {
			if part, ok := message[name].(map[string]any); ok {
				delete(part, "inputResponses")
				delete(part, "_meta")
			}
		}
	}
	out, _ := json.Marshal(m)
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
	})
}
