package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// plain is a tool of another gate that uses a tool of a server, and asks nothing itself.
func plain(name string, h *mcpbridge.ClientHandler, params *mcp.CallToolParams) *gate.Tool {
	return raw(name, func(ctx context.Context) (any, error) {
		result, err := h.CallTool(ctx, "call", params)
		if err != nil {
			return nil, err
		}
		return textOf(result), nil
	}, nil)
}

func handler(t *testing.T, s *site, version string, opts *mcpbridge.ClientHandlerOptions) *mcpbridge.ClientHandler {
	t.Helper()
	h := mcpbridge.NewClientHandler("the site", asking(t, s, version), opts)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("close client handler: %v", err)
		}
	})
	return h
}

// A play calls a tool of a gate and answers its one question of each round.
type play struct {
	gate    *gate.Gate
	request gate.Call
	outcome gate.Outcome
}

func newPlay(g *gate.Gate, tool string) *play {
	return &play{gate: g, request: gate.Call{Tool: tool, Arguments: json.RawMessage(`{}`), Scope: "ann", Session: "s", Facilities: fourKinds}}
}

func (p *play) answer(ctx context.Context, answer string) error {
	if answer != "" {
		p.request.Token = p.outcome.Prompt.Token
		p.request.Answers = gate.Answers{p.outcome.Prompt.Questions[0].ID: json.RawMessage(answer)}
	}
	var err error
	p.outcome, err = p.gate.Invoke(ctx, p.request)
	return err
}

// through answers a round each, and returns what was asked and the end.
func (p *play) through(t *testing.T, answers ...string) (asked []string, result string) {
	t.Helper()
	for i, answer := range append([]string{""}, answers...) {
		if err := p.answer(t.Context(), answer); err != nil {
			t.Fatalf("round %d: %v (%v)", i, err, errors.Unwrap(err))
		}
		if p.outcome.Prompt != nil {
			asked = append(asked, string(p.outcome.Prompt.Questions[0].Body))
		}
	}
	return asked, string(p.outcome.Result)
}

// What a server of an older session asks while its tool runs goes to the same person, as it does in
// 2026-07-28: the call waits between two runs of the handler. No default is put into an answer.
func TestClientHandlerInASession(t *testing.T) {
	s := memSite(t, nil, everyKind())
	tool := plain("using", handler(t, s, legacy, nil), &mcp.CallToolParams{Name: "every_kind"})
	g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}})
	asked, result := newPlay(g, "using").through(t, `{"content":{"decision":"allow_once"}}`, `{"content":{"choice":"0"}}`,
		`{"content":{"name":"Ann","sure":true}}`, `{}`)
	if want := `"{\"choice\":\"north\",\"form\":{\"name\":\"Ann\",\"sure\":true}}"`; result != want {
		t.Errorf("result %s, want %s", result, want)
	}
	for i, part := range []string{"the site asks: Go on?", "the site asks: every_kind asks", "the site asks: Who?", "the site asks: Connect"} {
		if !strings.Contains(asked[i], part) {
			t.Errorf("question %d: %s, want %q", i+1, asked[i], part)
		}
	}
}

// A server is reached over HTTP as well, in every protocol, and numbers arrive as they were written.
func TestClientHandlerOverHTTP(t *testing.T) {
	for _, version := range protocols {
		var effects counter
		s := memSite(t, &mcpbridge.Options{Authorize: byUser}, deploy(&effects, nil), form(anyNumbers))
		transport := &mcp.StreamableClientTransport{
			Endpoint: serve(t, &users{}, s).URL, HTTPClient: &http.Client{Transport: bearer{"ann"}},
		}
		session, err := mcpbridge.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).
			Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		h := mcpbridge.NewClientHandler("the site", session, nil)
		tool := plain("using", h, &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": "api"}})
		counts := plain("counts", h, &mcp.CallToolParams{Name: "form"})
		g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool, counts}})
		if _, result := newPlay(g, "using").through(t, `{"content":{"decision":"allow_once"}}`); result != `"deployed api"` {
			t.Errorf("%s: result %s", version, result)
		}
		effects.want(t, 1)
		const numbers = `{"i":9007199254740993,"n":0.12345678901234567890123}`
		if _, result := newPlay(g, "counts").through(t, `{"content":`+numbers+`}`); result != strconv.Quote(numbers) {
			t.Errorf("%s: result %s", version, result)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// R15: a form that is left blank is answered with an empty object, in every protocol.
func TestClientHandlerBlankForm(t *testing.T) {
	for _, version := range protocols {
		s := memSite(t, nil, form(`{"type":"object","properties":{"note":{"type":"string"}}}`))
		tool := plain("using", handler(t, s, version, nil), &mcp.CallToolParams{Name: "form"})
		g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}})
		if asked, result := newPlay(g, "using").through(t, `{"content":{}}`); result != `"{}"` {
			t.Errorf("%s: result %s, asked %q", version, result, asked)
		}
	}
}

