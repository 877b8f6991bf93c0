package mcpbridge_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// R24: over streamable HTTP each round is served as whom its own token names, in both protocols.
func TestOverHTTP(t *testing.T) {
	for _, version := range protocols {
		t.Run(version, func(t *testing.T) {
			var effects counter
			s := memSite(t, &mcpbridge.Options{Authorize: byUser}, deploy(&effects, nil), form(anyNumbers))
			server := serve(t, &users{}, s)
			cs := as(t, server, "ann", version, answering("accept:"+allow, `accept:{"i":7}`))
			wantText(t, call(t, cs, "deploy", `{"service":"api"}`), "deployed api")
			wantText(t, call(t, cs, "form", `{}`), `{"i":7}`)
			effects.want(t, 1)
		})
	}
}

// R24: who is not granted anything is unauthorized, before a handler runs, and is not told why.
func TestUnauthorized(t *testing.T) {
	secret := errors.New("the ledger of debts")
	grant := func(g mcpbridge.Grant, err error) func(context.Context, mcpbridge.Request) (mcpbridge.Grant, error) {
		return func(context.Context, mcpbridge.Request) (mcpbridge.Grant, error) { return g, err }
	}
	for name, tc := range map[string]struct {
		opts   *mcpbridge.Options
		native bool // the transport has sessions of its own
		ok     bool
	}{
		"HTTP without a host's decision": {opts: &mcpbridge.Options{}},
		"the host refuses":               {opts: &mcpbridge.Options{Authorize: grant(mcpbridge.Grant{Scope: "ann", Session: "s"}, secret)}},
		"no scope":                       {opts: &mcpbridge.Options{Authorize: grant(mcpbridge.Grant{Session: "s"}, nil)}},
		"neither session nor dialog":     {opts: &mcpbridge.Options{Authorize: grant(mcpbridge.Grant{Scope: "ann"}, nil)}},
		"a panic":                        {opts: &mcpbridge.Options{Authorize: func(context.Context, mcpbridge.Request) (mcpbridge.Grant, error) { panic(secret) }}},
		"a dialog":                       {opts: &mcpbridge.Options{Authorize: grant(mcpbridge.Grant{Scope: "ann", Session: "s"}, nil)}, ok: true},
		"a native session":               {opts: &mcpbridge.Options{Authorize: grant(mcpbridge.Grant{Scope: "ann"}, nil)}, native: true, ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			var runs counter
			s := memSite(t, tc.opts, raw("tool", func(context.Context) (any, error) { runs.add(); return "ran", nil }, nil))
			version := modern
			if tc.native {
				version = legacy
			}
			cs := as(t, serve(t, nil, s), "", version, &person{})
			result, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "tool"})
			if tc.ok {
				if err != nil {
					t.Fatal(err)
				}
				wantText(t, result, "ran")
				return
			}
			wantError(t, err, mcpbridge.CodeUnauthorized, gate.ErrUnauthorized)
			if strings.Contains(err.Error(), "debts") {
				t.Errorf("told why: %v", err)
			}
			runs.want(t, 0)
		})
	}
}

// What a host decides on is of the very request; the context has nothing of the session's first
// one.
func TestRequestIsItsOwn(t *testing.T) {
	type key struct{}
	var seen []mcpbridge.Request
	s := memSite(t, &mcpbridge.Options{Authorize: func(ctx context.Context, r mcpbridge.Request) (mcpbridge.Grant, error) {
		if ctx.Value(key{}) != nil || auth.TokenInfoFromContext(ctx) != nil {
			t.Error("the context has values")
		}
		seen = append(seen, r)
		return mcpbridge.Grant{Scope: "ann"}, nil
	}}, raw("tool", func(context.Context) (any, error) { return "ran", nil }, nil))
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.server }, nil)
	verify := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: "ann", Extra: map[string]any{"n": len(seen)}, Expiration: time.Now().Add(time.Hour)}, nil
	}
	server := httptest.NewServer(auth.RequireBearerToken(verify, nil)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, "first")))
	})))
	t.Cleanup(server.Close)
	cs := as(t, server, "ann", legacy, nil)
	call(t, cs, "tool", `{}`)
	call(t, cs, "tool", `{}`)
	if len(seen) != 2 || seen[0].Session == "" || seen[0].Session != seen[1].Session || seen[0].Client.Name != "client" ||
		seen[1].TokenInfo.Extra["n"] != 1 || seen[1].Header.Get("Authorization") == "" || seen[1].Tool != "tool" {
		t.Errorf("seen %+v", seen)
	}
}

