package acpbridge

import (
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/interrupt"
)

// capabilities are the modes of elicitation that the client declared.
type capabilities struct{ form, url bool }

// capabilitiesOf reads them: an elicitation without modes can do nothing.
// https://agentclientprotocol.com/protocol/v1/elicitation
func capabilitiesOf(c acp.ClientCapabilities) capabilities {
	if c.Elicitation == nil {
		return capabilities{}
	}
	return capabilities{form: c.Elicitation.Form != nil, url: c.Elicitation.Url != nil}
}

func (b *Bridge) capabilities() capabilities {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.can
}

// withoutElicitation takes away what the client declared and has no method for.
func (b *Bridge) withoutElicitation() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.can = capabilities{}
}

// Facilities are the ways in which the turn's client can be asked (R13), for a host that makes
// calls of the gate itself.
func (t *Turn) Facilities() []interrupt.Facility { return t.bridge.facilities() }

func (b *Bridge) facilities() []interrupt.Facility {
	can := b.capabilities()
	all := []interrupt.Facility{interrupt.FacilityPermission}
	if can.form || b.opts.Fallback.Selection {
		all = append(all, interrupt.FacilitySelection)
	}
	if can.form || b.opts.Fallback.Form {
		all = append(all, interrupt.FacilityForm)
	}
	if can.url || b.opts.Fallback.URL {
		all = append(all, interrupt.FacilityURL)
	}
	if b.opts.OutOfBand {
		all = append(all, interrupt.FacilityOutOfBand)
	}
	return slices.Clip(all)
}
