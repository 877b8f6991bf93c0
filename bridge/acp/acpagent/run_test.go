package acpagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudwego/eino/schema"
	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/agent"
	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/bridge/acp/acpagent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

type service struct {
	Service string `json:"service"`
}

func deploy(effects *atomic.Int64) *gate.Tool {
	return gate.NewTool("deploy", func(ctx context.Context, in service) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service)); err != nil {
			return "", err
		}
		effects.Add(1)
		return "deployed " + in.Service, nil
	}, nil)
}

// A person answers what an editor shows, and remembers what the editor was told.
type person struct {
	acp.Client
	answer func(ctx context.Context, title string) (option string)
	form   func(message string) map[string]any

	mu       sync.Mutex
	asked    []string // titles
	ids      []string // of the tool calls of the questions
	statuses map[string][]string
	text     strings.Builder
	updates  []acp.SessionUpdate
	heard    func(u acp.SessionUpdate) // nil: nobody waits for one
}

func (p *person) RequestPermission(ctx context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	p.mu.Lock()
	p.asked, p.ids = append(p.asked, *r.ToolCall.Title), append(p.ids, string(r.ToolCall.ToolCallId))
	p.mu.Unlock()
	option := p.answer(ctx, *r.ToolCall.Title)
	if ctx.Err() != nil || option == "cancelled" {
		return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
	}
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(acp.PermissionOptionId(option))}, nil
}

// UnstableCreateElicitation accepts a form with what the person fills in.
func (p *person) UnstableCreateElicitation(
	_ context.Context, r acp.UnstableCreateElicitationRequest,
) (acp.UnstableCreateElicitationResponse, error) {
	return acp.UnstableCreateElicitationResponse{Accept: &acp.UnstableCreateElicitationAccept{Action: "accept", Content: p.form(r.Form.Message)}}, nil
}

func (p *person) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.statuses == nil {
		p.statuses = map[string][]string{}
	}
	p.updates = append(p.updates, n.Update)
	if p.heard != nil {
		p.heard(n.Update)
	}
	switch u := n.Update; {
	case u.ToolCall != nil:
		p.statuses[string(u.ToolCall.ToolCallId)] = append(p.statuses[string(u.ToolCall.ToolCallId)], string(u.ToolCall.Status))
	case u.ToolCallUpdate != nil && u.ToolCallUpdate.Status != nil:
		p.statuses[string(u.ToolCallUpdate.ToolCallId)] = append(p.statuses[string(u.ToolCallUpdate.ToolCallId)], string(*u.ToolCallUpdate.Status))
	case u.AgentMessageChunk != nil:
		p.text.WriteString(u.AgentMessageChunk.Content.Text.Text)
	}
	return nil
}

// told are the statuses of all calls, and the text.
func (p *person) told() (statuses []string, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, all := range p.statuses {
		statuses = append(statuses, strings.Join(all, " "))
	}
	slices.Sort(statuses)
	return statuses, p.text.String()
}

// anAgent is the example of the package's documentation.
type anAgent struct {
	gate   *gate.Gate
	bridge *acpbridge.Bridge
	agent  *agent.Agent
	left   []agent.Question // when the session was resumed
	err    error            // of the latest turn
}

func (a *anAgent) Initialize(_ context.Context, p acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{ProtocolVersion: p.ProtocolVersion, AuthMethods: []acp.AuthMethod{}}, nil
}

func (a *anAgent) NewSession(context.Context, acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	return acp.NewSessionResponse{SessionId: "s1"}, nil
}

func (a *anAgent) ResumeSession(ctx context.Context, p acp.ResumeSessionRequest) (r acp.ResumeSessionResponse, err error) {
	a.left, err = acpagent.Waiting(ctx, a.bridge, a.agent, p.SessionId)
	return r, err
}

func (a *anAgent) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	turn := acpbridge.TurnOf(ctx)
	_, a.err = acpagent.GoOn(ctx, turn, a.agent)
	if a.err == nil {
		_, a.err = acpagent.Start(ctx, turn, a.agent, []*schema.Message{schema.UserMessage(p.Prompt[0].Text.Text)})
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, a.err
}

// A window is an editor with its agent process.
type window struct {
	t      *testing.T
	site   *site
	agent  *anAgent
	client *acp.ClientSideConnection
	close  func()
}

const (
	pollInterval = 5 * time.Millisecond
	patience     = 20 * time.Second
)

func open(t *testing.T, store checkpoint.Store, m *scripted.Model, p *person, tools ...*gate.Tool) *window {
	t.Helper()
	return openAt(t, store, m, p, pollInterval, tools...)
}