// R24: the SDK's old SSE transport is HTTP, and has no session that could be bound.
func TestOverSSE(t *testing.T) {
	for name, tc := range map[string]struct {
		authorize func(context.Context, mcpbridge.Request) (mcpbridge.Grant, error)
		ok        bool
	}{
		"by default": {},
		"no dialog": {authorize: func(context.Context, mcpbridge.Request) (mcpbridge.Grant, error) {
			return mcpbridge.Grant{Scope: "ann"}, nil
		}},
		"a dialog": {ok: true, authorize: func(_ context.Context, r mcpbridge.Request) (mcpbridge.Grant, error) {
			if r.Header == nil {
				t.Error("the request looks as if it were local")
			}
			return mcpbridge.Grant{Scope: "ann", Session: "s"}, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var runs counter
			s := memSite(t, &mcpbridge.Options{Authorize: tc.authorize},
				raw("tool", func(context.Context) (any, error) { runs.add(); return "ran", nil }, nil))
			server := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s.server }, nil))
			t.Cleanup(server.Close)
			cs := client(t, &mcp.SSEClientTransport{Endpoint: server.URL}, legacy, &person{})
			t.Cleanup(func() { cs.Close() })
			result, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "tool"})
			if tc.ok {
				if err != nil {
					t.Fatal(err)
				}
				wantText(t, result, "ran")
				return
			}
			wantError(t, err, mcpbridge.CodeUnauthorized, gate.ErrUnauthorized)
			runs.want(t, 0)
		})
	}
}

// R24: no round is served past the expiration of its request's token: neither a new one, nor one of
// an older session, whose call began before. An answer past it is none of hers.
func TestTokenInfoExpires(t *testing.T) {
	now := newClock()
	var effects counter
	expiration := now.Now().Add(time.Minute)
	s := memSite(t, &mcpbridge.Options{Authorize: byUser, Now: now.Now}, deploy(&effects, nil))
	late := answering("accept:"+allow, "accept:"+allow)
	waits := func(o *mcp.ClientOptions) {
		o.Capabilities = both()
		o.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			now.add(time.Minute)
			return late.elicit(ctx, req)
		}
	}
	there, here := mcp.NewInMemoryTransports()
	cs := dial(t, s, tokened{there, expiration}, here, legacy, nil, waits)
	for range 2 {
		_, err := cs.CallTool(t.Context(), with("deploy", `{"service":"api"}`, "", nil))
		wantError(t, err, mcpbridge.CodeUnauthorized, gate.ErrUnauthorized)
	}
	late.want(t, 1)
	now.add(-time.Minute)
	cs = as(t, serve(t, &users{expire: map[string]time.Time{"ann": expiration}}, s), "ann", legacy, nil, waits)
	if _, err := cs.CallTool(t.Context(), with("deploy", `{"service":"api"}`, "", nil)); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("the answer is taken: %v", err)
	}
	late.want(t, 2)
	effects.want(t, 0)
}

// R24: a host that takes back what it granted is asked before the next round, also of a session,
// whose rounds share a request.
func TestGrantIsTakenBack(t *testing.T) {
	for _, version := range protocols {
		var effects counter
		revoked := false // the client's answer and the next round come one after the other
		s := memSite(t, &mcpbridge.Options{Authorize: func(context.Context, mcpbridge.Request) (mcpbridge.Grant, error) {
			if revoked {
				return mcpbridge.Grant{}, errors.New("she left")
			}
			return mcpbridge.Grant{Scope: "ann"}, nil
		}}, deploy(&effects, nil))
		cs := connect(t, s, version, nil, func(o *mcp.ClientOptions) {
			o.Capabilities = both()
			o.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				revoked = true
				return accept(allow), nil
			}
		})
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": "api"}})
		wantError(t, err, mcpbridge.CodeUnauthorized, gate.ErrUnauthorized)
		effects.want(t, 0)
	}
}

