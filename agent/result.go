package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/internal/canon"
)

// A resultType is one of the two types in which tools of eino's return results: text, and the parts
// of an enhanced tool.
type resultType[T any] struct {
	words  func(text string) T  // a result that says this
	text   func(piece T) string // what a screen shows of a result, or of a piece of one
	concat func(pieces []T) (T, error)
}

var (
	asText = resultType[string]{
		words:  func(text string) string { return text },
		text:   func(piece string) string { return piece },
		concat: func(pieces []string) (string, error) { return strings.Join(pieces, ""), nil },
	}
	asParts = resultType[*schema.ToolResult]{
		words: func(text string) *schema.ToolResult {
			return &schema.ToolResult{Parts: []schema.ToolOutputPart{{Type: schema.ToolPartTypeText, Text: text}}}
		},
		text: func(piece *schema.ToolResult) string {
			if piece == nil { // which eino takes for a result without parts
				return ""
			}
			text := ""
			for _, part := range piece.Parts {
				if part.Type == schema.ToolPartTypeText {
					text += part.Text
				} else {
					text += "[" + string(part.Type) + "]"
				}
			}
			return text
		},
		concat: func(pieces []*schema.ToolResult) (*schema.ToolResult, error) {
			if len(pieces) == 0 {
				return &schema.ToolResult{}, nil
			}
			return schema.ConcatToolResults(pieces)
		},
	}
)

// read returns what the call came to as a result of this type.
func (t resultType[T]) read(name string, r reply) (T, error) {
	if r.result == nil {
		return t.words(r.words), nil
	}
	var out T
	if err := json.Unmarshal(r.result, &out); err != nil {
		return out, fmt.Errorf("read the result of tool %q: %w", name, err)
	}
	return out, nil
}

// show returns what a screen shows of what the call came to.
func (t resultType[T]) show(r reply) string {
	out, err := t.read("", r)
	if err != nil {
		return r.text()
	}
	return t.text(out)
}

// invoke makes a call whose innermost is run, a tool that returns its result whole.
func (t resultType[T]) invoke(
	ctx context.Context, name, arguments string, run func(ctx context.Context, arguments string) (T, error),
) (T, error) {
	in := &innermost{tool: name, text: t.show, run: func(ctx context.Context, arguments string) (json.RawMessage, error) {
		out, err := run(ctx, arguments)
		if err != nil {
			return nil, err
		}
		return canon.Marshal(out)
	}}
	r, err := call(context.WithValue(ctx, innermostKey{}, in), name, arguments)
	if err != nil {
		var none T
		return none, err
	}
	return t.read(name, r)
}
