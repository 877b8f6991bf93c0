package mcpbridge

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Transport returns t with the answers of clients kept as they wrote them, so that numbers in forms
// are exact, and an answer that can be read in two ways is refused. It is for stdio, pipes, and
// transports of the application's own; for HTTP there is [Bridge.HTTPHandler].
//
// Of an [mcp.StdioTransport] and an [mcp.IOTransport] each message is one line. One that is none
// ends nothing, and one that can be read in two ways is refused as a whole; of other transports,
// which hand on what they have decoded, only answers are.
func (b *Bridge) Transport(t mcp.Transport) mcp.Transport { return &transport{t, b} }

type transport struct {
	mcp.Transport
	bridge *Bridge
}

func (t *transport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.bridge.ofLines(t.Transport).Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{c, t.bridge}, nil
}

// SupportsProtocolVersion is what the transport itself says, or everything, as the SDK takes it of
// one that does not say.
func (t *transport) SupportsProtocolVersion(version string) bool {
	s, ok := t.Transport.(mcp.ProtocolVersionSupporter)
	return !ok || s.SupportsProtocolVersion(version)
}

type connection struct {
	mcp.Connection
	bridge *Bridge
}

func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if err != nil {
		return message, err
	}
	switch m := message.(type) {
	case *jsonrpc.Request:
		if m.Method == "tools/call" {
			m.Params = c.bridge.keepCall(m.Params)
		}
	case *jsonrpc.Response:
		m.Result = c.bridge.keepResult(m.Result, nil)
	}
	return message, nil
}
