package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"

	"github.com/parley-go/parley/gate"
)

// Tool returns a tool of eino's whose calls are calls of the gate's tool t, such as a plain Go
// function that [gate.NewTool] made a tool. It works only in a run of an [Agent]; elsewhere its
// calls are [ErrNoRun]. A mistake in t is reported by [gate.Open].
func Tool(t *gate.Tool) tool.InvokableTool {
	return &gateTool{name: t.Name(), describe: sync.OnceValues(func() (*schema.ToolInfo, error) { return describe(t) })}
}

type gateTool struct {
	name     string
	describe func() (*schema.ToolInfo, error)
}

// Info returns what the model knows of the tool: its name, description and schema. It is made once,
// because eino asks for it whenever a run goes on.
func (t *gateTool) Info(context.Context) (*schema.ToolInfo, error) { return t.describe() }

func describe(t *gate.Tool) (*schema.ToolInfo, error) {
	opts := t.Options()
	arguments := new(jsonschema.Schema)
	if err := json.Unmarshal(opts.Schema, arguments); err != nil {
		return nil, fmt.Errorf("describe tool %q: %w", t.Name(), err)
	}
	description := opts.Description
	if description == "" {
		description = opts.Title
	}
	return &schema.ToolInfo{Name: t.Name(), Desc: description, ParamsOneOf: schema.NewParamsOneOfByJSONSchema(arguments)}, nil
}

// InvokableRun makes the call.
func (t *gateTool) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	r, err := call(ctx, t.name, arguments)
	return r.text(), err
}
