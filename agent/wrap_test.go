package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// A payer is a tool of eino's that asks before it pays.
type payer struct {
	effects *atomic.Int64
	late    bool // asks after the first piece
}

func (p *payer) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: "pay", Desc: "pays", ParamsOneOf: schema.NewParamsOneOfByParams(map[string]*schema.ParameterInfo{
		"amount": {Type: schema.Integer, Required: true},
	})}, nil
}

func (p *payer) GetType() string { return "Payer" }

func (p *payer) IsCallbacksEnabled() bool { return true }

func (p *payer) pay(ctx context.Context, arguments string) (string, error) {
	var in struct{ Amount int }
	if err := json.Unmarshal([]byte(arguments), &in); err != nil {
		return "", err
	}
	if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("pay", fmt.Sprintf("Pay %d", in.Amount))); err != nil {
		return "", fmt.Errorf("deep inside: %w", err)
	}
	p.effects.Add(1)
	return fmt.Sprintf("paid %d", in.Amount), nil
}

type (
	invokes struct{ *payer }
	streams struct{ *payer }
	parts   struct{ *payer }
	flows   struct{ *payer }
)

func (p invokes) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	return p.pay(ctx, arguments)
}

func (p streams) StreamableRun(ctx context.Context, arguments string, _ ...tool.Option) (*schema.StreamReader[string], error) {
	return pieces(ctx, p.payer, arguments, func(s string) string { return s })
}

func (p parts) InvokableRun(ctx context.Context, a *schema.ToolArgument, _ ...tool.Option) (*schema.ToolResult, error) {
	text, err := p.pay(ctx, a.Text)
	if err != nil {
		return nil, err
	}
	return part(text), nil
}

func (p flows) StreamableRun(ctx context.Context, a *schema.ToolArgument, _ ...tool.Option) (*schema.StreamReader[*schema.ToolResult], error) {
	return pieces(ctx, p.payer, a.Text, part)
}

func part(text string) *schema.ToolResult {
	return &schema.ToolResult{Parts: []schema.ToolOutputPart{{Type: schema.ToolPartTypeText, Text: text}}}
}

// pieces streams the words; a question takes the place of the first one, or comes after it.
func pieces[T any](ctx context.Context, p *payer, arguments string, make func(string) T) (*schema.StreamReader[T], error) {
	reader, writer := schema.Pipe[T](1)
	go func() {
		defer writer.Close()
		var none T
		if p.late {
			writer.Send(make("first "), nil)
		}
		text, err := p.pay(ctx, arguments)
		if err != nil {
			writer.Send(none, err)
			return
		}
		for _, word := range strings.SplitAfter(text, " ") {
			writer.Send(make(word), nil)
		}
	}()
	return reader, nil
}

// R9: tools of eino's of every capability ask, and pay once what was approved, wrapped and under the
// middleware, in runs that stream and in those that do not.
func TestWrappedToolsAsk(t *testing.T) {
	for name, makeTool := range map[string]func(p *payer) tool.BaseTool{
		"invokable":           func(p *payer) tool.BaseTool { return invokes{p} },
		"streamable":          func(p *payer) tool.BaseTool { return streams{p} },
		"enhanced invokable":  func(p *payer) tool.BaseTool { return parts{p} },
		"enhanced streamable": func(p *payer) tool.BaseTool { return flows{p} },
	} {
		for _, streaming := range []bool{false, true} {
			for _, middleware := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s streaming=%v middleware=%v", name, streaming, middleware), func(t *testing.T) {
					var effects atomic.Int64
					inner := makeTool(&payer{effects: &effects})
					half, face, err := agent.Wrap(t.Context(), inner, nil)
					if err != nil {
						t.Fatal(err)
					}
					calls := []scripted.Call{call("a", "pay", `{ "amount": 7 }`), call("b", "pay", `{"amount":8}`)}
					one := streaming && strings.HasPrefix(name, "enhanced")
					if one { // eino 0.7.36 has a data race of its own where two such calls stream (ToolsNode.Stream, err)
						calls = calls[:1]
					}
					m := after(scripted.Do(calls...))
					o := worldOptions{tools: []*gate.Tool{half}, model: m, streaming: streaming, plain: []tool.BaseTool{face}}
					if middleware {
						o.plain, o.middlewares = []tool.BaseTool{inner}, []compose.ToolMiddleware{agent.Middleware(half)}
					}
					w := open(t, memstore.New(), o)
					run := w.start()
					if one {
						wantWaiting(t, run, "a")
						wantFinished(t, w.resume(run.ID, to(of(t, run, "a"), allow)), "[paid 7]")
						return
					}
					wantWaiting(t, run, "a", "b")
					if got := string(of(t, run, "a").Prompt.Arguments); got != `{"amount":7}` {
						t.Errorf("arguments that are shown: %s", got)
					}
					run = w.resume(run.ID, to(of(t, run, "a"), allow))
					wantWaiting(t, run, "b")
					run = w.resume(run.ID, to(of(t, run, "b"), reject))
					wantFinished(t, run, "[paid 7][A person was asked and rejected this call. It was not carried out. Do not make this call again.]")
					if effects.Load() != 1 {
						t.Errorf("%d payments", effects.Load())
					}
				})
			}
		}
	}
}

