package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// history is a conversation of n messages of 200 bytes.
func history(n int) []*schema.Message {
	messages := make([]*schema.Message, n)
	for i := range messages {
		text := strings.Repeat(fmt.Sprintf("message %d says this and that. ", i), 10)[:200]
		if messages[i] = schema.UserMessage(text); i%2 == 1 {
			messages[i] = schema.AssistantMessage(text, nil)
		}
	}
	return messages
}

// One run to its question, checkpoint, and on to its end with the answer: an agent of eino's alone
// with a store in memory, and the same one under the gate.
func BenchmarkCycle(b *testing.B) {
	m := after(scripted.Do(call("c", "deploy", deployInput{"a"})))
	for _, n := range []int{2, 50, 200} {
		input := history(n)
		b.Run(fmt.Sprintf("messages=%d/eino", n), func(b *testing.B) { benchmarkEino(b, m, input) })
		b.Run(fmt.Sprintf("messages=%d/memstore", n), func(b *testing.B) { benchmarkGate(b, memstore.New(), m, input) })
		b.Run(fmt.Sprintf("messages=%d/boltstore", n), func(b *testing.B) {
			store, err := boltstore.Open(filepath.Join(b.TempDir(), "parley.db"), nil)
			if err != nil {
				b.Fatal(err)
			}
			benchmarkGate(b, store, m, input)
			if err := store.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func benchmarkEino(b *testing.B, m *scripted.Model, input []*schema.Message) {
	ctx := b.Context()
	ask := native{"deploy", func(ctx context.Context) (string, error) {
		was, _, _ := tool.GetInterruptState[string](ctx)
		target, has, _ := tool.GetResumeContext[string](ctx)
		if !was || !target || !has {
			return "", tool.StatefulInterrupt(ctx, "deploy?", "deploy")
		}
		return "deployed a", nil
	}}
	a, err := chat("A", m, compose.ToolsNodeConfig{Tools: []tool.BaseTool{ask}})(ctx)
	if err != nil {
		b.Fatal(err)
	}
	store := &slots{}
	runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: a, CheckPointStore: store})
	drain := func(events *adk.AsyncIterator[*adk.AgentEvent]) (id string) {
		for event, ok := events.Next(); ok; event, ok = events.Next() {
			if event.Err != nil {
				b.Fatal(event.Err)
			}
			if event.Action != nil && event.Action.Interrupted != nil {
				id = event.Action.Interrupted.InterruptContexts[0].ID
			}
		}
		return id
	}
	size := 0
	for b.Loop() {
		id := drain(runner.Run(ctx, input, adk.WithCheckPointID("cp")))
		blob, _ := store.Load("cp")
		size = len(blob.([]byte))
		events, err := runner.ResumeWithParams(ctx, "cp", &adk.ResumeParams{Targets: map[string]any{id: "yes"}})
		if err != nil {
			b.Fatal(err)
		}
		drain(events)
	}
	b.ReportMetric(float64(size), "stored-B")
}

func benchmarkGate(b *testing.B, store checkpoint.Store, m *scripted.Model, input []*schema.Message) {
	ctx := b.Context()
	ask := gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service)); err != nil {
			return "", err
		}
		return "deployed " + in.Service, nil
	}, nil)
	g, err := gate.Open(ctx, store, &gate.Options{
		Tools: []*gate.Tool{ask}, Keys: [][]byte{testKey}, Logger: slog.New(slog.DiscardHandler),
		Capacity: gate.Capacity{Open: gate.Unlimited, OpenPerScope: gate.Unlimited, Bytes: gate.Unlimited, BytesPerScope: gate.Unlimited},
	})
	if err != nil {
		b.Fatal(err)
	}
	a, err := agent.New(ctx, g, chat("A", agent.Model(m), compose.ToolsNodeConfig{Tools: []tool.BaseTool{agent.Tool(ask)}}), nil)
	if err != nil {
		b.Fatal(err)
	}
	var size int64
	for b.Loop() {
		run, err := a.Start(ctx, agent.Start{Scope: "ann", Messages: input, Facilities: everything}).Run()
		if err != nil {
			b.Fatal(err)
		}
		if size == 0 {
			usage, err := store.Usage(ctx, checkpoint.Hash{})
			if err != nil {
				b.Fatal(err)
			}
			size = usage.Bytes
		}
		run, err = a.Resume(ctx, agent.Resume{Scope: "ann", Run: run.ID, Facilities: everything, Answers: []agent.Answer{to(run.Questions[0], allow)}}).Run()
		if err != nil || run.Status != agent.Finished {
			b.Fatal(run, err)
		}
	}
	b.ReportMetric(float64(size), "stored-B")
	if err := g.Close(ctx); err != nil {
		b.Fatal(err)
	}
}
