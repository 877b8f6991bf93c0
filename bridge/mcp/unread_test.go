package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// R15, R16: in a session an answer that cannot be read, or in two ways, is none: it is asked for again
// with the reason, and three in a row end the call.
func TestUnreadAnswers(t *testing.T) {
	var effects counter
	s := memSite(t, nil, deploy(&effects, nil))
	reasons := map[string]string{
		`{"action":"decline","action":"accept","content":{"decision":"allow_once"}}`:                   "/action: duplicate name",
		`{"action":"decline","Action":"accept","content":{"decision":"allow_once"}}`:                   `a member \"Action\"`,
		`{"action":"accept","content":{"decision":"reject_once"},"Content":{"decision":"allow_once"}}`: `a member \"Content\"`,
		`{"action":"accept","content":{"decision":"reject_once","decision":"allow_once"}}`:             "/content/decision: duplicate name",
		`{"action":"accept","roots":[],"content":{"decision":"allow_once"}}`:                           `a member \"roots\"`,
		`{"action":"YES","content":{"decision":"allow_once"}}`:                                         "none of accept, decline, cancel",
		`{"Action":"accept","content":{"decision":"allow_once"}}`:                                      `a member \"Action\"`,
		`{"action":["accept"],"content":{"decision":"allow_once"}}`:                                    "the action is not a string",
		`{"action":"accept","content":"allow_once"}`:                                                   "unknown member",
		`{"action":"accept","content":["allow_once"]}`:                                                 "unknown member",
		`{"action":"accept","content":{"decision":"allow_once"},"_meta":7}`:                            "it cannot be read",
		`{"action":"accept","content":{"decision":1e999}}`:                                             "decision: ",
	}
	for answer, reason := range reasons {
		c := dialRaw(t, s, true)
		c.initialize(legacy)
		c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"deploy","arguments":{"service":"api"}}}`)
		for n, want := range []string{"", reason, reason} {
			text := c.read()
			if !strings.Contains(text, "elicitation/create") || !strings.Contains(text, want) || strings.Contains(text, "Not accepted") != (n > 0) {
				t.Errorf("%s: asked the time %d: %s, want %q", answer, n+1, text, want)
			}
			c.send(`{"jsonrpc":"2.0","id":` + fmt.Sprint(n+1) + `,"result":` + answer + `}`)
		}
		text := c.read()
		var r reply
		if err := json.Unmarshal([]byte(text), &r); err != nil || !strings.Contains(string(r.Result.StructuredContent), `"code":"invalid_answer"`) ||
			!strings.Contains(string(r.Result.StructuredContent), `"interaction":"`) {
			t.Errorf("%s: ended with %s", answer, text)
		}
	}
	effects.want(t, 0)
	c := dialRaw(t, s, true)
	c.initialize(legacy)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"deploy","arguments":{"service":"api"}}}`)
	for n, answer := range []string{`{"action":"accept","action":"accept"}`, `{"action":"accept"}`, `{"action":"accept","content":` + allow + `}`} {
		c.read()
		c.send(`{"jsonrpc":"2.0","id":` + fmt.Sprint(n+1) + `,"result":` + answer + `}`)
	}
	if text := c.read(); !strings.Contains(text, "deployed api") {
		t.Errorf("ended with %s", text)
	}
	effects.want(t, 1)
}

// What the server asks beside the bridge is answered as the SDK has it.
func TestOwnElicitation(t *testing.T) {
	s := memSite(t, nil)
	s.server.AddTool(&mcp.Tool{Name: "own", InputSchema: map[string]any{"type": "object"}},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?"})
			if err != nil {
				return nil, &jsonrpc.Error{Code: 1, Message: "no answer"}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Action, answer.Content, len(answer.Meta))}}}, nil
		})
	for answer, want := range map[string]string{
		`{"action":"accept","content":{"a":1}}`: "acceptmap[a:1] 0", `{"action":"accept","content":7}`: "no answer", `{"action":7}`: "no answer",
	} {
		c := dialRaw(t, s, true)
		c.initialize(legacy)
		c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"own","arguments":{}}}`)
		c.read()
		c.send(`{"jsonrpc":"2.0","id":1,"result":` + answer + `}`)
		if text := c.read(); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %q", answer, text, want)
		}
	}
}