// openAt is open, of a window that looks that often whether a question was answered elsewhere.
func openAt(
	t *testing.T, store checkpoint.Store, m *scripted.Model, p *person, poll time.Duration, tools ...*gate.Tool,
) *window {
	t.Helper()
	s, err := build(store, m, poll, tools...)
	if err != nil {
		t.Fatal(err)
	}
	return s.window(t, p)
}

func (s *site) window(t *testing.T, p *person) *window {
	t.Helper()
	w := &window{t: t, site: s, agent: &anAgent{gate: s.gate, bridge: s.bridge, agent: s.agent}}
	can := acp.ClientCapabilities{Elicitation: &acp.ElicitationCapabilities{Form: &acp.ElicitationFormCapabilities{}}}
	var err error
	if w.client, err = s.connectTo(w.agent, p, can); err != nil {
		t.Fatal(err)
	}
	w.close = sync.OnceFunc(s.close)
	t.Cleanup(func() { w.close() })
	return w
}

func (w *window) prompt(want acp.StopReason) {
	w.t.Helper()
	r, err := w.client.Prompt(w.t.Context(), acp.PromptRequest{SessionId: "s1", Prompt: []acp.ContentBlock{acp.TextBlock("release")}})
	if err != nil || r.StopReason != want {
		w.t.Errorf("the turn ends with %q, %v, want %q", r.StopReason, err, want)
	}
}

// twoCalls is a model that makes two calls in one answer, says what it was told, and begins anew
// with every new message.
func twoCalls() *scripted.Model {
	return scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
		var told []string
		for _, m := range input {
			if m.Role == schema.Tool {
				told = append(told, m.Content)
			}
		}
		if len(told) == 0 {
			return scripted.Do(scripted.Call{ID: "1", Tool: "deploy", Arguments: service{"api"}},
				scripted.Call{ID: "2", Tool: "deploy", Arguments: service{"web"}}), nil
		}
		return scripted.Say(strings.Join(told, "; ")), nil
	})
}

func allowing(answers map[string]string) func(ctx context.Context, title string) string {
	return func(_ context.Context, title string) string { return answers[title] }
}

// Two tools that ask in one turn are asked one after the other, each with its own answer; the turn
// goes on after a rejection.
func TestTwoQuestions(t *testing.T) {
	var effects atomic.Int64
	p := &person{answer: allowing(map[string]string{"Deploy api": "allow_once", "Deploy web": "reject_once"})}
	w := open(t, memstore.New(), twoCalls(), p, deploy(&effects))
	w.prompt(acp.StopReasonEndTurn)
	w.close()
	statuses, text := p.told()
	if !slices.Equal(statuses, []string{"pending failed", "pending in_progress completed"}) || effects.Load() != 1 {
		t.Errorf("statuses %q, %d effects", statuses, effects.Load())
	}
	if !strings.Contains(text, "deployed api") || !strings.Contains(text, "rejected") {
		t.Errorf("text %q", text)
	}
}

