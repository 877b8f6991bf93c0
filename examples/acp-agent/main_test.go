package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/acp-go-sdk"
)

// The tests run the program as an editor does: as a process of its own, over its standard input and
// output.
func TestMain(m *testing.M) {
	if os.Getenv("ACP_AGENT_CHILD") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// An editor answers what it is asked, and remembers what it was told.
type editor struct {
	acp.Client
	answer func(ctx context.Context, r acp.RequestPermissionRequest) string
	fill   func(r acp.UnstableCreateElicitationForm) map[string]any // nil: it has no elicitations

	mu  sync.Mutex
	has remembered
}

type remembered struct {
	asked     []acp.RequestPermissionRequest
	said      string
	states    []string
	completed int // pages
}

func (e *editor) RequestPermission(ctx context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	e.mu.Lock()
	e.has.asked = append(e.has.asked, r)
	e.mu.Unlock()
	option := acp.PermissionOptionId(e.answer(ctx, r))
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(option)}, nil
}

// UnstableCreateElicitation accepts a page, and a form with what fill returns.
func (e *editor) UnstableCreateElicitation(
	_ context.Context, r acp.UnstableCreateElicitationRequest,
) (acp.UnstableCreateElicitationResponse, error) {
	accepted := &acp.UnstableCreateElicitationAccept{Action: "accept"}
	if r.Form != nil {
		accepted.Content = e.fill(*r.Form)
	}
	return acp.UnstableCreateElicitationResponse{Accept: accepted}, nil
}

func (e *editor) UnstableCompleteElicitation(_ context.Context, n acp.UnstableCompleteElicitationNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.has.completed++
	return nil
}

func (e *editor) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch u := n.Update; {
	case u.AgentMessageChunk != nil:
		e.has.said += u.AgentMessageChunk.Content.Text.Text
	case u.UserMessageChunk != nil:
		e.has.said += "> " + u.UserMessageChunk.Content.Text.Text + "\n"
	case u.ToolCall != nil:
		e.has.states = append(e.has.states, string(u.ToolCall.Status))
	case u.ToolCallUpdate != nil:
		e.has.states = append(e.has.states, string(*u.ToolCallUpdate.Status))
	}
	return nil
}

// soFar returns what the editor was asked and told until now.
func (e *editor) soFar() remembered {
	e.mu.Lock()
	defer e.mu.Unlock()
	has := e.has
	has.asked, has.states = slices.Clone(has.asked), slices.Clone(has.states)
	return has
}

