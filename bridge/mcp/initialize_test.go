package mcpbridge_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/gate"
)

// A session that was initialized with 2026-07-28 is one of 2025-11-25 in all things.
func TestInitializedWithALaterProtocol(t *testing.T) {
	for _, version := range []string{modern, "2099-01-01"} {
		var effects counter
		c := dialRaw(t, memSite(t, nil, deploy(&effects, nil), rounds(2)), true)
		if text := c.initialize(version); !strings.Contains(text, `"protocolVersion":"2025-11-25"`) {
			t.Fatalf("negotiated %s", text)
		}
		c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"rounds","arguments":{}}}`)
		for range 2 {
			if text := c.read(); !strings.Contains(text, `"method":"elicitation/create"`) {
				t.Fatalf("want a question, have %s", text)
			}
			c.send(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"choice":"0"}}}`)
			c.send(`{"jsonrpc":"2.0","id":2,"result":{"action":"accept","content":{"choice":"0"}}}`)
		}
		if text := c.read(); strings.Contains(text, "resultType") || !strings.Contains(text, `"done"`) {
			t.Errorf("result %s", text)
		}
	}
}

// An eager client sends its own latest protocol with the initialize, in the body and in the header,
// before anything is negotiated, as real ones do.
type eager struct {
	bearer
	version string
}

func (e eager) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(body, []byte(`"method":"initialize"`)) {
			body = bytes.ReplaceAll(body, []byte(legacy), []byte(e.version))
			r = r.Clone(r.Context())
			r.Header.Set("Mcp-Protocol-Version", e.version)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return e.bearer.RoundTrip(r)
}

// Over HTTP, too: in a session its client is asked as in 2025-11-25, and without one it cannot be.
func TestInitializedWithALaterProtocolOverHTTP(t *testing.T) {
	for _, version := range []string{modern, "2099-01-01"} {
		for _, stateless := range []bool{false, true} {
			var effects counter
			s := memSite(t, &mcpbridge.Options{Authorize: byUser}, deploy(&effects, nil))
			h := s.bridge.HTTPHandler(&mcp.StreamableHTTPOptions{Stateless: stateless})
			server := httptest.NewServer(auth.RequireBearerToken((&users{}).verify, nil)(h))
			t.Cleanup(server.Close)
			p := answering("accept:" + allow)
			transport := &mcp.StreamableClientTransport{
				Endpoint: server.URL, HTTPClient: &http.Client{Transport: eager{bearer{"ann"}, version}},
			}
			cs := client(t, transport, legacy, p)
			t.Cleanup(func() { cs.Close() })
			if got := cs.InitializeResult().ProtocolVersion; got != legacy || (cs.ID() == "") != stateless {
				t.Errorf("negotiated %s in session %q", got, cs.ID())
			}
			result := call(t, cs, "deploy", `{"service":"api"}`)
			if stateless {
				wantEnding(t, result, gate.ErrConfirmationRequired)
				p.want(t, 0)
				continue
			}
			wantText(t, result, "deployed api")
			p.want(t, 1)
		}
	}
}

// An initialize that is a request of 2026-07-28 by all that such a request has is of a method that is
// not there.
func TestInitializeIsNoMethodOf2026(t *testing.T) {
	h := memSite(t, nil).bridge.HTTPHandler(nil)
	r := httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{},`+
			`"clientInfo":{"name":"c","version":"1"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}`))
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": modern, "Mcp-Method": "initialize",
	} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if !strings.Contains(w.Body.String(), `"code":-32601`) {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}
