package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// A speaker is a tool of eino's that asks, and then says its words one by one. Before each it waits
// for a sign that the one before was heard.
type speaker struct {
	words []string
	heard chan struct{} // nil: it does not wait
}

func (s speaker) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: "speak", Desc: "speaks"}, nil
}

func speak[T any](ctx context.Context, s speaker, make func(string) T) (*schema.StreamReader[T], error) {
	if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("speak", "Speak?")); err != nil {
		return nil, err
	}
	reader, writer := schema.Pipe[T](0)
	go func() {
		defer writer.Close()
		var none T
		for i, word := range s.words {
			if i > 0 && s.heard != nil {
				select {
				case <-s.heard:
				case <-time.After(10 * time.Second):
					writer.Send(none, errors.New("nobody heard "+s.words[i-1]))
					return
				}
			}
			writer.Send(make(word), nil)
		}
	}()
	return reader, nil
}

type (
	speaks     struct{ speaker }
	speaksPart struct{ speaker }
)

func (s speaks) StreamableRun(ctx context.Context, _ string, _ ...tool.Option) (*schema.StreamReader[string], error) {
	return speak(ctx, s.speaker, func(word string) string { return word })
}

func (s speaksPart) StreamableRun(
	ctx context.Context, _ *schema.ToolArgument, _ ...tool.Option,
) (*schema.StreamReader[*schema.ToolResult], error) {
	return speak(ctx, s.speaker, part)
}

// The pieces of a tool that streams, text or parts, are told while the tool still runs. The run
// streams on after a resume in another process, which would not stream by itself.
func TestPiecesAreToldAsTheyCome(t *testing.T) {
	words := []string{"one ", "two ", "three"}
	for name, makeTool := range map[string]func(s speaker) tool.BaseTool{
		"text":  func(s speaker) tool.BaseTool { return speaks{s} },
		"parts": func(s speaker) tool.BaseTool { return speaksPart{s} },
	} {
		store, heard := memstore.New(), make(chan struct{})
		process := func(streaming bool) *world {
			half, face, err := agent.Wrap(t.Context(), makeTool(speaker{words, heard}), nil)
			if err != nil {
				t.Fatal(err)
			}
			return open(t, store, worldOptions{
				tools: []*gate.Tool{half}, plain: []tool.BaseTool{face}, streaming: streaming,
				model: scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
					if results(input) == "" {
						return scripted.Do(call("s", "speak", `{}`)), nil
					}
					return scripted.Say("It was said: " + results(input)), nil
				}),
			})
		}
		run := process(true).start()
		var pieces, texts []string
		var last string
		resume := agent.Resume{Scope: "ann", Run: run.ID, Answers: []agent.Answer{to(of(t, run, "s"), allow)}, Facilities: everything}
		for event, err := range process(false).agent.Resume(t.Context(), resume).All() {
			if err != nil {
				t.Fatal(err)
			}
			switch e := event.(type) {
			case agent.ToolText:
				pieces = append(pieces, e.Text)
				if len(pieces) < len(words) {
					heard <- struct{}{}
				}
			case agent.ToolEnded:
				last = e.Result
			case agent.ModelText:
				texts = append(texts, e.Text)
			}
		}
		if !slices.Equal(pieces, words) || last != "one two three" {
			t.Errorf("%s: the tool said %q, and at its end %q", name, pieces, last)
		}
		if len(texts) < 3 || strings.Join(texts, "") != "It was said: [one two three]" {
			t.Errorf("%s: the model said %q", name, texts)
		}
	}
}

// A stream that eino drops because something beside it failed holds up nobody: its tool is not at
// work any more when the run has stopped, and the run goes on.
func TestDroppedStream(t *testing.T) {
	words := make([]string, 32)
	for i := range words {
		words[i] = "word "
	}
	half, face, err := agent.Wrap(t.Context(), speaks{speaker{words: words}}, &gate.ToolOptions{KeepResult: true})
	if err != nil {
		t.Fatal(err)
	}
	var fails atomic.Bool
	outside := native{"outside", func(context.Context) (string, error) {
		if fails.Load() {
			return "", errors.New("down")
		}
		return "up", nil
	}}
	both := scripted.Do(call("s", "speak", `{}`), call("o", "outside", `{}`))
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{half}, plain: []tool.BaseTool{face, outside}, streaming: true, model: after(both),
	})
	fails.Store(true)
	run, err := w.agent.Start(t.Context(), releaseIt).Run()
	if err == nil || run == nil {
		t.Fatalf("have %+v, %v", run, err)
	}
	list, err := w.gate.List(t.Context(), gate.ListQuery{Scope: "ann"})
	if err != nil || len(list.Interactions) != 1 {
		t.Fatalf("have %+v, %v", list, err)
	}
	q := list.Interactions[0]
	err = w.gate.Answer(t.Context(), gate.AnswerRequest{
		Interaction: q.ID, Round: 1, Scope: "ann", Answers: gate.Answers{q.Prompt.Questions[0].ID: []byte(allow)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if run, err = w.tryResume(run.ID); err == nil { // the tool speaks, and eino drops it
		t.Fatalf("have %+v", run)
	}
	fails.Store(false)
	wantFinished(t, w.resume(run.ID), "["+strings.Join(words, "")+"][up]")
}

// A painter returns text and an image.
type painter struct{}

func (painter) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: "paint", Desc: "paints"}, nil
}

func (painter) InvokableRun(context.Context, *schema.ToolArgument, ...tool.Option) (*schema.ToolResult, error) {
	url := "https://example.com/x.png"
	image := &schema.ToolOutputImage{MessagePartCommon: schema.MessagePartCommon{URL: &url}}
	return &schema.ToolResult{Parts: []schema.ToolOutputPart{
		{Type: schema.ToolPartTypeText, Text: "See "}, {Type: schema.ToolPartTypeImage, Image: image},
	}}, nil
}

// A result of parts is told as a screen can show it: text as it is, and of the rest what it is.
func TestPartsAreToldAsText(t *testing.T) {
	half, face, err := agent.Wrap(t.Context(), painter{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{half}, plain: []tool.BaseTool{face}, model: after(scripted.Do(call("p", "paint", `{}`))),
	})
	lines, _, err := seen(t, w.agent.Start(t.Context(), releaseIt))
	if err != nil {
		t.Fatal(err)
	}
	wantSeen(t, lines, `<going><started p paint{}><ended p See [image]>[See ]<finished [See ]>`)
}
