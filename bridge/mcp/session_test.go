package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

var sessions = []string{legacy, oldest}

// In an older session an answer that does not fit is asked again with the reason; three in a row
// end the call, and a good one in between begins the count anew.
func TestThreeInvalidAnswers(t *testing.T) {
	for _, version := range sessions {
		t.Run(version, func(t *testing.T) {
			s := memSite(t, nil, rounds(3))
			bad, good := `accept`, `accept:{"choice":"0"}`
			p := answering(bad, bad, good, bad, bad, good, good)
			wantText(t, call(t, connect(t, s, version, p), "rounds", `{}`), "done")
			p.want(t, 7)
			p = answering(good, bad, bad, `accept`)
			wantEnding(t, call(t, connect(t, s, version, p), "rounds", `{}`), gate.ErrInvalidAnswer)
			p.want(t, 4)
			if m := p.messages(); strings.Contains(m[1], "Not accepted") || !strings.Contains(m[3], "Not accepted: choice: is missing") {
				t.Errorf("messages %q", m)
			}
		})
	}
}

// Of two questions only the one is asked again whose answer does not fit.
func TestOnlyTheInvalidOneIsAskedAgain(t *testing.T) {
	s := memSite(t, nil, twoAtOnce())
	p := answering(`accept:{"choice":"1"}`, `accept:{"why":"because"}`)
	short := answering(`accept:{"why":"no"}`)
	cs := connect(t, s, legacy, nil, func(o *mcp.ClientOptions) {
		o.Capabilities = both()
		o.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if req.Params.Message == "Why?" {
				// The SDK's client validates as well; what it does not know is the format of
				// content.
				short.elicit(ctx, req)
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
			return p.elicit(ctx, req)
		}
	})
	wantText(t, call(t, cs, "two_at_once", `{}`), `b {"why":"because"}`)
	p.want(t, 2)
	short.want(t, 1)
}

// As many rounds as the gate allows, in one call: no client counts them.
func TestManyRounds(t *testing.T) {
	for _, version := range sessions {
		s := memSite(t, nil, rounds(10))
		p := &person{}
		for range 10 {
			p.answers = append(p.answers, `accept:{"choice":"0"}`)
		}
		wantText(t, call(t, connect(t, s, version, p), "rounds", `{}`), "done")
		p.want(t, 10)
	}
}

// R29: the SDK's client answers nine prompts of protocol 2026-07-28 and gives up at the tenth, so a
// tool that asks more often ends with interaction_limit, which says so.
func TestNinePrompts(t *testing.T) {
	for n, limited := range map[int]bool{9: false, 10: true} {
		s := memSite(t, nil, rounds(n))
		p := &person{}
		for range 10 {
			p.answers = append(p.answers, `accept:{"choice":"0"}`)
		}
		result := call(t, connect(t, s, modern, p), "rounds", `{}`)
		if limited {
			wantEnding(t, result, gate.ErrInteractionLimit)
		} else {
			wantText(t, result, "done")
		}
		p.want(t, 9)
	}
}

// What a client of an older session makes up as answers and state is not looked at.
func TestForgedRoundIsIgnored(t *testing.T) {
	for _, wrapped := range []bool{true, false} {
		var effects counter
		store := memstore.New()
		tool := deploy(&effects, nil)
		g := openGate(t, store, gate.Options{Tools: []*gate.Tool{tool}})
		s := newSite(t, g, nil, tool)
		asked := call(t, connect(t, s, modern, &person{}, byHand), "deploy", `{"service":"api"}`)
		key, _ := only(t, asked)
		p := answering("decline")
		dialed := connectBare
		if wrapped {
			dialed = connect
		}
		cs := dialed(t, s, legacy, p)
		result := send(t, cs, with("deploy", `{"service":"api"}`, asked.RequestState, mcp.InputResponseMap{key: accept(allow)}))
		wantEnding(t, result, gate.ErrDeclined)
		p.want(t, 1)
		effects.want(t, 0)
	}
}

// E5: a client that says it can ask, and fails, has asked nobody: the call ends without a yes, and
// the question stays open.
func TestClientFails(t *testing.T) {
	var effects counter
	s := memSite(t, nil, deploy(&effects, nil))
	cs := connect(t, s, legacy, nil, func(o *mcp.ClientOptions) {
		o.Capabilities = both()
		o.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return nil, errors.New("there is no window")
		}
	})
	ending := wantEnding(t, call(t, cs, "deploy", `{"service":"api"}`), gate.ErrConfirmationRequired)
	if ending.Interaction == "" {
		t.Errorf("ending %+v", ending)
	}
	effects.want(t, 0)
}

