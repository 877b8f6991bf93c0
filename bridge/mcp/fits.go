package mcpbridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/elicit"
)

// envelope is what a message has around a result or the params of an elicitation, at most: the
// members of JSON-RPC, the content, resultType and server info that the SDK adds, and the reason
// with which a question is asked again.
const envelope = 2<<10 + elicit.MaxReason

// fits reports whether the wire can carry a prompt as it is, before it is committed (R13, R34). The
// error is an *unfit.
func (b *Bridge) fits(w wire, p *gate.Prompt) error {
	whole := *p
	whole.Token = gate.Token(strings.Repeat("A", gate.TokenLength))
	var size int
	if w.era == era2026 {
		result, err := inputRequired(w, &whole, nil)
		if err != nil {
			return err
		}
		size = sizeOf(result)
	}
	for _, q := range p.Questions {
		params, err := elicitation(w, &whole, q, "")
		if err != nil {
			return err
		}
		size = max(size, sizeOf(params)) // older protocols have a message for each
	}
	if size += envelope; size > b.opts.MaxWire {
		return &unfit{fmt.Sprintf("a prompt has %d bytes on the wire, the limit is %d", size, b.opts.MaxWire)}
	}
	return nil
}

// sizeOf is what the SDK makes of it on the wire, where it does not escape HTML itself.
func sizeOf[T *mcp.CallToolResult | *mcp.ElicitParams](v T) int {
	var wire bytes.Buffer
	e := json.NewEncoder(&wire)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return math.MaxInt32 // it has no wire form
	}
	return wire.Len()
}