// A no is the server's to know in a session, too.
func TestClientHandlerDeclinesInASession(t *testing.T) {
	var effects counter
	s := memSite(t, nil, deploy(&effects, nil))
	tool := plain("using", handler(t, s, oldest, nil), &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": "api"}})
	g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}})
	if _, result := newPlay(g, "using").through(t, `{"action":"decline"}`); result != `"declined: the person declined to answer"` {
		t.Errorf("result %s", result)
	}
	effects.want(t, 0)
}

// R27: a call in a session that was lost with its process is no call that can be made again: what
// became of it is not known.
func TestClientHandlerIsLost(t *testing.T) {
	var effects counter
	s := memSite(t, nil, deploy(&effects, nil))
	store := memstore.New()
	params := &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": "api"}}
	open := func() *gate.Gate {
		return openGate(t, store, gate.Options{Tools: []*gate.Tool{plain("using", handler(t, s, legacy, nil), params)}})
	}
	g := open()
	p := newPlay(g, "using")
	p.through(t)
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.gate = open()
	if err := p.answer(t.Context(), `{"content":{"decision":"allow_once"}}`); !errors.Is(err, gate.ErrOutcomeUnknown) {
		t.Errorf("end %v", err)
	}
	effects.want(t, 0)
}

// A server of a session does not wait for ever, and is told that nobody answered.
func TestClientHandlerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		ask := raw("ask", func(ctx context.Context) (any, error) {
			_, err := interrupt.Ask(ctx, interrupt.URL("Connect", "https://example.com"))
			if errors.Is(err, interrupt.ErrCancelled) {
				ended <- err
			}
			return "done", err
		}, nil)
		s := memSite(t, nil, ask)
		tool := plain("using", handler(t, s, legacy, &mcpbridge.ClientHandlerOptions{Wait: time.Minute}), &mcp.CallToolParams{Name: "ask"})
		g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}})
		p := newPlay(g, "using")
		p.through(t)
		began := time.Now()
		if <-ended; time.Since(began) != time.Minute {
			t.Errorf("waited %v", time.Since(began))
		}
		if err := p.answer(t.Context(), `{}`); !errors.Is(err, gate.ErrOutcomeUnknown) {
			t.Errorf("end %v", err)
		}
	})
}

// In a session calls take turns, since the server does not say which one asks: what it asks goes to
// the person of the call that runs, and while that waits another one is refused.
func TestClientHandlerTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var effects counter
		s := memSite(t, nil, deploy(&effects, nil), raw("slow", func(context.Context) (any, error) {
			time.Sleep(time.Minute)
			return "slept", nil
		}, nil))
		h := handler(t, s, legacy, nil)
		slow := plain("slow", h, &mcp.CallToolParams{Name: "slow"})
		asks := plain("asks", h, &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": "api"}})
		g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{slow, asks}})
		slept := make(chan error, 1)
		first, second, third := newPlay(g, "slow"), newPlay(g, "asks"), newPlay(g, "slow")
		go func() { slept <- first.answer(t.Context(), "") }()
		synctest.Wait()
		began := time.Now()
		second.through(t)
		if time.Since(began) != time.Minute {
			t.Errorf("had its turn after %v", time.Since(began))
		}
		if err := <-slept; err != nil || string(first.outcome.Result) != `"slept"` {
			t.Errorf("the first: %s, %v", first.outcome.Result, err)
		}
		e, ok := errors.AsType[*gate.Error](third.answer(t.Context(), ""))
		if !ok || e.Code != gate.ErrFailed || e.Message != "the site is busy with another call" {
			t.Errorf("beside a waiting call: %v", e)
		}
		if err := second.answer(t.Context(), `{"content":{"decision":"allow_once"}}`); err != nil {
			t.Error(err)
		}
		effects.want(t, 1)
		if _, result := newPlay(g, "slow").through(t); result != `"slept"` {
			t.Errorf("afterwards: %s", result)
		}
	})
}

