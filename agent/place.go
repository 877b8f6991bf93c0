package agent

import (
	"context"
	"slices"
	"strconv"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/compose"
)

// A place is where an agent or a tool call is in the tree of agents of a run. A context carries the
// place of the call of an agent in a tool, and what that agent does is below it.
type place struct {
	agents []string // the names of the agents that lead to it, from the top
	// path is different for any two places. It holds the agents and the tool calls that lead to the
	// place, and for each call the turn that it is from, because models use their ids again.
	path string
	// position holds, for each call of an agent in a tool that leads to the place, where it is
	// among the calls of its answer.
	position []int
	inTool   bool // it is a tool call, and not an agent in one
	isDeep   bool // it is below the agent at the top
}

type placeKey struct{}

// placeOf is the place of the agent or the tool call to which ctx belongs.
func (g *going) placeOf(ctx context.Context) place {
	return g.placeAt(ctx, compose.GetCurrentAddress(ctx))
}

// callerOf is the place of the agent, or of the tool, that calls the tool to which ctx belongs.
func (g *going) callerOf(ctx context.Context) place {
	address := compose.GetCurrentAddress(ctx)
	for n := len(address); n > 0; n-- {
		if address[n-1].Type == adk.AddressSegmentTool {
			address = address[:n-1]
			break
		}
	}
	return g.placeAt(ctx, address)
}

func (g *going) placeAt(ctx context.Context, address adk.Address) place {
	p, _ := ctx.Value(placeKey{}).(place)
	p.agents, p.position = slices.Clone(p.agents), slices.Clone(p.position)
	for _, segment := range address {
		part := segment.ID
		switch segment.Type {
		case adk.AddressSegmentAgent:
			p.agents, p.inTool = append(p.agents, segment.ID), false
		case adk.AddressSegmentTool:
			p.inTool = true
			part += "\x00" + segment.SubID + "\x00" + strconv.Itoa(g.turnsOf(p.path))
		default:
			continue
		}
		if p.path != "" {
			p.isDeep, p.path = true, p.path+"\x01"
		}
		p.path += part
	}
	return p
}
