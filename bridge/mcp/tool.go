package mcpbridge

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/schema"
)

// ToolOptions say how a tool of the gate looks to MCP. Nil works, and the zero field is the
// documented default.
type ToolOptions struct {
	// Annotations are hints for clients, and Icons and Meta are shown by them.
	Annotations *mcp.ToolAnnotations
	Icons       []mcp.Icon
	Meta        mcp.Meta
	// OutputSchema is the JSON Schema of the result, of type object. What a client is shown takes
	// an [Ending] as well, which is the structured content of errors. Default: inferred from the
	// result type of [gate.NewTool] where that is a struct or a map; else there is none.
	OutputSchema json.RawMessage
	// Project makes the tool result of what the handler returned: other words, an image, a
	// resource; [Project] makes one of a typed function. It is pure, and may run again for one
	// result. Without structured content of its own the result has the handler's; its own is an
	// object that fits the output schema. Nil stands for the result as it is, and so does an error,
	// which the host's log has, and what does not fit. Default: that.
	Project func(result json.RawMessage) (*mcp.CallToolResult, error)
	// AnswerElsewhere never asks through the client: the tool's questions wait for an answer by
	// another road. It takes Options.OutOfBand. Default: the client is asked where it can be.
	AnswerElsewhere bool
}

// Project returns a projection of results of a type, for [ToolOptions].Project.
func Project[Out any](to func(out Out) *mcp.CallToolResult) func(json.RawMessage) (*mcp.CallToolResult, error) {
	return func(result json.RawMessage) (*mcp.CallToolResult, error) {
		var out Out
		if err := json.Unmarshal(result, &out); err != nil {
			return nil, err
		}
		return to(out), nil
	}
}

// A tool is one of the gate's, as the bridge serves it.
type tool struct {
	name      string
	guided    bool
	guidance  string
	elsewhere bool
	output    *schema.Schema // nil: none was published
	project   func(result json.RawMessage) (*mcp.CallToolResult, error)
}

// AddTool puts a tool on the bridge's server, or replaces the one of its name there. The tool is
// one of the gate's own; its name, title, description, and the schema of its arguments are those
// that it has there, and its output schema is inferred from the type of its results, as
// [mcp.AddTool] does.
//
// Other tools, resources and prompts of the server are untouched.
func (b *Bridge) AddTool(t *gate.Tool, opts *ToolOptions) error {
	if err := t.Validate(); err != nil {
		return fmt.Errorf("add tool: %w", err)
	}
	if b.gate.Tool(t.Name()) != t {
		return fmt.Errorf("add tool %q: the gate has no such tool: gate.Options.Tools takes it", t.Name())
	}
	if opts == nil {
		opts = &ToolOptions{}
	}
	o := t.Options()
	if opts.AnswerElsewhere && !b.opts.OutOfBand {
		return fmt.Errorf("add tool %q: its questions are to be answered elsewhere, and the bridge has no Options.OutOfBand", t.Name())
	}
	output, err := opts.outputSchema(t.Output())
	if err != nil {
		return fmt.Errorf("add tool %q: %w", t.Name(), err)
	}
	served := &tool{
		name: t.Name(), guided: o.Guidance != "", guidance: o.Guidance, elsewhere: opts.AnswerElsewhere, project: opts.Project,
	}
	shown := &mcp.Tool{
		Name: t.Name(), Title: o.Title, Description: o.Description, InputSchema: o.Schema,
		Annotations: opts.Annotations, Icons: opts.Icons, Meta: opts.Meta,
	}
	if output != nil {
		if served.output, err = schema.Compile(output); err != nil {
			return fmt.Errorf("add tool %q: output schema: %w", t.Name(), err)
		}
		seen, err := withEnding(output)
		if err != nil {
			return fmt.Errorf("add tool %q: %w", t.Name(), err)
		}
		shown.OutputSchema = seen
	}
	// The SDK panics for what it finds wrong with a tool.
	if err := safely(func() error { b.server.AddTool(shown, b.handler(served)); return nil }); err != nil {
		return fmt.Errorf("add tool %q: %w", t.Name(), err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tools[t.Name()] = true
	return nil
}