// What is asked of nobody is told to the server at once, and holds up no other call: a secret, what
// cannot be kept, and what the caller's host cannot ask.
func TestClientHandlerHoldsUpNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		question interrupt.Interrupt
		can      []interrupt.Facility
		want     gate.Code
	}{
		"an unfit form": {interrupt.Form("?", json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}`)),
			fourKinds, gate.ErrFailed},
		"a large one": {interrupt.Form(strings.Repeat("?", 100<<10), json.RawMessage(`{"type":"object"}`)), fourKinds, gate.ErrFailed},
		"no facility": {interrupt.URL("?", "https://example.com"), []interrupt.Facility{interrupt.FacilityForm}, gate.ErrConfirmationRequired},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			s := memSite(t, nil, raw("quick", func(context.Context) (any, error) { return "done", nil }, nil),
				raw("ask", func(ctx context.Context) (any, error) {
					_, err := interrupt.Ask(ctx, tc.question)
					if errors.Is(err, interrupt.ErrCancelled) {
						ended <- err
					}
					return nil, err
				}, nil))
			h := handler(t, s, legacy, nil)
			asks, quick := plain("asks", h, &mcp.CallToolParams{Name: "ask"}), plain("quick", h, &mcp.CallToolParams{Name: "quick"})
			g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{asks, quick}})
			p := newPlay(g, "asks")
			p.request.Facilities = tc.can
			if err := p.answer(t.Context(), ""); !errors.Is(err, tc.want) {
				t.Errorf("end %v, want %s", err, tc.want)
			}
			<-ended
			for { // the call ends when the server's last word is there
				err := newPlay(g, "quick").answer(t.Context(), "")
				if err == nil {
					break
				}
				if e, ok := errors.AsType[*gate.Error](err); !ok || e.Message != "the site is busy with another call" {
					t.Fatal(err)
				}
			}
		})
	}
}

// A run of the handler that is cancelled takes its call along.
func TestClientHandlerIsCancelled(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	s := memSite(t, nil, raw("slow", func(ctx context.Context) (any, error) {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}, nil))
	tool := plain("using", handler(t, s, legacy, nil), &mcp.CallToolParams{Name: "slow"})
	g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if err := newPlay(g, "using").answer(ctx, ""); err == nil {
		t.Error("it came to an end")
	}
	<-ended
}

// U7: a server of 2025-11-25 can want pages visited before a call. The call is made when a person
// said yes to them, again as long as there are any, and not at all after a no.
func TestClientHandlerVisitsPages(t *testing.T) {
	for answer, want := range map[string]string{`{}`: `"connected"`, `{"action":"decline"}`: ""} {
		calls := 0
		s := memSite(t, nil)
		s.server.AddTool(&mcp.Tool{Name: "tool", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if calls++; calls < 3 {
					return nil, mcp.URLElicitationRequiredError([]*mcp.ElicitParams{
						{Mode: "url", Message: "Connect", URL: "https://example.com/connect", ElicitationID: "1"},
					})
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "connected"}}}, nil
			})
		tool := plain("using", handler(t, s, legacy, nil), &mcp.CallToolParams{Name: "tool"})
		g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}})
		p := newPlay(g, "using")
		if want != "" {
			if asked, result := p.through(t, answer, answer); result != want || !strings.Contains(asked[1], "the site asks: Connect") {
				t.Errorf("asked %s, result %s, want %s", asked, result, want)
			}
			continue
		}
		p.through(t)
		if err := p.answer(t.Context(), answer); !errors.Is(err, gate.ErrDeclined) || calls != 1 {
			t.Errorf("after a no: %v, %d calls", err, calls)
		}
	}
}

// What a server asks before a person answered is bounded: the rest is cancelled at once.
func TestClientHandlerIsFlooded(t *testing.T) {
	const asks, room = 200, 16
	cancels := make(chan struct{}, asks)
	s := memSite(t, nil)
	s.server.AddTool(&mcp.Tool{Name: "flood", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var all sync.WaitGroup
			var declined counter
			for range asks {
				all.Go(func() {
					answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?", RequestedSchema: json.RawMessage(`{"type":"object"}`)})
					switch {
					case err != nil:
						t.Error(err)
					case answer.Action == "decline":
						declined.add()
					default:
						cancels <- struct{}{}
					}
				})
			}
			all.Wait()
			declined.want(t, room)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		})
	tool := plain("using", handler(t, s, legacy, nil), &mcp.CallToolParams{Name: "flood"})
	p := newPlay(openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}, MaxPrompts: room}), "using")
	p.through(t)
	for range asks - room {
		<-cancels
	}
	for range room {
		if err := p.answer(t.Context(), `{"action":"decline"}`); err != nil {
			t.Fatal(err)
		}
	}
	if string(p.outcome.Result) != `"done"` {
		t.Errorf("result %s", p.outcome.Result)
	}
}

// What a server asks outside of a handler's call is nobody's.
func TestNobodysQuestion(t *testing.T) {
	var effects counter
	s := memSite(t, nil, deploy(&effects, nil))
	wantEnding(t, call(t, asking(t, s, legacy), "deploy", `{"service":"api"}`), gate.ErrCancelled)
	effects.want(t, 0)
}
