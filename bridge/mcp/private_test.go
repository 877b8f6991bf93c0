package mcpbridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// A logbook keeps what is logged.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) with(t *testing.T, texts ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range texts {
		if !strings.Contains(l.text.String(), text) {
			t.Errorf("the log has no %q:\n%s", text, &l.text)
		}
	}
}

func (l *logbook) without(t *testing.T, private ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range private {
		if strings.Contains(l.text.String(), p) {
			t.Errorf("the log has %q:\n%s", p, &l.text)
		}
	}
}

// R20, R36: neither what a person answered nor a token is in an error or in the log, whatever the
// message was that had it. The SDK's own errors would have all of it.
func TestNothingPrivateIsTold(t *testing.T) {
	const private = "a-private-answer"
	var book logbook
	log := slog.New(slog.NewTextHandler(&book, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var effects counter
	tool := deploy(&effects, nil)
	g, err := gate.Open(t.Context(), memstore.New(), &gate.Options{Tools: []*gate.Tool{tool}, Keys: [][]byte{testKey}, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(context.Background()) })
	s := newSite(t, g, &mcpbridge.Options{Logger: log}, tool)

	c := dialRaw(t, s, true)
	key, state := c.asked("deploy", `{"service":"api"}`, "")
	yes := `"inputResponses":{"` + key + `":{"action":"accept","content":{"decision":"` + private + `"}}}`
	for name, tc := range map[string]struct {
		params string
		number int64
	}{
		"a state of another type": {`"arguments":{"service":"api"},"requestState":["` + state + `"],` + yes, mcpbridge.CodeInvalidContinuation},
		"a state that is none":    {`"arguments":{"service":"api"},"requestState":"x` + state + `",` + yes, mcpbridge.CodeInvalidContinuation},
		"other arguments":         {`"arguments":{"service":"db"},"requestState":"` + state + `",` + yes, mcpbridge.CodeInvalidContinuation},
		"meta of another type":    {`"arguments":{"service":"api"},"_meta":7,"requestState":"` + state + `",` + yes, jsonrpc.CodeInvalidParams},
		"responses of another type": {`"arguments":{"service":"api"},"requestState":"` + state + `","inputResponses":["` + private + `"]`,
			jsonrpc.CodeInvalidParams},
		"an action of another type": {`"arguments":{"service":"api"},"requestState":"` + state + `","inputResponses":{"` + key +
			`":{"action":["` + private + `"]}}`, jsonrpc.CodeInvalidParams},
		"an unknown member": {`"arguments":{"service":"api"},"requestState":"` + state + `","inputResponses":{"` + key +
			`":{"action":"accept","Content":"` + private + `"}}`, jsonrpc.CodeInvalidParams},
		"deep": {`"arguments":{"service":"api"},"requestState":"` + state + `","inputResponses":{"` + key +
			`":{"action":"accept","content":{"a":` + strings.Repeat("[", 500) + `"` + private + `"` + strings.Repeat("]", 500) + `}}}`,
			jsonrpc.CodeInvalidParams},
	} {
		c.send(`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"deploy",` + tc.params + `}}`)
		text := c.read()
		var r reply
		if err := json.Unmarshal([]byte(text), &r); err != nil || r.Error == nil || r.Error.Code != tc.number {
			t.Errorf("%s: %s, want number %d", name, text, tc.number)
		}
		if strings.Contains(text, private) || strings.Contains(text, state) || strings.Contains(text, "parley/") {
			t.Errorf("%s: told %s", name, text)
		}
	}

	// In an older session the answer is a response, which the SDK may fail to decode.
	for _, result := range []string{
		`{"action":["` + private + `"]}`, `{"action":"accept","content":"` + private + `"}`, `{"action":"accept","content":{"decision":"` + private + `"},"_meta":7}`,
	} {
		old := dialRaw(t, s, true)
		old.initialize(legacy)
		old.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"deploy","arguments":{"service":"api"}}}`)
		old.read()
		old.send(`{"jsonrpc":"2.0","id":1,"result":` + result + `}`)
		if text := old.read(); strings.Contains(text, private) {
			t.Errorf("%s: told %s", result, text)
		}
	}
	book.without(t, private, state)
	effects.want(t, 0)
}
