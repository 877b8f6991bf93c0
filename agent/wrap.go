package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/gate"
)

// Wrap makes two halves out of a tool of eino's: one for the gate, and one that the agent gets in
// place of the tool. The agent's half has exactly the interfaces that the tool has of
// InvokableTool, StreamableTool, and the enhanced ones. The gate's half works only in a run of an
// [Agent].
//
// The tool asks with [interrupt.Ask], however deep inside; it may wrap the error. A stream can ask
// in place of its first piece, and fails where it asks later. The tool gets the arguments that were
// approved, in canonical form.
//
// The name is that of the tool's Info. So are description and schema where opts has none.
func Wrap(ctx context.Context, t tool.BaseTool, opts *gate.ToolOptions) (*gate.Tool, tool.BaseTool, error) {
	if t == nil {
		return nil, nil, errors.New("wrap tool: it must not be nil")
	}
	info, err := t.Info(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("wrap tool: %w", err)
	}
	half, err := halfOf(info, opts)
	if err != nil {
		return nil, nil, fmt.Errorf("wrap tool %q: %w", info.Name, err)
	}
	face := faceOf(base{t, info.Name})
	if face == nil {
		return nil, nil, fmt.Errorf("wrap tool %q: it can neither be invoked nor streamed", info.Name)
	}
	return half, face, nil
}

// halfOf is the gate's half.
func halfOf(info *schema.ToolInfo, opts *gate.ToolOptions) (*gate.Tool, error) {
	var o gate.ToolOptions
	if opts != nil {
		o = *opts
	}
	if o.Description == "" {
		o.Description = info.Desc
	}
	if o.Schema == nil && info.ParamsOneOf != nil {
		arguments, err := info.ToJSONSchema()
		if err != nil {
			return nil, err
		}
		if o.Schema, err = json.Marshal(arguments); err != nil {
			return nil, err
		}
	}
	return gate.NewRawTool(info.Name, handle(info.Name), &o), nil
}

// faceOf is the agent's half; nil where the tool has no capability.
func faceOf(b base) tool.BaseTool {
	i, isI := b.tool.(tool.InvokableTool)
	s, isS := b.tool.(tool.StreamableTool)
	ei, isEI := b.tool.(tool.EnhancedInvokableTool)
	es, isES := b.tool.(tool.EnhancedStreamableTool)
	in, st, ein, est := invokable{i, b.name}, streamable{s, b.name}, enhancedInvokable{ei, b.name}, enhancedStreamable{es, b.name}
	switch { // a method of one name has one signature
	case isI && isS:
		return &struct {
			base
			invokable
			streamable
		}{b, in, st}
	case isI && isES:
		return &struct {
			base
			invokable
			enhancedStreamable
		}{b, in, est}
	case isEI && isS:
		return &struct {
			base
			enhancedInvokable
			streamable
		}{b, ein, st}
	case isEI && isES:
		return &struct {
			base
			enhancedInvokable
			enhancedStreamable
		}{b, ein, est}
	case isI:
		return &struct {
			base
			invokable
		}{b, in}
	case isS:
		return &struct {
			base
			streamable
		}{b, st}
	case isEI:
		return &struct {
			base
			enhancedInvokable
		}{b, ein}
	case isES:
		return &struct {
			base
			enhancedStreamable
		}{b, est}
	}
	return nil
}

// base is what every wrapped tool has, whatever it can do.
type base struct {
	tool tool.BaseTool
	name string
}

func (b base) Info(ctx context.Context) (*schema.ToolInfo, error) { return b.tool.Info(ctx) }

// GetType is the name under which eino's callbacks know the tool.
func (b base) GetType() string { return typeName(b.tool) }

// IsCallbacksEnabled reports whether the tool calls eino's callbacks itself.
func (b base) IsCallbacksEnabled() bool { return components.IsCallbacksEnabled(b.tool) }

// typeName is what eino would call a component.
func typeName(component any) string {
	if name, ok := components.GetType(component); ok {
		return name
	}
	t := reflect.TypeOf(component)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

type invokable struct {
	inner tool.InvokableTool
	name  string
}

func (t invokable) InvokableRun(ctx context.Context, arguments string, opts ...tool.Option) (string, error) {
	return asText.invoke(ctx, t.name, arguments, func(ctx context.Context, arguments string) (string, error) {
		return t.inner.InvokableRun(ctx, arguments, opts...)
	})
}

type streamable struct {
	inner tool.StreamableTool
	name  string
}

func (t streamable) StreamableRun(ctx context.Context, arguments string, opts ...tool.Option) (*schema.StreamReader[string], error) {
	return asText.stream(ctx, t.name, arguments, func(ctx context.Context, arguments string) (*schema.StreamReader[string], error) {
		return t.inner.StreamableRun(ctx, arguments, opts...)
	})
}

type enhancedInvokable struct {
	inner tool.EnhancedInvokableTool
	name  string
}

func (t enhancedInvokable) InvokableRun(ctx context.Context, a *schema.ToolArgument, opts ...tool.Option) (*schema.ToolResult, error) {
	return asParts.invoke(ctx, t.name, a.Text, func(ctx context.Context, arguments string) (*schema.ToolResult, error) {
		return t.inner.InvokableRun(ctx, &schema.ToolArgument{Text: arguments}, opts...)
	})
}

type enhancedStreamable struct {
	inner tool.EnhancedStreamableTool
	name  string
}

func (t enhancedStreamable) StreamableRun(
	ctx context.Context, a *schema.ToolArgument, opts ...tool.Option,
) (*schema.StreamReader[*schema.ToolResult], error) {
	return asParts.stream(ctx, t.name, a.Text,
		func(ctx context.Context, arguments string) (*schema.StreamReader[*schema.ToolResult], error) {
			return t.inner.StreamableRun(ctx, &schema.ToolArgument{Text: arguments}, opts...)
		})
}
