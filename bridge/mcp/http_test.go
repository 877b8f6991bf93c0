package mcpbridge_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/gate"
)

// byUser grants the token's user, who has one dialog: the host of these tests says so.
func byUser(_ context.Context, r mcpbridge.Request) (mcpbridge.Grant, error) {
	if r.TokenInfo == nil {
		return mcpbridge.Grant{}, auth.ErrInvalidToken
	}
	return mcpbridge.Grant{Scope: r.TokenInfo.UserID, Session: "the dialog of " + r.TokenInfo.UserID}, nil
}

// users are bearer tokens and whose they are. An expiration that is not set is an hour ahead.
type users struct {
	mu     sync.Mutex
	expire map[string]time.Time
}

func (u *users) verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	user, ok := strings.CutPrefix(token, "token-of-")
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	expiration, ok := u.expire[user]
	if !ok {
		expiration = time.Now().Add(time.Hour)
	}
	return &auth.TokenInfo{UserID: user, Expiration: expiration}, nil
}

// serve serves the sites behind one address, in turns.
func serve(t *testing.T, u *users, sites ...*site) *httptest.Server {
	t.Helper()
	var mu sync.Mutex
	n := 0
	var handlers []http.Handler
	for _, s := range sites {
		handlers = append(handlers, s.bridge.HTTPHandler(nil))
	}
	var root http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handlers[n%len(handlers)]
		n++
		mu.Unlock()
		h.ServeHTTP(w, r)
	})
	if u != nil {
		root = auth.RequireBearerToken(u.verify, nil)(root)
	}
	server := httptest.NewServer(root)
	t.Cleanup(server.Close)
	return server
}

// A bearer sends its user's token with each request.
type bearer struct{ user string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.user != "" {
		r.Header.Set("Authorization", "Bearer token-of-"+b.user)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// as connects a client over HTTP with the token of a user; none where it is empty.
func as(t *testing.T, server *httptest.Server, user, version string, p *person, change ...func(*mcp.ClientOptions)) *mcp.ClientSession {
	t.Helper()
	transport := &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: &http.Client{Transport: bearer{user}}}
	cs := client(t, transport, version, p, change...)
	t.Cleanup(func() { cs.Close() })
	return cs
}

// A body that is no single message, or can be read in two ways, is refused or left to the SDK, and
// one that is too long is not read.
func TestBodies(t *testing.T) {
	var effects counter
	s := memSite(t, &mcpbridge.Options{Authorize: byUser}, deploy(&effects, nil))
	h := auth.RequireBearerToken((&users{}).verify, nil)(s.bridge.HTTPHandler(&mcp.StreamableHTTPOptions{MaxRequestBodyBytes: 4 << 10}))
	for body, want := range map[string]int{
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}`: http.StatusBadRequest,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"id":1,"id":2}]`:       http.StatusBadRequest,
		`{`: http.StatusBadRequest,
		`{"jsonrpc":"2.0","id":1,"method":"ping"} a-private-answer`:                                    http.StatusBadRequest,
		strings.Repeat(" ", 5<<10):                                                                     http.StatusRequestEntityTooLarge,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("x", 3<<10) + `"}}`: http.StatusOK,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`:          http.StatusOK,
	} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer token-of-ann")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want || strings.Contains(w.Body.String(), "a-private-answer") {
			t.Errorf("%.100s: status %d, want %d: %s", body, w.Code, want, w.Body)
		}
	}
}

// A session that its client left does not stay for ever.
func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memSite(t, nil)
		h := s.bridge.HTTPHandler(nil)
		post := func(session, body string) int {
			r := httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("Mcp-Session-Id", session)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		post("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},`+
			`"clientInfo":{"name":"c","version":"1"}}}`)
		var session string
		for ss := range s.server.Sessions() {
			session = ss.ID()
		}
		ping := `{"jsonrpc":"2.0","id":2,"method":"ping"}`
		for range 2 {
			time.Sleep(59 * time.Minute)
			if code := post(session, ping); code != http.StatusOK {
				t.Errorf("status %d", code)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if code := post(session, ping); code != http.StatusNotFound {
			t.Errorf("after an hour: status %d", code)
		}
	})
}

