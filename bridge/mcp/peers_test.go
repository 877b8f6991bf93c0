package mcpbridge_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// peer runs a client of testdata/peers in Node.js. `make mcp-peers` installs them; MCP_PEERS=require
// fails where one cannot run, instead of skipping it.
func peer(t *testing.T, args ...string) []byte {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("MCP_PEERS") == "require" {
		missing = t.Fatalf
	}
	if _, err := exec.LookPath("node"); err != nil {
		missing("there is no Node.js: %v", err)
	}
	if _, err := os.Stat("testdata/peers/node_modules/@modelcontextprotocol"); err != nil {
		missing("the clients are not installed; run make mcp-peers: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = "testdata/peers"
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, &stderr)
	}
	return out
}

// The TypeScript SDKs, which are in most clients there are, in each protocol that they speak.
func TestTypeScriptClients(t *testing.T) {
	const calls = `[["deploy",{"service":"api"}],["deploy",{"service":"no"}],["every_kind",{}],["two_at_once",{}],` +
		`["weather",{"town":"Bonn"}],["weather",{"town":7}],["rounds",{}],["form",{}]]`
	for _, tc := range []struct{ script, era string }{
		{"v1.mjs", "legacy"}, {"v2.mjs", "legacy"}, {"v2.mjs", "modern"}, {"v2.mjs", "auto"},
	} {
		t.Run(tc.script+" "+tc.era, func(t *testing.T) {
			var effects counter
			weather := weatherTool()
			tools := []*gate.Tool{deploy(&effects, nil), everyKind(), twoAtOnce(), rounds(9),
				form(`{"type":"object","properties":{"password":{"type":"string"}}}`)}
			g := openGate(t, memstore.New(), gate.Options{Tools: append(tools, weather)})
			s := newSite(t, g, &mcpbridge.Options{Authorize: byUser}, tools...)
			if err := mcpbridge.AddTool[weatherResult](s.bridge, weather, nil); err != nil {
				t.Fatal(err)
			}
			out := peer(t, tc.script, serve(t, &users{}, s).URL, tc.era, calls)
			want := []string{
				`{"text":"deployed api","isError":false}`,
				`{"text":"declined: the person declined to answer","isError":true,"code":"declined"}`,
				`{"text":"{\"choice\":\"south\",\"form\":{\"count\":3,\"name\":\"Ann\",\"sure\":false,\"tags\":[\"a\",\"c\"]}}","isError":false}`,
				`{"text":"a {\"why\":\"so so\"}","isError":false}`,
				`{"text":"{\"degrees\":7,\"sky\":\"grey\"}","isError":false}`,
				`{"text":"invalid_arguments: tool \"weather\": /town: must be string","isError":true,"code":"invalid_arguments"}`,
				`{"text":"done","isError":false}`,
				`{"number":-32056,"data":{"code":"unsupported_form"}}`,
			}
			if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(string(out)), "\n")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			effects.want(t, 1)
		})
	}
}
