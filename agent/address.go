package agent

import (
	"context"
	"slices"
	"strings"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/compose"
)

// place returns where in the tree of agents ctx stands: the names of the agents from the top, a
// path that tells two agents of one name apart by the tool calls that lead to them, and the
// positions of the calls of agents in tools among these.
func place(ctx context.Context) (agents []string, path string, position []int) {
	var parts []string
	if outer, _ := ctx.Value(placeKey{}).(*outerPlace); outer != nil {
		agents, position = append(agents, outer.agents...), slices.Clone(outer.position)
		parts = append(parts, outer.path+"\x02") // no tool that is being called
	}
	for _, segment := range compose.GetCurrentAddress(ctx) {
		switch segment.Type {
		case adk.AddressSegmentAgent:
			agents = append(agents, segment.ID)
			parts = append(parts, segment.ID)
		case adk.AddressSegmentTool:
			parts = append(parts, segment.ID+"\x00"+segment.SubID)
		}
	}
	// The tool that is being called stands behind its agent.
	for len(parts) > 0 && isCall(parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	return agents, strings.Join(parts, "\x01"), position
}

func isCall(part string) bool {
	return strings.Contains(part, "\x00") && !strings.HasSuffix(part, "\x02")
}
