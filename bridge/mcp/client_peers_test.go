package mcpbridge_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// Servers of other SDKs ask the person of whoever uses them, one question after the other or both
// at once; no default is put into an answer.
func TestClientHandlerServersOfOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		server  func(t *testing.T) *exec.Cmd
		version string
	}{
		"TypeScript 1":  {func(t *testing.T) *exec.Cmd { return peer(t, "server-v1.mjs") }, legacy},
		"mcp-go legacy": {func(t *testing.T) *exec.Cmd { return exec.CommandContext(t.Context(), mcpGo(t), "serve") }, legacy},
		"mcp-go modern": {func(t *testing.T) *exec.Cmd { return exec.CommandContext(t.Context(), mcpGo(t), "serve") }, modern},
	} {
		t.Run(name, func(t *testing.T) {
			session, err := mcpbridge.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).
				Connect(t.Context(), &mcp.CommandTransport{Command: tc.server(t)}, &mcp.ClientSessionOptions{ProtocolVersion: tc.version})
			if err != nil {
				t.Fatal(err)
			}
			if got := session.InitializeResult().ProtocolVersion; got != tc.version {
				t.Errorf("protocol %s, want %s", got, tc.version)
			}
			h := mcpbridge.NewClientHandler("the site", session, nil)
			defer h.Close()
			tool := plain("using", h, &mcp.CallToolParams{Name: "book"})
			p := newPlay(openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}}), "using")
			p.through(t)
			for asked := 0; p.outcome.Prompt != nil; {
				p.request.Token, p.request.Answers = p.outcome.Prompt.Token, gate.Answers{}
				for _, q := range p.outcome.Prompt.Questions {
					asked++
					p.request.Answers[q.ID] = json.RawMessage(`{}`)
					if strings.Contains(string(q.Body), "Which seat?") {
						p.request.Answers[q.ID] = json.RawMessage(`{"content":{"seat":"aisle"}}`)
					}
				}
				if p.outcome, err = p.gate.Invoke(t.Context(), p.request); err != nil {
					t.Fatal(err)
				}
				if p.outcome.Prompt == nil && asked != 2 {
					t.Errorf("asked %d times", asked)
				}
			}
			if want := `"{\"seat\":\"aisle\"} accept"`; string(p.outcome.Result) != want {
				t.Errorf("result %s, want %s", p.outcome.Result, want)
			}
		})
	}
}
