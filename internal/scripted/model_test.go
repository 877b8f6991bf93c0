package scripted_test

import (
	"testing"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/internal/scripted"
)

// The next answer is told from the conversation, and both ways to ask say the same.
func TestModelFollowsTheConversation(t *testing.T) {
	m := scripted.New(scripted.Do(scripted.Call{ID: "c", Tool: "t", Arguments: map[string]int{"n": 1}}), scripted.Say("two words"))
	input := []*schema.Message{schema.UserMessage("go")}
	first, err := m.Generate(t.Context(), input)
	if err != nil || len(first.ToolCalls) != 1 || first.ToolCalls[0].Function.Arguments != `{"n":1}` {
		t.Fatalf("have %+v, %v", first, err)
	}
	input = append(input, first)
	stream, err := m.Stream(t.Context(), input)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := schema.ConcatMessageStream(stream)
	if err != nil || whole.Content != "two words" {
		t.Fatalf("have %+v, %v", whole, err)
	}
	if _, err := m.Generate(t.Context(), append(input, whole)); err == nil {
		t.Error("the script went on behind its end")
	}
	if m.Asked() != 3 {
		t.Errorf("asked %d times", m.Asked())
	}
}
