package agent_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/internal/scripted"
)

// Messages without values of open types are written in another way than those with them. In which
// fields of a message such a value can stand is eino's choice: a new one needs a look at isOpen.
func TestFieldsOfOpenTypes(t *testing.T) {
	var open []string
	message := reflect.TypeFor[schema.Message]()
	for i := range message.NumField() {
		if holdsOpen(message.Field(i).Type, map[reflect.Type]bool{}) {
			open = append(open, message.Field(i).Name)
		}
	}
	slices.Sort(open)
	want := []string{"AssistantGenMultiContent", "Extra", "MultiContent", "ToolCalls", "UserInputMultiContent"}
	if diff := cmp.Diff(want, open); diff != "" {
		t.Errorf("fields (-want +have):\n%s", diff)
	}
}

func holdsOpen(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdsOpen(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsOpen(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// A run that is resumed before its first commit begins with the messages that it was given, whatever
// stands in them.
func TestMessagesOfTheBeginning(t *testing.T) {
	text := "an image"
	index := 1
	withExtra := schema.AssistantMessage("x\xff", nil)
	withExtra.Extra = map[string]any{"score": 7}
	said := schema.AssistantMessage("", []schema.ToolCall{{Index: &index, ID: "c", Type: "function", Function: schema.FunctionCall{Name: "t", Arguments: "{}"}}})
	said.ResponseMeta = &schema.ResponseMeta{FinishReason: "stop", Usage: &schema.TokenUsage{TotalTokens: 3}}
	for name, messages := range map[string][]*schema.Message{
		"plain": {schema.UserMessage("first"), said, schema.ToolMessage("done", "c", schema.WithToolName("t")), schema.UserMessage("x\xff")},
		"open":  {schema.UserMessage("first"), withExtra},
		"parts": {{Role: schema.User, UserInputMultiContent: []schema.MessageInputPart{{Type: schema.ChatMessagePartTypeText, Text: text}}}},
	} {
		var given []*schema.Message
		m := scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
			if given == nil {
				given = input
				return nil, errors.New("the model is down")
			}
			if diff := cmp.Diff(given, input); diff != "" {
				t.Errorf("%s (-first +again):\n%s", name, diff)
			}
			return scripted.Say("done"), nil
		})
		w := open(t, memstore.New(), worldOptions{model: m})
		run, err := w.agent.Start(context.Background(), agent.Start{Scope: "ann", Messages: messages, Facilities: everything}).Run()
		if err == nil || run == nil {
			t.Fatalf("%s: have %+v, %v", name, run, err)
		}
		wantFinished(t, w.resume(run.ID), "done")
	}
}
