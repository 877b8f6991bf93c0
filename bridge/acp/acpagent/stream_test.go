package acpagent_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"
	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// A speech is what is said piece by piece, each when the one before was heard in the editor.
type speech struct{ heard chan string }

func (s speech) say(pieces []string, send func(piece string, err error)) {
	for i, piece := range pieces {
		if i > 0 {
			select {
			case heard := <-s.heard:
				if heard != pieces[i-1] {
					send("", errors.New("the editor heard "+heard+" after "+pieces[i-1]))
					return
				}
			case <-time.After(patience):
				send("", errors.New("the editor did not hear "+pieces[i-1]))
				return
			}
		}
		send(piece, nil)
	}
}

// A thinker is a model that thinks, calls a tool, and says what it was told.
type thinker struct {
	*scripted.Model
	speech
}

func (m thinker) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return m, nil }

func (m thinker) Stream(_ context.Context, input []*schema.Message, _ ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	reader, writer := schema.Pipe[*schema.Message](0)
	go func() {
		defer writer.Close()
		if last := input[len(input)-1]; last.Role == schema.Tool {
			writer.Send(schema.AssistantMessage("It said "+last.Content, nil), nil)
			return
		}
		m.say([]string{"Hm", ", well", "I let ", "it speak."}, func(piece string, err error) {
			said := &schema.Message{Role: schema.Assistant}
			if strings.HasPrefix(piece, "H") || strings.HasPrefix(piece, ",") {
				said.ReasoningContent = piece
			} else {
				said.Content = piece
			}
			writer.Send(said, err)
		})
		writer.Send(scripted.Do(scripted.Call{ID: "1", Tool: "speak", Arguments: service{"api"}}), nil)
	}()
	return reader, nil
}

// A speaker is a tool that asks, tells how far it is, and then says its result.
type speaker struct{ speech }

func (s speaker) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: "speak", Desc: "speaks"}, nil
}

func (s speaker) StreamableRun(ctx context.Context, _ string, _ ...tool.Option) (*schema.StreamReader[string], error) {
	if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("speak", "Speak?")); err != nil {
		return nil, err
	}
	total := 2.0
	if err := interrupt.Progress(ctx, interrupt.Update{Completed: 1, Total: &total, Message: "clearing the throat"}); err != nil {
		return nil, err
	}
	reader, writer := schema.Pipe[string](0)
	go func() {
		defer writer.Close()
		s.say([]string{"one ", "two ", "three"}, func(piece string, err error) { writer.Send(piece, err) })
	}()
	return reader, nil
}