// U7: in 2025-11-25 a page is asked for with an id, and the client is told when it is done with:
// not where the handler asks for the same page again.
func TestPageIsCompleted(t *testing.T) {
	visited := 0
	tool := raw("connect", func(ctx context.Context) (any, error) {
		page := func() (*interrupt.URLInterrupt, error) {
			return interrupt.Ask(ctx, interrupt.URL("Connect", "https://example.com/connect"))
		}
		for range 2 {
			if _, err := page(); err != nil {
				return nil, err
			}
		}
		visited++
		return "connected", nil
	}, nil)
	s := memSite(t, nil, tool)
	completed := make(chan string, 4)
	p := answering("accept", "accept")
	cs := connect(t, s, legacy, p, func(o *mcp.ClientOptions) {
		o.ElicitationCompleteHandler = func(_ context.Context, req *mcp.ElicitationCompleteNotificationRequest) {
			completed <- req.Params.ElicitationID
		}
	})
	wantText(t, call(t, cs, "connect", `{}`), "connected")
	p.want(t, 2)
	if id := p.asked[1].ElicitationID; id == "" || id == p.asked[0].ElicitationID || <-completed != id || len(completed) != 0 {
		t.Errorf("asked as %q and %q, %d more completed", p.asked[0].ElicitationID, id, len(completed))
	}
	if visited != 1 {
		t.Errorf("finished %d times", visited)
	}
	// Nor where nobody opened it.
	declined := raw("declined", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, interrupt.URL("Connect", "https://example.com/connect")); !errors.Is(err, interrupt.ErrDeclined) {
			return nil, err
		}
		return "not connected", nil
	}, nil)
	p = answering("decline")
	cs = connect(t, memSite(t, nil, declined), legacy, p, func(o *mcp.ClientOptions) {
		o.ElicitationCompleteHandler = func(_ context.Context, req *mcp.ElicitationCompleteNotificationRequest) {
			completed <- req.Params.ElicitationID
		}
	})
	wantText(t, call(t, cs, "declined", `{}`), "not connected")
	if len(completed) != 0 {
		t.Errorf("%s is completed", <-completed)
	}
	// 2026-07-28 has neither.
	p = answering("accept", "accept")
	wantText(t, call(t, connect(t, s, modern, p), "connect", `{}`), "connected")
	if p.asked[0].ElicitationID != "" {
		t.Errorf("id %q", p.asked[0].ElicitationID)
	}
}

// R15: what nobody answered is not in the answer, though the default is on the wire, and though the
// SDK puts it in.
func TestNoDefaultIsInserted(t *testing.T) {
	const schema = `{"type":"object","properties":{"ok":{"type":"boolean","default":true},"s":{"type":"string","default":"x"}}}`
	for _, wrapped := range []bool{true, false} {
		c := dialRaw(t, memSite(t, nil, form(schema)), wrapped)
		c.initialize(legacy)
		c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"form","arguments":{}}}`)
		if text := c.read(); !strings.Contains(text, `"default":true`) || !strings.Contains(text, `"default":"x"`) {
			t.Errorf("the defaults are not offered: %s", text)
		}
		c.send(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{}}}`)
		if text := c.read(); !strings.Contains(text, `"text":"{}"`) {
			t.Errorf("result %s", text)
		}
	}
}

// The SDK's own judgement of an answer is not asked: what does not fit is asked again, and no
// protocol error.
func TestTheGateJudges(t *testing.T) {
	c := dialRaw(t, memSite(t, nil, form(`{"type":"object","properties":{"n":{"type":"integer","minimum":1,"maximum":5}}}`)), true)
	c.initialize(legacy)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"form","arguments":{}}}`)
	c.read()
	c.send(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"n":6}}}`)
	if text := c.read(); !strings.Contains(text, "Not accepted: n: ") {
		t.Errorf("want it asked again, have %s", text)
	}
}

