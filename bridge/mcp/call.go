package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// A call is one tools/call on its way through the gate.
type call struct {
	*Bridge
	tool  *tool
	req   *mcp.CallToolRequest
	wire  wire
	note  note
	scope string // as whom the round is served
	// progress is what the handler's progress goes to; nil: the client does not listen.
	progress *gate.Progress
}

// A note is what the bridge's transport says of a message.
type note struct {
	seen      bool
	ambiguous bool
	waits     []string // that it may answer
	text      string   // of the input responses, or of the answer
}

func (b *Bridge) noteOf(meta map[string]any) note {
	v, seen := meta[b.text]
	whole, ok := v.(string)
	waits, text, _ := strings.Cut(whole, "\n")
	return note{seen, seen && !ok, strings.Fields(waits), text}
}

// handler is what the server runs for a tool. Questions become results here, and in no middleware:
// the SDK decides in between whether a result says input_required.
func (b *Bridge) handler(t *tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		done, err := b.enter()
		if err != nil {
			return nil, err
		}
		defer done()
		ctx, cancel := whileConnected(ctx)
		defer cancel()
		note := b.noteOf(req.Params.Meta)
		c := &call{Bridge: b, tool: t, req: req, note: note, wire: wireOf(req, note.seen)}
		if note.ambiguous {
			return nil, ambiguousParams()
		}
		progress, stop := b.reportProgress(ctx, req)
		defer stop()
		c.progress = progress
		if c.wire.era == era2026 {
			return c.round(ctx)
		}
		return c.converse(ctx)
	}
}

// gateCall asks the host anew as whom the request is served, and makes the gate's call of it.
func (c *call) gateCall(ctx context.Context) (gate.Call, error) {
	grant, err := c.grant(ctx)
	if err != nil {
		return gate.Call{}, err
	}
	c.scope = grant.Scope
	arguments := c.req.Params.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	can := c.facilities()
	// Without a start ID only the same call finds again what waits elsewhere, and calls of clients
	// that can be asked are not joined: two that are the same are two. So nothing of theirs waits
	// there.
	join := c.opts.OutOfBand && grant.StartID == "" && !showsAll(can)
	if join || c.opts.OutOfBand && grant.StartID != "" {
		can = append(can, interrupt.FacilityOutOfBand)
	}
	return gate.Call{
		Tool: c.tool.name, Arguments: arguments, Scope: grant.Scope, Session: grant.Session, StartID: grant.StartID,
		Join: join, Facilities: can, Progress: c.progress,
	}, nil
}

func (c *call) face() *gate.Face { return c.faces[c.wire] }

// conclude is what the client gets for a result.
func (c *call) conclude(ctx context.Context, result json.RawMessage) *mcp.CallToolResult {
	if c.tool.output != nil {
		if err := c.tool.output.Validate(result); err != nil {
			c.opts.Logger.ErrorContext(ctx, "a tool's result does not fit its output schema", "tool", c.tool.name, "err", err)
			const message = "the tool did its work, and returned what does not fit its output schema"
			return ended(&gate.Error{Code: gate.ErrFailed, Message: message})
		}
	}
	if c.tool.project == nil {
		return plain(result)
	}
	projected, err := c.tool.projected(result)
	if err != nil { // the work is done: its result is told, if in other words than the host's
		c.opts.Logger.ErrorContext(ctx, "the projection of a tool's result failed", "tool", c.tool.name, "err", err)
	}
	if err != nil || projected == nil {
		return plain(result)
	}
	return projected
}

// projected is what the host makes of a result; nil: nothing. It has structured content where the
// result has, and none that breaks what the tool published.
func (t *tool) projected(result json.RawMessage) (*mcp.CallToolResult, error) {
	var p *mcp.CallToolResult
	err := safely(func() (err error) {
		p, err = t.project(result)
		return err
	})
	if err != nil || p == nil {
		return nil, err
	}
	if p.InputRequests != nil || p.RequestState != "" {
		return nil, errors.New("a projection asks nothing")
	}
	whole := *p
	if whole.StructuredContent == nil {
		whole.StructuredContent = plain(result).StructuredContent
		return &whole, nil
	}
	content, err := canon.Marshal(whole.StructuredContent)
	switch {
	case err != nil:
		return nil, err
	case !isObject(content):
		return nil, errors.New("the structured content is no object")
	case t.output != nil && !whole.IsError:
		return &whole, t.output.Validate(content)
	}
	return &whole, nil
}