// R25: the window is closed in the middle of a question. The next process lists it, puts it again
// in the next turn, as the same call, and the run goes on from its checkpoint.
func TestRestart(t *testing.T) {
	var effects atomic.Int64
	file := filepath.Join(t.TempDir(), "ledger.db")
	m := twoCalls()
	process := func(p *person) *window {
		store, err := boltstore.Open(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := open(t, store, m, p, deploy(&effects))
		before := w.close
		w.close = func() { before(); store.Close() }
		return w
	}
	asked := make(chan struct{})
	first := &person{answer: func(ctx context.Context, title string) string {
		if title == "Deploy web" {
			close(asked)
			<-ctx.Done()
		}
		return "allow_once"
	}}
	w := process(first)
	go w.client.Prompt(context.Background(), acp.PromptRequest{SessionId: "s1", Prompt: []acp.ContentBlock{acp.TextBlock("release")}})
	<-asked
	w.close()
	if effects.Load() != 1 {
		t.Fatalf("%d effects before the restart", effects.Load())
	}
	modelAsked := m.Asked()

	second := &person{answer: allowing(map[string]string{"Deploy api": "allow_once", "Deploy web": "allow_once"})}
	w = process(second)
	defer w.close()
	if _, err := w.client.ResumeSession(t.Context(), acp.ResumeSessionRequest{SessionId: "s1", Cwd: "/"}); err != nil {
		t.Fatal(err)
	}
	if left := w.agent.left; len(left) != 1 || left[0].StartID != first.ids[1] || left[0].Prompt.Token != "" {
		t.Errorf("left: %+v", left)
	}
	w.prompt(acp.StopReasonEndTurn) // the run that was left, and one for the new message
	if second.asked[0] != "Deploy web" || second.ids[0] != first.ids[1] || len(second.asked) != 3 {
		t.Errorf("asked %v, of calls %v", second.asked, second.ids)
	}
	if effects.Load() != 4 || m.Asked() != modelAsked+3 {
		t.Errorf("%d effects, the model was asked %d times", effects.Load(), m.Asked()-modelAsked)
	}
}

// A turn that is cancelled ends its run: what is open is recorded as cancelled, the model is not
// asked, and the next turn begins anew.
func TestCancel(t *testing.T) {
	for _, how := range []string{"session/cancel", "the outcome"} {
		t.Run(how, func(t *testing.T) {
			var effects atomic.Int64
			m := twoCalls()
			var w *window
			p := &person{answer: func(ctx context.Context, title string) string {
				if how == "the outcome" {
					return "cancelled"
				}
				if err := w.client.Cancel(ctx, acp.CancelNotification{SessionId: "s1"}); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				return "allow_once"
			}}
			w = open(t, memstore.New(), m, p, deploy(&effects))
			w.prompt(acp.StopReasonCancelled)
			if !errors.Is(w.agent.err, gate.ErrCancelled) || m.Asked() != 1 || effects.Load() != 0 {
				t.Errorf("ended with %v; the model was asked %d times, %d effects", w.agent.err, m.Asked(), effects.Load())
			}
			page, err := w.agent.gate.List(t.Context(), gate.ListQuery{Scope: "ann", Statuses: []checkpoint.Status{checkpoint.Finished}})
			if err != nil || len(page.Interactions) != 2 || page.Interactions[0].Code != gate.ErrCancelled || page.Interactions[1].Code != gate.ErrCancelled {
				t.Errorf("recorded: %+v, %v", page.Interactions, err)
			}
			p.answer = allowing(map[string]string{"Deploy api": "allow_once", "Deploy web": "allow_once"})
			w.prompt(acp.StopReasonEndTurn)
			w.close()
			statuses, _ := p.told()
			want := []string{"pending failed", "pending failed", "pending in_progress completed", "pending in_progress completed"}
			if !slices.Equal(statuses, want) || effects.Load() != 2 {
				t.Errorf("statuses %q, %d effects", statuses, effects.Load())
			}
		})
	}
}

// R16: an answer that is none is asked again.
func TestAskedAgain(t *testing.T) {
	var effects atomic.Int64
	n := 0
	p := &person{answer: func(_ context.Context, title string) string {
		if n++; n == 1 {
			return "yes"
		}
		return "allow_once"
	}}
	w := open(t, memstore.New(), twoCalls(), p, deploy(&effects))
	w.prompt(acp.StopReasonEndTurn)
	if n != 3 || effects.Load() != 2 {
		t.Errorf("asked %d times, %d effects", n, effects.Load())
	}
}

// R16: an answer that the gate refuses leaves the question open in the run, and it is asked again.
func TestRefusedAnswer(t *testing.T) {
	form := gate.NewTool("deploy", func(ctx context.Context, in service) (string, error) {
		schema := json.RawMessage(`{"type":"object","properties":{"why":{"type":"string","minLength":3}},"required":["why"]}`)
		q, err := interrupt.Ask(ctx, interrupt.Form("Why "+in.Service+"?", schema))
		if err != nil {
			return "", err
		}
		return string(q.Content), nil
	}, nil)
	p := &person{form: func(message string) map[string]any {
		if strings.HasPrefix(message, "Not accepted: why: ") {
			return map[string]any{"why": "because"}
		}
		return map[string]any{"why": "so"}
	}}
	w := open(t, memstore.New(), twoCalls(), p, form)
	w.prompt(acp.StopReasonEndTurn)
	w.close()
	statuses, text := p.told()
	if !slices.Equal(statuses, []string{"pending in_progress completed", "pending in_progress completed"}) || strings.Count(text, "because") != 2 {
		t.Errorf("statuses %q, text %q", statuses, text)
	}
}

// The handler of a run knows whether its own answer was given to a fallback, whatever another's was.
func TestFallback(t *testing.T) {
	tool := gate.NewTool("deploy", func(ctx context.Context, in service) (string, error) {
		var err error
		if in.Service == "api" {
			_, err = interrupt.Ask(ctx, interrupt.URL("Sign in", "https://example.com/in"))
		} else {
			_, err = interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service))
		}
		return fmt.Sprintf("%s %v", in.Service, acpbridge.AskedAsFallback(ctx)), err
	}, nil)
	p := &person{answer: allowing(map[string]string{"Open a page": "open", "Deploy web": "allow_once"})}
	w := open(t, memstore.New(), twoCalls(), p, tool)
	w.prompt(acp.StopReasonEndTurn)
	w.close()
	if _, text := p.told(); !strings.Contains(text, "api true") || !strings.Contains(text, "web false") {
		t.Errorf("the tools said %q", text)
	}
}

