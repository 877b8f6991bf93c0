package agent

import (
	"context"
	"slices"
	"strconv"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/compose"
)

// A place is where in the tree of agents something stands. It can be kept in a context: an agent in
// a tool stands behind that of its call.
type place struct {
	agents []string // their names, from the top
	// path tells two places apart, by the tool calls that lead to them and the turns of these:
	// models use their ids again.
	path     string
	position []int // of the calls of agents in tools that lead to it, among those of their answers
	inTool   bool  // not in an agent that is in it
	isDeep   bool  // it is not the agent at the top
}

type placeKey struct{}

// placeOf is where ctx stands: a tool that is called stands in itself.
func (g *going) placeOf(ctx context.Context) place {
	return g.placeAt(ctx, compose.GetCurrentAddress(ctx))
}

// callerOf is where the agent, or the tool, stands that calls the tool of ctx.
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
