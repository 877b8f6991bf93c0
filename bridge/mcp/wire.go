package mcpbridge

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An era is a version of the protocol, as far as questions look different in it.
type era int

const (
	era2026  era = iota // 2026-07-28: stateless, input_required
	era2025             // 2025-11-25: elicitation/create in the call, URLs, titled and multiple choices
	era2025a            // 2025-06-18: elicitation/create with forms only, one choice of an enum
)

const (
	version2026 = "2026-07-28"
	version2025 = "2025-11-25"
)

// A wire is what a request came over. Each has a face of its own, since what can be asked over one
// cannot be over another.
type wire struct {
	era era
	// exact is set where the text of answers is seen as the client wrote it, so that numbers are
	// exact.
	exact bool
}

var wires = []wire{{era2026, true}, {era2026, false}, {era2025, true}, {era2025, false}, {era2025a, true}, {era2025a, false}}

// maxPrompts is 0 where the gate's limit is the only one: in a call that asks on its own no client
// counts rounds.
func (w wire) maxPrompts(o Options) int {
	if w.era == era2026 {
		return o.MaxPrompts
	}
	return 0
}

// wireOf looks at the session, as the SDK does where it decides whether a result says
// input_required: a request that speaks of 2026-07-28 in an older session is of that session.
// [mcp.CallToolRequest.ProtocolVersion] is the one that was asked for, not the negotiated one; with
// lowerInitialize they are the same as far as an era goes.
func wireOf(req *mcp.CallToolRequest, exact bool) wire {
	version := version2026
	if params := req.Session.InitializeParams(); params != nil {
		version = params.ProtocolVersion
	}
	switch {
	case version >= version2026:
		return wire{era2026, exact}
	case version >= version2025:
		return wire{era2025, exact}
	}
	return wire{era2025a, exact}
}