// An answer that is refused for another reason than its own is not asked for again and again: the
// question is left for another turn.
func TestNotAuthorized(t *testing.T) {
	tool := gate.NewTool("deploy", func(ctx context.Context, in service) (string, error) {
		_, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service))
		return "deployed", err
	}, &gate.ToolOptions{Authorize: func(_ context.Context, e gate.Execution) error {
		if e.Round > 0 {
			return errors.New("not today")
		}
		return nil
	}})
	p := &person{answer: func(context.Context, string) string { return "allow_once" }}
	w := open(t, memstore.New(), twoCalls(), p, tool)
	_, err := w.client.Prompt(t.Context(), acp.PromptRequest{SessionId: "s1", Prompt: []acp.ContentBlock{acp.TextBlock("release")}})
	if failed, ok := errors.AsType[*acp.RequestError](err); !ok || failed.Code != -32000 || len(p.asked) != 2 {
		t.Errorf("the turn ends with %v, asked %v", err, p.asked)
	}
	w.close()
	if statuses, _ := p.told(); !slices.Equal(statuses, []string{"pending in_progress failed", "pending in_progress failed"}) {
		t.Errorf("statuses %q", statuses)
	}
}

// R24: the host is asked in every round. An answer of somebody whom it does not serve any more is not
// recorded, and the question waits.
func TestNotServedAnyMore(t *testing.T) {
	var effects atomic.Int64
	var w *window
	p := &person{answer: func(context.Context, string) string {
		w.site.refuses.Store(true)
		return "allow_once"
	}}
	w = open(t, memstore.New(), twoCalls(), p, deploy(&effects))
	_, err := w.client.Prompt(t.Context(), acp.PromptRequest{SessionId: "s1", Prompt: []acp.ContentBlock{acp.TextBlock("release")}})
	if refused, ok := errors.AsType[*acp.RequestError](err); !ok || refused.Code != -32000 || effects.Load() != 0 {
		t.Errorf("ended with %v, %d effects", err, effects.Load())
	}
	w.site.refuses.Store(false)
	p.answer = allowing(map[string]string{"Deploy api": "reject_once", "Deploy web": "reject_once"})
	w.prompt(acp.StopReasonEndTurn)
	w.close()
	if have := fmt.Sprint(p.asked); have != "[Deploy api Deploy api Deploy web Deploy api Deploy web]" || p.ids[0] != p.ids[1] {
		t.Errorf("asked %v, of %v", have, p.ids)
	}
}

// R24: an answer from the inbox withdraws the question, and the run goes on with it.
func TestElsewhere(t *testing.T) {
	var effects atomic.Int64
	var w *window
	p := &person{answer: func(ctx context.Context, title string) string {
		if title == "Deploy web" {
			return "allow_once"
		}
		page, err := w.agent.gate.List(ctx, gate.ListQuery{Scope: "ann"})
		if err != nil {
			t.Error(err)
		}
		for _, s := range page.Interactions {
			if !strings.Contains(string(s.Arguments), "api") {
				continue
			}
			answers := gate.Answers{s.Prompt.Questions[0].ID: json.RawMessage(`{"optionId":"reject_once"}`)}
			if err := w.agent.gate.Answer(ctx, gate.AnswerRequest{Interaction: s.ID, Round: 1, Scope: "ann", Answers: answers}); err != nil {
				t.Error(err)
			}
		}
		<-ctx.Done()
		return "allow_once"
	}}
	w = open(t, memstore.New(), twoCalls(), p, deploy(&effects))
	w.prompt(acp.StopReasonEndTurn)
	w.close()
	if statuses, text := p.told(); effects.Load() != 1 || !strings.Contains(text, "rejected") || fmt.Sprint(p.asked) != "[Deploy api Deploy web]" {
		t.Errorf("%d effects, statuses %q, text %q, asked %v", effects.Load(), statuses, text, p.asked)
	}
}