// R30, R24: a session waits for a person until the prompt's deadline or its request's token ends,
// whichever comes first.
func TestWaitingEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		lifetime, token time.Duration
		number          int64
		code            gate.Code
	}{
		"the prompt": {time.Minute, time.Hour, mcpbridge.CodeInvalidContinuation, gate.ErrExpired},
		"the token":  {time.Hour, time.Minute, mcpbridge.CodeUnauthorized, gate.ErrUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var effects counter
				s := memSite(t, &mcpbridge.Options{Authorize: byUser}, deploy(&effects, &gate.ToolOptions{Lifetime: tc.lifetime}))
				there, here := mcp.NewInMemoryTransports()
				expiration := time.Now().Add(tc.token)
				ss, err := s.server.Connect(t.Context(), tokened{there, expiration}, nil)
				if err != nil {
					t.Fatal(err)
				}
				cs := client(t, here, legacy, nil, func(o *mcp.ClientOptions) {
					o.Capabilities = both()
					o.ElicitationHandler = func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						<-ctx.Done()
						return nil, ctx.Err()
					}
				})
				began := time.Now()
				_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": "api"}})
				wantError(t, err, tc.number, tc.code)
				if waited := time.Since(began); waited != time.Minute {
					t.Errorf("waited %v", waited)
				}
				effects.want(t, 0)
				cs.Close()
				ss.Wait()
			})
		})
	}
}

// A tokened transport brings a token info with each request, as one over HTTP does.
type tokened struct {
	mcp.Transport
	expiration time.Time
}

type tokenedConnection struct {
	mcp.Connection
	expiration time.Time
}

func (t tokened) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	return tokenedConnection{c, t.expiration}, err
}

func (c tokenedConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok {
		r.Extra = &mcp.RequestExtra{TokenInfo: &auth.TokenInfo{UserID: "ann", Expiration: c.expiration}}
	}
	return m, err
}

// R19: what an "always" is remembered for stands beside it, and it is not asked again.
func TestAlwaysSaysForWhat(t *testing.T) {
	for words, remember := range map[string]*gate.RememberOptions{
		"Always allow (with exactly these arguments, for 24 hours)": {},
		"Always allow (with any arguments, for 90 minutes)":         {AnyArguments: true, Lifetime: 90 * time.Minute},
		"Always allow (with the same service, for 10 seconds)":      {Arguments: []string{"service"}, Lifetime: 10 * time.Second},
	} {
		var effects counter
		s := memSite(t, nil, deploy(&effects, &gate.ToolOptions{Remember: remember}))
		p := answering(`accept:{"decision":"allow_always"}`)
		cs := connect(t, s, legacy, p)
		for range 2 {
			wantText(t, call(t, cs, "deploy", `{"service":"api"}`), "deployed api")
		}
		p.want(t, 1)
		if schema, _ := json.Marshal(p.asked[0].RequestedSchema); !strings.Contains(string(schema), words) {
			t.Errorf("want %q in %s", words, schema)
		}
	}
}

// R19: where an "always" may not be remembered the question is asked again, for this once.
func TestAlwaysIsRefused(t *testing.T) {
	for _, version := range protocols {
		var effects counter
		tool := deploy(&effects, &gate.ToolOptions{Remember: &gate.RememberOptions{}})
		g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}, AuthorizeRemember: func(context.Context, gate.Remembering) error {
			return errors.New("the ledger of debts")
		}})
		p := answering(`accept:{"decision":"allow_always"}`, "accept:"+allow)
		wantText(t, call(t, connect(t, newSite(t, g, nil, tool), version, p), "deploy", `{"service":"api"}`), "deployed api")
		p.want(t, 2)
		if m := p.messages()[1]; !strings.HasPrefix(m, "Not accepted: the answer may not be remembered") || strings.Contains(m, "debts") {
			t.Errorf("message %q", m)
		}
		effects.want(t, 1)
	}
}

// R21: the transport's own session is bound: a call of another one with the same start ID takes the
// question over, and an answer in the first does nothing any more.
func TestNativeSessionIsBound(t *testing.T) {
	var effects counter
	tool := deploy(&effects, nil)
	g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}})
	s := newSite(t, g, &mcpbridge.Options{Authorize: func(context.Context, mcpbridge.Request) (mcpbridge.Grant, error) {
		return mcpbridge.Grant{Scope: "ann", StartID: "work"}, nil
	}}, tool)
	server := serve(t, nil, s)
	taken := make(chan struct{})
	first := as(t, server, "", legacy, nil, func(o *mcp.ClientOptions) {
		o.Capabilities = both()
		o.ElicitationHandler = func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			second := as(t, server, "", legacy, answering())
			wantEnding(t, call(t, second, "deploy", `{"service":"api"}`), gate.ErrConfirmationRequired) // nobody is there
			close(taken)
			return accept(allow), nil
		}
	})
	_, err := first.CallTool(t.Context(), &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": "api"}})
	<-taken
	wantError(t, err, mcpbridge.CodeInvalidContinuation, gate.ErrInvalidContinuation)
	effects.want(t, 0)
}