// R21: a token is good for its user, its dialog, its tool and its arguments, and until its
// deadline. Whatever is wrong, the error is the same, and nothing is used up.
func TestMisusedTokens(t *testing.T) {
	now := newClock()
	var effects counter
	tools := []*gate.Tool{deploy(&effects, nil), raw("other", func(context.Context) (any, error) { effects.add(); return "ran", nil }, nil)}
	store := memstore.New()
	g := openGate(t, store, gate.Options{Tools: tools, Now: now.Now})
	s := newSite(t, g, &mcpbridge.Options{Authorize: byUser}, tools...)
	elsewhere := newSite(t, g, &mcpbridge.Options{Authorize: byUser, Name: "elsewhere"}, tools...)
	server := serve(t, &users{}, s)
	ann, bob := as(t, server, "ann", modern, &person{}, byHand), as(t, server, "bob", modern, &person{}, byHand)
	annElsewhere := as(t, serve(t, &users{}, elsewhere), "ann", modern, &person{}, byHand)

	first := call(t, ann, "deploy", `{"service":"api","n":1}`)
	key, _ := only(t, first)
	answers := mcp.InputResponseMap{key: accept(allow)}
	state := first.RequestState
	flipped := "A" + state[1:]
	if flipped == state {
		flipped = "B" + state[1:]
	}
	var frozen string
	for name, misuse := range map[string]func() (*mcp.CallToolResult, error){
		"another user": func() (*mcp.CallToolResult, error) {
			return bob.CallTool(t.Context(), with("deploy", `{"service":"api","n":1}`, state, answers))
		},
		"another tool": func() (*mcp.CallToolResult, error) {
			return ann.CallTool(t.Context(), with("other", `{"service":"api","n":1}`, state, answers))
		},
		"changed arguments": func() (*mcp.CallToolResult, error) {
			return ann.CallTool(t.Context(), with("deploy", `{"service":"db","n":1}`, state, answers))
		},
		"fewer arguments": func() (*mcp.CallToolResult, error) {
			return ann.CallTool(t.Context(), with("deploy", `{"service":"api"}`, state, answers))
		},
		"another server": func() (*mcp.CallToolResult, error) {
			return annElsewhere.CallTool(t.Context(), with("deploy", `{"service":"api","n":1}`, state, answers))
		},
		"flipped": func() (*mcp.CallToolResult, error) {
			return ann.CallTool(t.Context(), with("deploy", `{"service":"api","n":1}`, flipped, answers))
		},
		"short": func() (*mcp.CallToolResult, error) {
			return ann.CallTool(t.Context(), with("deploy", `{"service":"api","n":1}`, "x", answers))
		},
		"very long": func() (*mcp.CallToolResult, error) {
			return ann.CallTool(t.Context(), with("deploy", `{"service":"api","n":1}`, strings.Repeat("x", 1<<20), answers))
		},
	} {
		_, err := misuse()
		data := wantError(t, err, mcpbridge.CodeInvalidContinuation, gate.ErrInvalidContinuation)
		if frozen == "" {
			frozen = err.Error()
		}
		if err == nil || err.Error() != frozen || data.Reason != mcpbridge.InvalidRequestState {
			t.Errorf("%s: %v with %+v, another time %s", name, err, data, frozen)
		}
	}
	effects.want(t, 0)

	// The order of keys, and 1 or 1.0, are no change; the same answer twice runs the tool once.
	wantText(t, send(t, ann, with("deploy", `{"n":1.0,"service":"api"}`, state, answers)), "deployed api")
	effects.want(t, 1)
	result := send(t, ann, with("deploy", `{"service":"api","n":1}`, state, answers))
	wantEnding(t, result, gate.ErrAlreadyCompleted)
	_, err := ann.CallTool(t.Context(), with("deploy", `{"service":"api","n":1}`, state, mcp.InputResponseMap{key: accept(reject)}))
	wantError(t, err, mcpbridge.CodeInvalidContinuation, gate.ErrAnswerConflict)

	// After its deadline; after its key left the ring.
	second := call(t, ann, "deploy", `{"service":"api","n":1}`)
	key, _ = only(t, second)
	third := call(t, ann, "deploy", `{"service":"api","n":1}`)
	now.add(time.Hour)
	_, err = ann.CallTool(t.Context(), with("deploy", `{"service":"api","n":1}`, second.RequestState, mcp.InputResponseMap{key: accept(allow)}))
	wantError(t, err, mcpbridge.CodeInvalidContinuation, gate.ErrExpired)
	if err := g.SetKeys([][]byte{gate.NewKey()}); err != nil {
		t.Fatal(err)
	}
	_, err = ann.CallTool(t.Context(), with("deploy", `{"service":"api","n":1}`, third.RequestState, nil))
	wantError(t, err, mcpbridge.CodeInvalidContinuation, gate.ErrInvalidContinuation)
	if err.Error() != frozen {
		t.Errorf("%v, want %s", err, frozen)
	}
	effects.want(t, 1)
}

// R23: the same answer twice at one moment runs the tool once.
func TestTwiceAtOneMoment(t *testing.T) {
	var effects counter
	s := memSite(t, &mcpbridge.Options{Authorize: byUser}, deploy(&effects, nil))
	server := serve(t, &users{}, s)
	ann := as(t, server, "ann", modern, &person{}, byHand)
	for range 20 {
		first := call(t, ann, "deploy", `{"service":"api"}`)
		key, _ := only(t, first)
		done := make(chan gate.Code, 8) // "" for a result
		for range cap(done) {
			go func() {
				result, err := ann.CallTool(t.Context(), with("deploy", `{"service":"api"}`, first.RequestState, mcp.InputResponseMap{key: accept(allow)}))
				done <- codeOf(t, result, err)
			}()
		}
		deployed := 0
		for range cap(done) {
			switch code := <-done; code {
			case "":
				deployed++
			case gate.ErrBusy, gate.ErrAlreadyCompleted:
			default:
				t.Errorf("ended with %q", code)
			}
		}
		if deployed != 1 {
			t.Errorf("deployed %d times", deployed)
		}
	}
	effects.want(t, 20)
}
