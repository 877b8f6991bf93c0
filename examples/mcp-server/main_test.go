package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
)

// The test's own binary is the command, when it is told so.
func TestMain(m *testing.M) {
	if os.Getenv("MCP_SERVER_EXAMPLE") != "" {
		if os.Getenv("MCP_SERVER_LEASH") != "" {
			go leash()
		}
		main()
		return
	}
	os.Exit(m.Run())
}

func command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"-db", filepath.Join(dir, "ledger.db"), "-key", filepath.Join(dir, "tokens.key")}, args...)...)
	cmd.Env = append(os.Environ(), "MCP_SERVER_EXAMPLE=1")
	cmd.Stderr = os.Stderr
	return cmd
}

// answers of a person, by the beginning of what they are asked.
var answers = map[string]string{
	"Deploy":              `{"decision":"allow_once"}`,
	"pick_region":         `{"choice":"2"}`,
	"What is the ticket":  `{"title":"It rains in","reporter":"ann@example.com","priority":"high","number":7,"urgent":false,"labels":["bug"]}`,
	"Take Bob on":         `{"decision":"allow_once"}`,
	"onboard":             `{"choice":"1"}`,
	"Where does Bob":      `{"desk":12}`,
	"What does Bob need?": `{"tools":["laptop","badge"]}`,
}

func answer(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	if req.Params.Mode == "url" {
		return &mcp.ElicitResult{Action: "accept"}, nil
	}
	for begin, content := range answers {
		if strings.HasPrefix(req.Params.Message, begin) {
			result := &mcp.ElicitResult{Action: "accept"}
			return result, json.Unmarshal([]byte(content), &result.Content)
		}
	}
	return nil, errors.New("nobody knows " + req.Params.Message)
}

func connect(t *testing.T, transport mcp.Transport, version string, loop bool, reports *atomic.Int32) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: answer,
		MultiRoundTrip:     &mcp.MultiRoundTripOptions{Disabled: !loop},
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
		}},
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { reports.Add(1) },
	})
	cs, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return cs
}

// Every tool, to its end, in both protocols, over standard input and output and over HTTP.
func TestTools(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run("stdio "+version, func(t *testing.T) {
			var reports atomic.Int32
			cs := connect(t, &mcp.CommandTransport{Command: command(t.TempDir())}, version, true, &reports)
			useAll(t, cs, &reports)
		})
		t.Run("HTTP "+version, func(t *testing.T) {
			address := serveHTTP(t)
			var reports atomic.Int32
			cs := connect(t, &mcp.StreamableClientTransport{Endpoint: "http://" + address, HTTPClient: as("the-token-of-ann")}, version, true, &reports)
			useAll(t, cs, &reports)
		})
	}
}

func useAll(t *testing.T, cs *mcp.ClientSession, reports *atomic.Int32) {
	t.Helper()
	for tool, want := range map[string]string{
		`deploy {"service":"api","version":"2"}`: `{"url":"https://api.example.com"}`,
		`pick_region {}`:                         `ap-south`,
		`create_ticket {}`: `{"title":"It rains in","reporter":"ann@example.com","priority":"high","number":7,"urgent":false,` +
			`"labels":["bug"]}`,
		`connect_account {}`:     `the page may be opened; ask the account service whether it was`,
		`onboard {"name":"Bob"}`: `{"name":"Bob","team":"product","desk":12,"tools":["laptop","badge"]}`,
		`slow_report {}`:         `nothing to report`,
	} {
		name, arguments, _ := strings.Cut(tool, " ")
		params := &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)}
		params.SetProgressToken(name)
		result, err := cs.CallTool(t.Context(), params)
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		if got := result.Content[0].(*mcp.TextContent).Text; got != want || result.IsError {
			t.Errorf("%s: %s, want %s", tool, got, want)
		}
	}
	if reports.Load() < 5 {
		t.Errorf("%d reports of progress", reports.Load())
	}
}

// Every round of onboard is served by another process: the one before was killed when it had asked.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	var reports atomic.Int32
	params := &mcp.CallToolParams{Name: "onboard", Arguments: json.RawMessage(`{"name":"Bob"}`)}
	for round := 1; ; round++ {
		process := command(dir)
		cs := connect(t, &mcp.CommandTransport{Command: process}, "2026-07-28", false, &reports)
		result, err := cs.CallTool(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cs.Close() // which waits for the process
		if !result.NeedsInput() {
			const want = `{"name":"Bob","team":"product","desk":12,"tools":["laptop","badge"]}`
			if got := result.Content[0].(*mcp.TextContent).Text; got != want || round != 5 {
				t.Errorf("in round %d: %s, want %s", round, got, want)
			}
			return
		}
		params.RequestState, params.InputResponses = result.RequestState, mcp.InputResponseMap{}
		for key, request := range result.InputRequests {
			params.InputResponses[key], err = answer(t.Context(), &mcp.ElicitRequest{Params: request.(*mcp.ElicitParams)})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A user does not answer for another one.
func TestOtherUser(t *testing.T) {
	address := serveHTTP(t)
	var reports atomic.Int32
	params := &mcp.CallToolParams{Name: "deploy", Arguments: json.RawMessage(`{"service":"api","version":"2"}`)}
	ann := connect(t, &mcp.StreamableClientTransport{Endpoint: "http://" + address, HTTPClient: as("the-token-of-ann")}, "2026-07-28", false, &reports)
	asked, err := ann.CallTool(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	params.RequestState = asked.RequestState
	bob := connect(t, &mcp.StreamableClientTransport{Endpoint: "http://" + address, HTTPClient: as("the-token-of-bob")}, "2026-07-28", false, &reports)
	if _, err := bob.CallTool(t.Context(), params); err == nil {
		t.Error("bob was let in")
	}
	if again, err := ann.CallTool(t.Context(), params); err != nil || again.RequestState != asked.RequestState || len(asked.RequestState) != gate.TokenLength {
		t.Errorf("ann: %+v, %v", again, err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "eve"}, nil)
	if _, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://" + address, HTTPClient: as("a-made-up-token")}, nil); err == nil {
		t.Error("eve was let in")
	}
}

// serveHTTP starts the command and returns its address.
func serveHTTP(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "users.txt")
	if err := os.WriteFile(file, []byte("the-token-of-ann ann\nthe-token-of-bob bob\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return startReplicas(t, 1, func() *exec.Cmd { return command(dir, "-http", "localhost:0", "-tokens", file) }).next()
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func as(token string) *http.Client { return &http.Client{Transport: bearer(token)} }
