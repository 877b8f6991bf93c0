package mcpbridge_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
)

// A lineClient speaks over pipes, in lines of its own.
type lineClient struct {
	t     *testing.T
	out   io.WriteCloser
	lines chan string
}

func dialLines(t *testing.T, s *site, most int) *lineClient {
	t.Helper()
	there, out := io.Pipe()
	in, back := io.Pipe()
	ss, err := s.server.Connect(t.Context(), s.bridge.Transport(&mcp.IOTransport{Reader: there, Writer: back, MaxLineLength: most}), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &lineClient{t, out, make(chan string, 100)}
	go func() {
		defer close(c.lines)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			c.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		out.Close()
		ss.Wait()
		back.Close()
	})
	return c
}

func (c *lineClient) write(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.out, format+"\n", args...); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

func (c *lineClient) read() (line string, id json.RawMessage) {
	c.t.Helper()
	select {
	case line := <-c.lines:
		var m struct{ ID json.RawMessage }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			c.t.Fatalf("%q: %v", line, err)
		}
		return line, m.ID
	case <-time.After(10 * time.Second):
		c.t.Fatal("the server says nothing")
		return "", nil
	}
}

func (c *lineClient) initialize() {
	c.t.Helper()
	c.write(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"elicitation":{}},`+
		`"clientInfo":{"name":"c","version":"1"}}}`, legacy)
	c.read()
	c.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// garbage are lines that are no messages of JSON-RPC.
var garbage = []string{`{{{`, `[]`, `[{}]`, `null`, `"x"`, ``, `{"id":{},"jsonrpc":"2.0","method":"ping"}`, `{"id":7,"method":"ping"}`, `{"jsonrpc":"2.0","id":7,"method":5}`}

// R15, R16: a response that can be read in two ways is no answer, whatever the ways are. It is asked
// again, and the answer to that counts. What is no message at all ends nothing.
func TestLinesInTwoWays(t *testing.T) {
	const yes, no = `{"action":"accept","content":` + allow + `}`, `{"action":"accept","content":` + reject + `}`
	for name, form := range map[string]string{
		"the result twice":                   `{"jsonrpc":"2.0","id":%[1]s,"result":%[2]s,"result":%[3]s}`,
		"the result in two cases":            `{"jsonrpc":"2.0","id":%[1]s,"Result":%[2]s,"result":%[3]s}`,
		"the result in two cases, the other": `{"jsonrpc":"2.0","id":%[1]s,"result":%[3]s,"RESULT":%[2]s}`,
		"the result in another case alone":   `{"jsonrpc":"2.0","id":%[1]s,"Result":%[3]s}`,
		"the id twice":                       `{"jsonrpc":"2.0","id":999,"id":%[1]s,"result":%[3]s}`,
		"a result and an error":              `{"jsonrpc":"2.0","id":%[1]s,"error":{"code":-32603,"message":"no"},"result":%[3]s}`,
		"a result and an error, in a case":   `{"jsonrpc":"2.0","id":%[1]s,"Error":{"code":-32603,"message":"no"},"result":%[3]s}`,
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			c := dialLines(t, memSite(t, nil, deploy(&effects, nil)), 0)
			c.initialize()
			c.write(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"deploy","arguments":{"service":"api"}}}`)
			_, id := c.read()
			for _, line := range garbage {
				c.write("%s", line)
			}
			c.write(form, id, no, yes)
			line, id := c.read()
			if !strings.Contains(line, "elicitation/create") || !strings.Contains(line, "Not accepted: it can be read in two ways") {
				t.Fatalf("have %s", line)
			}
			c.write(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, no)
			if line, _ := c.read(); !strings.Contains(line, string(gate.ErrRejected)) {
				t.Errorf("have %s", line)
			}
			effects.want(t, 0)
		})
	}
}

// R15: so is a request, of every protocol; nothing of it is done.
func TestRequestLinesInTwoWays(t *testing.T) {
	var effects counter
	s := memSite(t, nil, deploy(&effects, nil))
	asked := call(t, connect(t, s, modern, &person{}, byHand), "deploy", `{"service":"api"}`)
	key, _ := only(t, asked)
	params := func(answer, members string) string {
		return fmt.Sprintf(`{"name":"deploy","arguments":{"service":"api"},"requestState":%q,"inputResponses":{%q:{"action":"accept","content":%s}}%s,`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}`,
			asked.RequestState, key, answer, members)
	}
	c := dialLines(t, s, 0)
	for _, members := range []string{
		`"params":` + params(reject, "") + `,"params":` + params(allow, ""),
		`"Params":` + params(reject, "") + `,"params":` + params(allow, ""),
		`"params":` + params(allow, `,"InputResponses":{}`),
		`"params":` + params(allow, `,"Arguments":{"service":"web"}`),
		`"method":"tools/call","params":` + params(allow, ""),
	} {
		c.write(`{"jsonrpc":"2.0","id":3,"method":"tools/call",%s}`, members)
		if line, _ := c.read(); !strings.Contains(line, `"error":{"code":-32602,"message":"invalid params: a member is there twice`) || strings.Contains(line, "allow_once") {
			t.Errorf("%s: have %s", members, line)
		}
	}
	effects.want(t, 0)
	c.write(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":%s}`, params(allow, ""))
	if line, _ := c.read(); !strings.Contains(line, "deployed api") {
		t.Errorf("have %s", line)
	}
	effects.want(t, 1)
}

// A line that is longer than the transport takes ends the connection, and no more is kept of it
// than that.
func TestLongLine(t *testing.T) {
	c := dialLines(t, memSite(t, nil, deploy(new(counter), nil)), 200<<10)
	c.initialize()
	c.write(`{"jsonrpc":"2.0","id":2,"method":"ping","params":{"_meta":{"x":%q}}}`, strings.Repeat("x", 100<<10))
	if line, _ := c.read(); !strings.Contains(line, `"id":2`) {
		t.Errorf("have %s", line)
	}
	if _, err := io.Copy(c.out, io.LimitReader(endless{}, 1<<20)); err == nil {
		t.Error("a line of a MiB was read")
	}
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