// A session ends when its client ends it, also while a question waits there for a person. Nobody else
// ends it, or breaks the question off.
func TestSessionIsLeft(t *testing.T) {
	var effects counter
	s := memSite(t, &mcpbridge.Options{Authorize: byUser}, deploy(&effects, nil))
	server := serve(t, &users{}, s)
	asked, answer := make(chan struct{}), make(chan struct{})
	cs := as(t, server, "ann", legacy, nil, func(o *mcp.ClientOptions) {
		o.Capabilities = both()
		o.ElicitationHandler = func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked <- struct{}{}
			select {
			case <-answer:
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow_once"}}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})
	called := make(chan error, 1)
	begin := func() {
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": "api"}})
		called <- err
	}
	end := func(user string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Mcp-Session-Id", cs.ID())
		response, err := (&http.Client{Transport: bearer{user}, Timeout: 10 * time.Second}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	go begin()
	<-asked
	if status := end("bob"); status != http.StatusForbidden {
		t.Errorf("bob ends the session: status %d", status)
	}
	close(answer)
	if err := <-called; err != nil {
		t.Errorf("bob broke the question off: %v", err)
	}
	effects.want(t, 1)

	answer = make(chan struct{}) // nobody answers
	go begin()
	<-asked
	if status := end("ann"); status != http.StatusNoContent {
		t.Errorf("ann ends the session: status %d", status)
	}
	if err := <-called; err == nil {
		t.Error("the call went on")
	}
	effects.want(t, 1)
}

// M7: over HTTP a missing capability is a bad request, with what is needed.
func TestMissingCapabilityOverHTTP(t *testing.T) {
	var effects counter
	s := memSite(t, &mcpbridge.Options{Authorize: byUser}, deploy(&effects, nil))
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy","arguments":{"service":"api"},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, serve(t, &users{}, s).URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer token-of-ann", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": modern, "Mcp-Method": "tools/call", "Mcp-Name": "deploy",
	} {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), `"code":-32021`) ||
		!strings.Contains(string(text), `"requiredCapabilities":{"elicitation":{"form":{}}}`) {
		t.Errorf("status %d: %s, %v", response.StatusCode, text, err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// A request of protocol 2026-07-28 whose client disconnects is cancelled, as the specification has
// it; what the handler returned then is recorded (R27).
func TestDisconnect(t *testing.T) {
	started, ended := make(chan struct{}), make(chan error, 1)
	tool := raw("slow", func(ctx context.Context) (any, error) {
		close(started)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second):
		}
		ended <- ctx.Err()
		return nil, ctx.Err()
	}, nil)
	s := memSite(t, &mcpbridge.Options{Authorize: byUser}, tool)
	cs := as(t, serve(t, &users{}, s), "ann", modern, nil)
	ctx, disconnect := context.WithCancel(t.Context())
	go func() {
		<-started
		disconnect()
	}()
	if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "slow"}); !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler ran to its end: %v", err)
	}
}

// An older protocol without sessions cannot ask, whatever its client says.
func TestStatelessOlderClient(t *testing.T) {
	for _, version := range sessions {
		var effects counter
		s := memSite(t, &mcpbridge.Options{Authorize: byUser}, deploy(&effects, nil))
		h := s.bridge.HTTPHandler(&mcp.StreamableHTTPOptions{Stateless: true})
		server := httptest.NewServer(auth.RequireBearerToken((&users{}).verify, nil)(h))
		t.Cleanup(server.Close)
		p := answering("accept:" + allow)
		wantEnding(t, call(t, as(t, server, "ann", version, p), "deploy", `{"service":"api"}`), gate.ErrConfirmationRequired)
		p.want(t, 0)
		effects.want(t, 0)
	}
}