// A question after the first piece of a stream is none: the call has failed, and nothing is asked.
func TestLateQuestionFails(t *testing.T) {
	for name, inner := range map[string]tool.BaseTool{
		"text":  streams{&payer{effects: new(atomic.Int64), late: true}},
		"parts": flows{&payer{effects: new(atomic.Int64), late: true}},
	} {
		half, face, err := agent.Wrap(t.Context(), inner, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := after(scripted.Do(call("a", "pay", `{"amount":7}`)))
		w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{half}, model: m, streaming: true, plain: []tool.BaseTool{face}})
		run := w.start()
		if run.Status != agent.Finished || !strings.Contains(run.Message, "first ") || !strings.Contains(run.Message, "The call failed") {
			t.Errorf("%s: have %s with %q", name, run.Status, run.Message)
		}
	}
}

// The half for the agent has exactly the interfaces of the tool, and its names.
func TestWrapKeepsInterfaces(t *testing.T) {
	p := &payer{effects: new(atomic.Int64)}
	for name, inner := range map[string]tool.BaseTool{
		"invokable": invokes{p}, "streamable": streams{p}, "enhanced invokable": parts{p}, "enhanced streamable": flows{p},
		"both": struct {
			*payer
			i
			s
		}{p, i{invokes{p}}, s{streams{p}}},
		"both enhanced": struct {
			*payer
			ei
			es
		}{p, ei{parts{p}}, es{flows{p}}},
		"text, and parts that stream": struct {
			*payer
			i
			es
		}{p, i{invokes{p}}, es{flows{p}}},
		"parts, and text that streams": struct {
			*payer
			ei
			s
		}{p, ei{parts{p}}, s{streams{p}}},
	} {
		_, face, err := agent.Wrap(t.Context(), inner, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for what, is := range map[string]func(tool.BaseTool) bool{
			"invokable":           func(b tool.BaseTool) bool { _, ok := b.(tool.InvokableTool); return ok },
			"streamable":          func(b tool.BaseTool) bool { _, ok := b.(tool.StreamableTool); return ok },
			"enhanced invokable":  func(b tool.BaseTool) bool { _, ok := b.(tool.EnhancedInvokableTool); return ok },
			"enhanced streamable": func(b tool.BaseTool) bool { _, ok := b.(tool.EnhancedStreamableTool); return ok },
		} {
			if is(inner) != is(face) {
				t.Errorf("%s: %s is %v, and of its half %v", name, what, is(inner), is(face))
			}
		}
		if typ, _ := components.GetType(face); typ != "Payer" || !components.IsCallbacksEnabled(face) {
			t.Errorf("%s: type %q, callbacks %v", name, typ, components.IsCallbacksEnabled(face))
		}
	}
	if _, _, err := agent.Wrap(t.Context(), p, nil); err == nil {
		t.Error("a tool that can do nothing was wrapped")
	}
	if _, _, err := agent.Wrap(t.Context(), nil, nil); err == nil {
		t.Error("nil was wrapped")
	}
}

// These have one method each, so that they can stand beside each other.
type (
	i  struct{ inner invokes }
	ei struct{ inner parts }
	s  struct{ inner streams }
	es struct{ inner flows }
)

func (t i) InvokableRun(ctx context.Context, a string, o ...tool.Option) (string, error) {
	return t.inner.InvokableRun(ctx, a, o...)
}

func (t ei) InvokableRun(ctx context.Context, a *schema.ToolArgument, o ...tool.Option) (*schema.ToolResult, error) {
	return t.inner.InvokableRun(ctx, a, o...)
}

func (t s) StreamableRun(ctx context.Context, a string, o ...tool.Option) (*schema.StreamReader[string], error) {
	return t.inner.StreamableRun(ctx, a, o...)
}

func (t es) StreamableRun(ctx context.Context, a *schema.ToolArgument, o ...tool.Option) (*schema.StreamReader[*schema.ToolResult], error) {
	return t.inner.StreamableRun(ctx, a, o...)
}

// A native tool is eino's own, and does what its function does.
type native struct {
	name string
	run  func(ctx context.Context) (string, error)
}

func (n native) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: n.name, Desc: "d"}, nil
}