// start starts the agent and connects the editor with it. kill ends the process as it stands.
func start(t *testing.T, root, state string, e *editor) (conn *acp.ClientSideConnection, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-state", state, "-key", filepath.Join(state, "key"))
	cmd.Dir, cmd.Stderr = root, os.Stderr
	cmd.Env = append(os.Environ(), "ACP_AGENT_CHILD=1", "OPENAI_BASE_URL=", "OPENAI_API_KEY=", "OPENAI_MODEL=")
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
	can := acp.ClientCapabilities{}
	if e.fill != nil {
		can.Elicitation = &acp.ElicitationCapabilities{Form: &acp.ElicitationFormCapabilities{}, Url: &acp.ElicitationUrlCapabilities{}}
	}
	if _, err := conn.Initialize(t.Context(), acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber, ClientCapabilities: can}); err != nil {
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

func prompt(t *testing.T, conn *acp.ClientSideConnection, session acp.SessionId, text string) acp.StopReason {
	t.Helper()
	r, err := conn.Prompt(t.Context(), acp.PromptRequest{SessionId: session, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return r.StopReason
}

func once(context.Context, acp.RequestPermissionRequest) string { return "allow_once" }

// An edit is shown as a difference, is done when it was allowed, and both end the turn.
func TestEdit(t *testing.T) {
	root, state := t.TempDir(), t.TempDir()
	file := filepath.Join(root, "notes.txt")
	if err := os.WriteFile(file, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &editor{answer: once}
	conn, _ := start(t, root, state, e)
	session, err := conn.NewSession(t.Context(), acp.NewSessionRequest{Cwd: root, McpServers: []acp.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	if stop := prompt(t, conn, session.SessionId, "edit and run"); stop != acp.StopReasonEndTurn {
		t.Errorf("stopped: %s", stop)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "first\na line of the agent's\n" {
		t.Errorf("the file is %q, %v", data, err)
	}
	asked := e.soFar().asked
	i := slices.IndexFunc(asked, func(r acp.RequestPermissionRequest) bool { return *r.ToolCall.Title == "Edit notes.txt" })
	if len(asked) != 2 || i < 0 {
		t.Fatalf("asked %v", asked)
	}
	call := asked[i].ToolCall
	if diff := call.Content[0].Diff; diff == nil || diff.Path != file || *diff.OldText != "first\n" || diff.NewText != "first\na line of the agent's\n" {
		t.Errorf("shown %+v", call.Content)
	}
	if len(call.Locations) != 1 || call.Locations[0].Path != file || *call.Kind != acp.ToolKindEdit {
		t.Errorf("locations %+v, kind %v", call.Locations, *call.Kind)
	}
}

// The agent is killed in the middle of a question. The session that is loaded says what was said,
// shows the call, and the next message puts the question again.
func TestKilled(t *testing.T) {
	root, state := t.TempDir(), t.TempDir()
	var kill func()
	first := &editor{answer: func(ctx context.Context, _ acp.RequestPermissionRequest) string {
		kill()
		<-ctx.Done()
		return ""
	}}
	var conn *acp.ClientSideConnection
	conn, kill = start(t, root, state, first)
	session, err := conn.NewSession(t.Context(), acp.NewSessionRequest{Cwd: root, McpServers: []acp.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	request := acp.PromptRequest{SessionId: session.SessionId, Prompt: []acp.ContentBlock{acp.TextBlock("edit it")}}
	if _, err := conn.Prompt(t.Context(), request); err == nil {
		t.Fatal("a killed agent answered")
	}

	second := &editor{answer: once}
	conn, _ = start(t, root, state, second)
	load := acp.LoadSessionRequest{SessionId: session.SessionId, Cwd: root, McpServers: []acp.McpServer{}}
	if _, err := conn.LoadSession(t.Context(), load); err != nil {
		t.Fatal(err)
	}
	if has := second.soFar(); has.said != "> edit it\n" || !slices.Equal(has.states, []string{"pending"}) {
		t.Errorf("loaded %q, %v", has.said, has.states)
	}
	prompt(t, conn, session.SessionId, "thanks")
	before, after := first.soFar().asked, second.soFar()
	if len(after.asked) != 1 || after.asked[0].ToolCall.ToolCallId != before[0].ToolCall.ToolCallId {
		t.Errorf("asked %v", after.asked)
	}
	if data, err := os.ReadFile(filepath.Join(root, "notes.txt")); err != nil || string(data) != "a line of the agent's\n" {
		t.Errorf("the file is %q, %v", data, err)
	}
	if !strings.Contains(after.said, "edited notes.txt") || !strings.Contains(after.said, "scripted") {
		t.Errorf("said %q", after.said)
	}
}

// No path leads out of the directory of the work, and no link.
func TestEditStaysInside(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "file"), []byte("private"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"link/file", "link/new", "../file", filepath.Join(outside, "file")} {
		if e, err := (workspace{root}).edited(editInput{Path: path, New: "x"}); err == nil {
			t.Errorf("%s: %+v", path, e)
		}
	}
}

// Half of an endpoint is a mistake, and not the scripted model.
func TestChooseModel(t *testing.T) {
	if m, err := chooseModel(t.Context(), func(string) string { return "" }); err != nil || m == nil {
		t.Errorf("without an endpoint: %v, %v", m, err)
	}
	for _, left := range []string{"OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"} {
		_, err := chooseModel(t.Context(), func(name string) string {
			if name == left {
				return ""
			}
			return "http://localhost:1/v1"
		})
		if err == nil {
			t.Errorf("without %s: want an error", left)
		}
	}
	if _, err := chooseModel(t.Context(), func(name string) string { return "http://localhost:1/" + name }); err != nil {
		t.Errorf("with an endpoint: %v", err)
	}
}

// A choice, a form and a page are elicitations, where the editor has those.
func TestElicitations(t *testing.T) {
	root := t.TempDir()
	e := &editor{answer: once, fill: func(r acp.UnstableCreateElicitationForm) map[string]any {
		if _, ok := r.RequestedSchema.Properties["subject"]; ok {
			return map[string]any{"subject": "a line", "signOff": true}
		}
		return map[string]any{"choice": "1"}
	}}
	conn, _ := start(t, root, t.TempDir(), e)
	session, err := conn.NewSession(t.Context(), acp.NewSessionRequest{Cwd: root, McpServers: []acp.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	if stop := prompt(t, conn, session.SessionId, "branch, commit and sign in"); stop != acp.StopReasonEndTurn {
		t.Errorf("stopped: %s", stop)
	}
	const want = `next; would commit with {"subject":"a line","signOff":true}; the person went to the page`
	if has := e.soFar(); has.said != want || len(has.asked) != 0 || has.completed != 1 {
		t.Errorf("said %q, asked %v, %d pages are done with", has.said, has.asked, has.completed)
	}
}

// What the editor cannot be asked the model is told, and the turn goes on.
func TestCannotAsk(t *testing.T) {
	root := t.TempDir()
	e := &editor{answer: once}
	conn, _ := start(t, root, t.TempDir(), e)
	session, err := conn.NewSession(t.Context(), acp.NewSessionRequest{Cwd: root, McpServers: []acp.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	if stop := prompt(t, conn, session.SessionId, "branch"); stop != acp.StopReasonEndTurn {
		t.Errorf("stopped: %s", stop)
	}
	if has := e.soFar(); len(has.asked) != 0 || !strings.Contains(has.said, "nobody can be asked here") {
		t.Errorf("asked %v, said %q", has.asked, has.said)
	}
	if _, err := conn.NewSession(t.Context(), acp.NewSessionRequest{Cwd: "/elsewhere", McpServers: []acp.McpServer{}}); err == nil {
		t.Error("a session of another directory")
	}
}
