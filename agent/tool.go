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

// Tool gives a gate's tool, such as a plain Go function of [gate.NewTool], its face for an agent of
// eino's. It works in a run of an [Agent] only: elsewhere it is ErrNoRun. What is wrong with the
// tool is reported by [gate.Open].
func Tool(t *gate.Tool) tool.InvokableTool {
	return &gateTool{name: t.Name(), describe: sync.OnceValues(func() (*schema.ToolInfo, error) { return describe(t) })}
}

type gateTool struct {
	name     string
	describe func() (*schema.ToolInfo, error)
}

// Info tells the model of the tool: name, title and description, and the schema of its arguments.
// It is the same every time: eino asks for it whenever a run goes on.
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