func (n native) InvokableRun(ctx context.Context, _ string, _ ...tool.Option) (string, error) {
	return n.run(ctx)
}

// An interrupt of eino's own is shown to nobody: the run fails, and says how to convert it.
func TestForeignInterruptFailsTheRun(t *testing.T) {
	foreign := native{"foreign", func(ctx context.Context) (string, error) { return "", tool.Interrupt(ctx, "sure?") }}
	half, face, err := agent.Wrap(t.Context(), foreign, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]worldOptions{
		"not wrapped": {plain: []tool.BaseTool{foreign}},
		"wrapped":     {plain: []tool.BaseTool{face}, tools: []*gate.Tool{half}},
	} {
		var effects atomic.Int64
		pay := deploy(&effects, nil)
		o.tools, o.plain = append(o.tools, pay), append(o.plain, agent.Tool(pay))
		o.model = after(scripted.Do(call("f", "foreign", `{}`), call("a", "deploy", deployInput{"a"})))
		w := open(t, memstore.New(), o)
		run, err := w.agent.Start(t.Context(), releaseIt).Run()
		if !errors.Is(err, agent.ErrForeignInterrupt) || run == nil || run.Status != agent.Failed || len(run.Questions) > 0 {
			t.Fatalf("%s: have %+v, %v", name, run, err)
		}
		if again := w.resume(run.ID); again.Status != agent.Failed || again.Message == "" {
			t.Errorf("%s: resumed, it is %+v", name, again)
		}
	}
}

// A tool outside of a run, and an agent whose model is not wrapped, are told apart from everything
// else.
func TestNotWired(t *testing.T) {
	var effects atomic.Int64
	pay := deploy(&effects, nil)
	_, err := agent.Tool(pay).InvokableRun(t.Context(), `{"service":"a"}`)
	wantCode(t, "outside of a run", err, agent.ErrNoRun)

	g, err := gate.Open(t.Context(), memstore.New(), &gate.Options{Tools: []*gate.Tool{pay}, Keys: [][]byte{testKey}})
	if err != nil {
		t.Fatal(err)
	}
	m := after(deploying("a"))
	naked, err := utils.InferTool("naked", "d", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := interrupt.Ask(ctx, interrupt.ToolPermission("naked", "Do it"))
		return "", err
	})
	if err != nil {
		t.Fatal(err)
	}
	asks := open(t, memstore.New(), worldOptions{model: after(scripted.Do(call("n", "naked", struct{}{}))), plain: []tool.BaseTool{naked}})
	_, err = asks.agent.Start(t.Context(), releaseIt).Run()
	wantCode(t, "a tool that is not wrapped", err, agent.ErrUnwrapped)
	wired, err := agent.New(t.Context(), g, chat("A", m, compose.ToolsNodeConfig{Tools: []tool.BaseTool{agent.Tool(pay)}}), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = wired.Start(t.Context(), releaseIt).Run()
	wantCode(t, "a model that is not wrapped", err, agent.ErrModel)
	if err := errors.Join(wired.Close(t.Context()), g.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if effects.Load() != 0 {
		t.Error("it ran")
	}
}
