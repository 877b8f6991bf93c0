package mcpbridge

import (
	"context"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// facilities are the ways in which the client of this very request can ask (R13). One that declares
// elicitation without a mode can show forms.
func (c *call) facilities() []interrupt.Facility {
	var can []interrupt.Facility
	if caps := c.req.ClientCapabilities(); caps != nil && caps.Elicitation != nil && !c.tool.elsewhere {
		if caps.Elicitation.Form != nil || caps.Elicitation.URL == nil {
			can = append(can, interrupt.FacilityPermission, interrupt.FacilitySelection, interrupt.FacilityForm)
		}
		if caps.Elicitation.URL != nil && c.wire.era != era2025a {
			can = append(can, interrupt.FacilityURL)
		}
	}
	return can
}

// showsAll reports whether a client can show all kinds of questions.
func showsAll(can []interrupt.Facility) bool {
	return slices.Contains(can, interrupt.FacilityForm) && slices.Contains(can, interrupt.FacilityURL)
}

// cannotAsk is what a client gets that cannot be asked, and where the question cannot wait for an
// answer by another road. With guidance it is a result that the model can read. Without, it says
// what the client would have to be able to, or that nothing would help.
func (c *call) cannotAsk(ctx context.Context, e *gate.Error) (*mcp.CallToolResult, error) {
	var refused *unfit
	if errors.As(e, &refused) {
		c.opts.Logger.WarnContext(ctx, "a question does not fit the protocol", "tool", c.tool.name, "reason", refused.Error())
	}
	if c.tool.guided {
		return ended(e), nil
	}
	if refused != nil {
		return nil, protocolErrorOf(CodeUnsupportedForm, &gate.Error{Code: gate.ErrUnsupportedForm, Message: refused.Error()})
	}
	needed := required(e.Missing)
	switch {
	case c.wire.era != era2026: // older protocols have no such error
		return ended(e), nil
	case needed == nil:
		message := "a question of type " + string(e.Missing) + " has no form in MCP"
		return nil, protocolErrorOf(CodeUnsupportedForm, &gate.Error{Code: gate.ErrUnsupportedForm, Message: message})
	}
	data := missingCapability{ErrorData{Code: e.Code}, map[string]*mcp.ElicitationCapabilities{"elicitation": needed}}
	return nil, protocolError(mcp.CodeMissingRequiredClientCapabilities, "missing required client capabilities", data)
}

// A missingCapability is the data that 2026-07-28 asks for. It has the form of
// [mcp.MissingRequiredClientCapabilityData], which cannot leave out that roots are required.
type missingCapability struct {
	ErrorData
	RequiredCapabilities map[string]*mcp.ElicitationCapabilities `json:"requiredCapabilities"`
}

// required are the capabilities of elicitation that go with a facility; nil: there are none.
func required(missing interrupt.Facility) *mcp.ElicitationCapabilities {
	switch missing {
	case interrupt.FacilityPermission, interrupt.FacilitySelection, interrupt.FacilityForm:
		return &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}
	case interrupt.FacilityURL:
		return &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}
	}
	return nil
}

// elsewhere is what a client gets whose question waits for an answer by another road.
func (c *call) elsewhere(o gate.Outcome) *mcp.CallToolResult {
	e := &gate.Error{Code: gate.ErrConfirmationRequired, Message: c.tool.guidance, Link: o.Link, Interaction: o.Interaction}
	if e.Message == "" {
		e.Message = "a person has to answer first; make the same call again when that is done"
	}
	return ended(e)
}