// What a model thinks and says reaches the editor while it says it, and what a tool says while the
// tool is at work: each goes on when the editor has the piece before. All of it comes before the
// response.
func TestStreaming(t *testing.T) {
	s := speech{make(chan string, 16)}
	half, face, err := agent.Wrap(t.Context(), speaker{s}, nil)
	if err != nil {
		t.Fatal(err)
	}
	site, err := buildOf(memstore.New(), thinker{scripted.New(), s}, pollInterval, []*gate.Tool{half}, []tool.BaseTool{face}, true)
	if err != nil {
		t.Fatal(err)
	}
	var said string
	p := &person{answer: allowing(map[string]string{"Speak?": "allow_once"}), heard: func(u acp.SessionUpdate) {
		switch {
		case u.AgentThoughtChunk != nil:
			s.heard <- u.AgentThoughtChunk.Content.Text.Text
		case u.AgentMessageChunk != nil && !strings.HasPrefix(u.AgentMessageChunk.Content.Text.Text, "It said"):
			if text := u.AgentMessageChunk.Content.Text.Text; text != "it speak." { // behind the last one nothing waits
				s.heard <- text
			}
		case u.ToolCallUpdate != nil && u.ToolCallUpdate.Status == nil:
			content := u.ToolCallUpdate.Content
			if len(content) == 1 {
				break
			}
			all := content[1].Content.Content.Text.Text
			if piece := strings.TrimPrefix(all, said); piece != "three" {
				s.heard <- piece
			}
			said = all
		}
	}}
	w := site.window(t, p)
	w.prompt(acp.StopReasonEndTurn)
	p.mu.Lock()
	had := len(p.updates)
	p.mu.Unlock()
	w.close()
	var lines []string
	ids := map[string]string{}
	for _, u := range p.updates {
		switch {
		case u.AgentThoughtChunk != nil:
			ids["thought"] += *u.AgentThoughtChunk.MessageId + " "
			lines = append(lines, "thinks "+u.AgentThoughtChunk.Content.Text.Text)
		case u.AgentMessageChunk != nil:
			ids["text"] += *u.AgentMessageChunk.MessageId + " "
			lines = append(lines, "says "+u.AgentMessageChunk.Content.Text.Text)
		case u.ToolCall != nil:
			lines = append(lines, string(u.ToolCall.Status))
		case u.ToolCallUpdate != nil:
			line := "update"
			if u.ToolCallUpdate.Status != nil {
				line = string(*u.ToolCallUpdate.Status)
			}
			for _, c := range u.ToolCallUpdate.Content {
				line += " [" + c.Content.Content.Text.Text + "]"
			}
			lines = append(lines, line)
		}
	}
	const throat = "[clearing the throat (1 of 2)]"
	want := []string{
		"thinks Hm", "thinks , well", "says I let ", "says it speak.", "pending", "in_progress", "update " + throat,
		"update " + throat + " [one ]", "update " + throat + " [one two ]", "update " + throat + " [one two three]",
		"completed [one two three]", "says It said one two three",
	}
	if have := strings.Join(lines, "\n"); have != strings.Join(want, "\n") || had != len(p.updates) {
		t.Errorf("%d updates came after the response; have\n%s\nwant\n%s", len(p.updates)-had, have, strings.Join(want, "\n"))
	}
	thoughts, texts := strings.Fields(ids["thought"]), strings.Fields(ids["text"])
	if thoughts[0] != thoughts[1] || texts[0] != texts[1] || texts[0] == thoughts[0] || texts[0] == texts[2] {
		t.Errorf("messages %v, thoughts %v: one id for each message", texts, thoughts)
	}
}

// A call that goes on in another process with an answer of the inbox is shown as what it is, also
// where nobody was asked there.
func TestAnsweredWhileClosed(t *testing.T) {
	var effects atomic.Int64
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "ledger.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	asked := make(chan struct{})
	p := &person{answer: func(ctx context.Context, _ string) string {
		close(asked)
		<-ctx.Done()
		return ""
	}}
	w := open(t, store, twoCalls(), p, deploy(&effects))
	go w.client.Prompt(context.Background(), acp.PromptRequest{SessionId: "s1", Prompt: []acp.ContentBlock{acp.TextBlock("release")}})
	<-asked
	w.close()

	p = &person{answer: allowing(map[string]string{"Deploy api": "reject_once", "Deploy web": "reject_once"})}
	w = open(t, store, twoCalls(), p, deploy(&effects))
	page, err := w.agent.gate.List(t.Context(), gate.ListQuery{Scope: "ann"})
	if err != nil || len(page.Interactions) != 2 {
		t.Fatalf("have %+v, %v", page, err)
	}
	for _, s := range page.Interactions {
		answers := gate.Answers{s.Prompt.Questions[0].ID: []byte(`{"optionId":"allow_once"}`)}
		if err := w.agent.gate.Answer(t.Context(), gate.AnswerRequest{Interaction: s.ID, Round: 1, Scope: "ann", Answers: answers}); err != nil {
			t.Fatal(err)
		}
	}
	w.prompt(acp.StopReasonEndTurn) // the run that was left, and another one, whose calls are rejected
	w.close()
	shown := map[string]int{}
	for _, u := range p.updates {
		if u.ToolCall != nil {
			shown[fmt.Sprint(u.ToolCall.RawInput.(map[string]any)["service"])]++
		}
	}
	if effects.Load() != 2 || shown["api"] != 2 || shown["web"] != 2 {
		t.Errorf("%d effects, shown %v", effects.Load(), shown)
	}
}
