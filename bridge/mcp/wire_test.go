package mcpbridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A rawClient sends JSON-RPC messages as they are written, and reads what comes.
type rawClient struct {
	t    *testing.T
	conn mcp.Connection
}

func dialRaw(t *testing.T, s *site, wrap bool) *rawClient {
	t.Helper()
	there, here := mcp.NewInMemoryTransports()
	var transport mcp.Transport = there
	if wrap {
		transport = s.bridge.Transport(there)
	}
	ss, err := s.server.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := here.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		ss.Wait()
	})
	return &rawClient{t, conn}
}

func (c *rawClient) send(text string) {
	c.t.Helper()
	message, err := jsonrpc.DecodeMessage([]byte(text))
	if err != nil {
		c.t.Fatalf("decode %s: %v", text, err)
	}
	if err := c.conn.Write(c.t.Context(), message); err != nil {
		c.t.Fatal(err)
	}
}

// initialize begins a session of an older protocol.
func (c *rawClient) initialize(version string) (reply string) {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	return c.read()
}

// read returns the next message as text.
func (c *rawClient) read() string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
	defer cancel()
	message, err := c.conn.Read(ctx)
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	raw, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(raw)
}

// A reply is a response, as far as tests look at it.
type reply struct {
	Result struct {
		ResultType        string
		RequestState      string
		InputRequests     map[string]json.RawMessage
		IsError           bool
		StructuredContent json.RawMessage
		Content           []struct{ Text string }
	}
	Error *struct {
		Code    int64
		Message string
		Data    json.RawMessage
	}
}

// round sends a tools/call of protocol 2026-07-28 with these further members of the params, and
// reads the response.
func (c *rawClient) round(tool, arguments, more string) reply {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}}}}` +
		more + `}}`)
	var r reply
	text := c.read()
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		c.t.Fatalf("read %s: %v", text, err)
	}
	return r
}

// asked is round for a call that asks one question; it returns its key and the state.
func (c *rawClient) asked(tool, arguments, more string) (key, state string) {
	c.t.Helper()
	r := c.round(tool, arguments, more)
	if r.Result.ResultType != "input_required" || len(r.Result.InputRequests) != 1 {
		c.t.Fatalf("want one input request, have %+v", r)
	}
	for key := range r.Result.InputRequests {
		return key, r.Result.RequestState
	}
	return "", ""
}

func responses(key, state, response string) string {
	return `,"requestState":"` + state + `","inputResponses":{"` + key + `":` + response + `}`
}

func indent(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return b.String()
}
