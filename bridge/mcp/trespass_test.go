package mcpbridge_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/gate"
)

// userOf is the user of these tests' bearer tokens, as a proxy before the server would say it.
func userOf(h http.Header) string {
	return strings.TrimPrefix(h.Get("Authorization"), "Bearer token-of-")
}

// R24: what comes in a session in which a question waits is of whom the question is for, however the
// host finds out who that is: another user neither answers nor ends it. Where nothing would see to
// that, the session is not served.
func TestSomebodyElseInASession(t *testing.T) {
	withID := func(user string) *auth.TokenInfo { return &auth.TokenInfo{UserID: user} }
	without := func(string) *auth.TokenInfo { return &auth.TokenInfo{} }
	ours := func(s *site) http.Handler { return s.bridge.HTTPHandler(nil) }
	sdks := func(s *site) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.server }, nil)
	}
	for name, tc := range map[string]struct {
		handler func(s *site) http.Handler
		info    func(user string) *auth.TokenInfo // nil: a proxy's header alone
		served  bool
	}{
		"users with an ID":                    {ours, withID, true},
		"users without":                       {ours, without, true},
		"a proxy's header":                    {ours, nil, true},
		"users with an ID, the SDK's handler": {sdks, withID, true},
		"users without, the SDK's handler":    {sdks, without, false},
		"a proxy's header, the SDK's handler": {sdks, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			s := memSite(t, &mcpbridge.Options{Authorize: func(_ context.Context, r mcpbridge.Request) (mcpbridge.Grant, error) {
				return mcpbridge.Grant{Scope: userOf(r.Header)}, nil
			}}, deploy(&effects, nil))
			h := tc.handler(s)
			if tc.info != nil {
				h = auth.RequireBearerToken(func(_ context.Context, _ string, r *http.Request) (*auth.TokenInfo, error) {
					info := tc.info(userOf(r.Header))
					info.Expiration = time.Now().Add(time.Hour)
					return info, nil
				}, nil)(h)
			}
			server := httptest.NewServer(h)
			t.Cleanup(server.Close)
			session, asked := "", false
			cs := as(t, server, "ann", legacy, nil, func(o *mcp.ClientOptions) {
				o.Capabilities = both()
				o.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked = true
					for what, err := range trespass(server.URL, session) {
						t.Errorf("%s: %v", what, err)
					}
					return accept(allow), nil
				}
			})
			session = cs.ID()
			result, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": "api"}})
			if !tc.served {
				wantError(t, err, mcpbridge.CodeUnauthorized, gate.ErrUnauthorized)
				effects.want(t, 0)
				return
			}
			if err != nil || !asked {
				t.Fatalf("asked %t, error %v", asked, err)
			}
			wantText(t, result, "deployed api")
			effects.want(t, 1)
		})
	}
}

// trespass is what bob does who knows the session's ID, and that both sides count their requests. It
// returns what he was not forbidden to do.
func trespass(url, session string) map[string]error {
	done := map[string]error{}
	for what, tc := range map[string]struct{ method, body string }{
		"answers": {http.MethodPost, `{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}`},
		"cancels": {http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`},
		"listens": {http.MethodGet, ""},
		"ends it": {http.MethodDelete, ""},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, tc.method, url, strings.NewReader(tc.body))
		if err != nil {
			done[what] = err
			continue
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Session-Id": session, "Mcp-Protocol-Version": legacy,
		} {
			r.Header.Set(name, value)
		}
		response, err := bearer{"bob"}.RoundTrip(r)
		if err != nil {
			done[what] = err
			continue
		}
		response.Body.Close()
		if response.StatusCode != http.StatusForbidden {
			done[what] = fmt.Errorf("status %d", response.StatusCode)
		}
	}
	return done
}

// A late body is read when it is told to be.
type lateBody struct {
	begun, told chan struct{}
	text        *strings.Reader
}

func (b *lateBody) Read(p []byte) (int, error) {
	if b.begun != nil {
		close(b.begun)
		b.begun = nil
		<-b.told
	}
	return b.text.Read(p)
}

// Nor is an answer of his taken whose request begins before there is a question.
func TestAnswerFromBefore(t *testing.T) {
	var effects counter
	s := memSite(t, &mcpbridge.Options{Authorize: func(_ context.Context, r mcpbridge.Request) (mcpbridge.Grant, error) {
		return mcpbridge.Grant{Scope: userOf(r.Header)}, nil
	}}, deploy(&effects, nil))
	h := s.bridge.HTTPHandler(nil)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	told, taken := make(chan struct{}), make(chan struct{})
	asked := answering("decline", "decline")
	cs := as(t, server, "ann", legacy, nil, func(o *mcp.ClientOptions) {
		o.Capabilities = both()
		o.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			answer, err := asked.elicit(ctx, req)
			if !strings.Contains(req.Params.Message, "Not accepted") {
				close(told)
				<-taken
			}
			return answer, err
		}
	})
	body := &lateBody{make(chan struct{}), told, strings.NewReader(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":` + allow + `}}`)}
	begun := body.begun
	r := httptest.NewRequest(http.MethodPost, "http://localhost/", body)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Session-Id": cs.ID(), "Mcp-Protocol-Version": legacy, "Authorization": "Bearer token-of-bob",
	} {
		r.Header.Set(name, value)
	}
	go func() {
		defer close(taken)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}()
	<-begun
	wantEnding(t, call(t, cs, "deploy", `{"service":"api"}`), gate.ErrDeclined)
	asked.want(t, 2)
	effects.want(t, 0)
}

// Two calls that wait in one session are each answered.
func TestTwoCallsInASession(t *testing.T) {
	var effects counter
	s := memSite(t, &mcpbridge.Options{Authorize: byUser}, deploy(&effects, nil))
	var both sync.WaitGroup
	both.Add(2)
	cs := as(t, serve(t, &users{}, s), "ann", legacy, answering(), func(o *mcp.ClientOptions) {
		o.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			both.Done()
			both.Wait()
			return accept(allow), nil
		}
	})
	var calls sync.WaitGroup
	for _, service := range []string{"api", "db"} {
		calls.Go(func() {
			result, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": service}})
			if err != nil || textOf(result) != "deployed "+service {
				t.Errorf("%s: %+v, %v", service, result, err)
			}
		})
	}
	calls.Wait()
	effects.want(t, 2)
}
