package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"
)

// A Model answers what its script says. It is safe for concurrent use.
type Model struct {
	script func(input []*schema.Message) (*schema.Message, error)
	asked  *atomic.Int64
}

// New returns a model that gives these answers one after the other. Which one is next is told from
// the conversation: the number of the model's answers in it.
func New(answers ...*schema.Message) *Model {
	return Func(func(input []*schema.Message) (*schema.Message, error) {
		n := 0
		for _, m := range input {
			if m.Role == schema.Assistant {
				n++
			}
		}
		if n >= len(answers) {
			return nil, fmt.Errorf("the script has %d answers, and one more is asked for", len(answers))
		}
		return answers[n], nil
	})
}

// Func returns a model whose answers are what script makes of the conversation.
func Func(script func(input []*schema.Message) (*schema.Message, error)) *Model {
	return &Model{script: script, asked: new(atomic.Int64)}
}

// Asked is how often the model was asked.
func (m *Model) Asked() int { return int(m.asked.Load()) }

// WithTools returns the model: the script knows its tools.
func (m *Model) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return m, nil }

// Generate returns the answer.
func (m *Model) Generate(ctx context.Context, input []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	m.asked.Add(1)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	answer, err := m.script(input)
	if err != nil {
		return nil, err
	}
	copied := *answer
	return &copied, nil
}

// Stream returns the answer in pieces: the words of its reasoning, its words, then its tool calls.
func (m *Model) Stream(ctx context.Context, input []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	answer, err := m.Generate(ctx, input, opts...)
	if err != nil {
		return nil, err
	}
	var pieces []*schema.Message
	for _, word := range strings.SplitAfter(answer.ReasoningContent, " ") {
		if word != "" {
			pieces = append(pieces, &schema.Message{Role: schema.Assistant, ReasoningContent: word})
		}
	}
	for _, word := range strings.SplitAfter(answer.Content, " ") {
		if word != "" {
			pieces = append(pieces, schema.AssistantMessage(word, nil))
		}
	}
	if len(answer.ToolCalls) > 0 || len(pieces) == 0 {
		last := *answer
		last.Content, last.ReasoningContent = "", ""
		pieces = append(pieces, &last)
	}
	return schema.StreamReaderFromArray(pieces), nil
}

// Say is an answer without tool calls.
func Say(text string) *schema.Message { return schema.AssistantMessage(text, nil) }

// A Call is one tool call of an answer.
type Call struct {
	ID        string
	Tool      string
	Arguments any // as JSON; a string is taken as it is
}

// Do is an answer that calls tools.
func Do(calls ...Call) *schema.Message {
	var all []schema.ToolCall
	for i, c := range calls {
		arguments, ok := c.Arguments.(string)
		if !ok {
			text, err := json.Marshal(c.Arguments)
			if err != nil {
				panic(fmt.Sprintf("script: arguments of %s: %v", c.Tool, err)) // a mistake in the script
			}
			arguments = string(text)
		}
		all = append(all, schema.ToolCall{
			Index: &[]int{i}[0], ID: c.ID, Type: "function", Function: schema.FunctionCall{Name: c.Tool, Arguments: arguments},
		})
	}
	return schema.AssistantMessage("", all)
}
