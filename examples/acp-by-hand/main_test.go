package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/acp-go-sdk"
)

// The tests run the program as an editor does: as a process of its own, over its standard input and
// output.
func TestMain(m *testing.M) {
	if os.Getenv("ACP_BY_HAND_CHILD") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// An editor answers what it is asked, and remembers what it was told.
type editor struct {
	acp.Client
	answer func(ctx context.Context) acp.RequestPermissionOutcome

	mu    sync.Mutex
	asked []string
	told  []string
}

func (e *editor) tell(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, line)
}

func (e *editor) RequestPermission(ctx context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	e.mu.Lock()
	e.asked = append(e.asked, *r.ToolCall.Title)
	e.mu.Unlock()
	return acp.RequestPermissionResponse{Outcome: e.answer(ctx)}, nil
}

func (e *editor) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	switch u := n.Update; {
	case u.AgentMessageChunk != nil:
		e.tell(u.AgentMessageChunk.Content.Text.Text)
	case u.ToolCall != nil:
		e.tell(string(u.ToolCall.Status))
	case u.ToolCallUpdate != nil:
		e.tell(string(*u.ToolCallUpdate.Status))
	}
	return nil
}

func choosing(option acp.PermissionOptionId) func(context.Context) acp.RequestPermissionOutcome {
	return func(context.Context) acp.RequestPermissionOutcome {
		return acp.NewRequestPermissionOutcomeSelected(option)
	}
}

// start starts the agent and connects the editor with it. kill ends the process as it stands.
func start(t *testing.T, dir string, e *editor) (conn *acp.ClientSideConnection, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-dir", dir, "-key", filepath.Join(dir, "key"))
	cmd.Stderr, cmd.Env = os.Stderr, append(os.Environ(), "ACP_BY_HAND_CHILD=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn = acp.NewClientSideConnection(e, in, out)
	if _, err := conn.Initialize(t.Context(), acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber}); err != nil {
		t.Fatal(err)
	}
	var killed atomic.Bool
	wait := sync.OnceValue(cmd.Wait)
	kill = func() {
		killed.Store(cmd.Process.Kill() == nil)
		_ = wait()
	}
	t.Cleanup(func() {
		in.Close()
		if err := wait(); err != nil && !killed.Load() {
			t.Error(err)
		}
	})
	return conn, kill
}

func begin(t *testing.T, conn *acp.ClientSideConnection) acp.SessionId {
	t.Helper()
	s, err := conn.NewSession(t.Context(), acp.NewSessionRequest{Cwd: "/", McpServers: []acp.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	return s.SessionId
}

// wants sends a message, and wants the turn to end that way, and the editor to have been asked and
// told that. What comes first of a question and its call this client does not say.
func (e *editor) wants(
	t *testing.T, conn *acp.ClientSideConnection, session acp.SessionId, text string, stop acp.StopReason, asked string, told ...string,
) {
	t.Helper()
	r, err := conn.Prompt(t.Context(), acp.PromptRequest{SessionId: session, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
	if err != nil || r.StopReason != stop {
		t.Errorf("%q ends with %q, %v, want %q", text, r.StopReason, err, stop)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if have, want := strings.Join(e.told, ", "), strings.Join(told, ", "); have != want {
		t.Errorf("%q: have %s\nwant %s", text, have, want)
	}
	if have := strings.Join(e.asked, ", "); have != asked {
		t.Errorf("%q: asked %q, want %q", text, have, asked)
	}
	e.told, e.asked = nil, nil
}

// What the person allows is done, what they reject is not, and what they break off ends the turn.
func TestAnswers(t *testing.T) {
	e := &editor{answer: choosing("allow_once")}
	conn, _ := start(t, t.TempDir(), e)
	session := begin(t, conn)
	e.wants(t, conn, session, "deploy api", acp.StopReasonEndTurn, "Deploy api to production",
		"pending", "in_progress", "completed", "api is deployed\n")
	e.answer = choosing("reject_once")
	e.wants(t, conn, session, "deploy web", acp.StopReasonEndTurn, "Deploy web to production",
		"pending", "failed", "the person rejected it\n")
	e.answer = func(context.Context) acp.RequestPermissionOutcome { return acp.NewRequestPermissionOutcomeCancelled() }
	e.wants(t, conn, session, "deploy web", acp.StopReasonCancelled, "Deploy web to production",
		"pending", "failed", "the person broke off\n")
	e.wants(t, conn, session, "thanks", acp.StopReasonEndTurn, "")
}

// The agent is killed in the middle of a question. Loading the session shows the call, and the next
// message puts the question again.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	var kill func()
	first := &editor{answer: func(ctx context.Context) acp.RequestPermissionOutcome {
		kill()
		<-ctx.Done()
		return acp.NewRequestPermissionOutcomeCancelled()
	}}
	var conn *acp.ClientSideConnection
	conn, kill = start(t, dir, first)
	session := begin(t, conn)
	request := acp.PromptRequest{SessionId: session, Prompt: []acp.ContentBlock{acp.TextBlock("deploy api")}}
	if _, err := conn.Prompt(t.Context(), request); err == nil {
		t.Fatal("a killed agent answered")
	}
	second := &editor{answer: choosing("allow_once")}
	conn, _ = start(t, dir, second)
	if _, err := conn.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: "another", Cwd: "/", McpServers: []acp.McpServer{}}); err == nil {
		t.Error("a session that there is not")
	}
	if _, err := conn.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: session, Cwd: "/", McpServers: []acp.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	second.wants(t, conn, session, "go on", acp.StopReasonEndTurn, "Deploy api to production",
		"pending", "pending", "in_progress", "completed", "api is deployed\n")
	second.wants(t, conn, session, "thanks", acp.StopReasonEndTurn, "")
}
