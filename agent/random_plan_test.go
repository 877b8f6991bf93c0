package agent_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/parley-go/parley/gate"
)

// A toolPlan is what a tool of a random agent does: it asks, once in each round, and then has its
// effect.
type toolPlan struct {
	name   string
	kind   string // "gate", or a form of eino's: "invoke", "stream", "parts", "flow"
	rounds int
	two    bool // two questions in each round
	replay gate.Replay
	// recover: recovery is a function of its own.
	recover  bool
	keep     bool // KeepResult
	keepOpen bool
	once     bool   // the effect is a step of interrupt.Once
	fails    string // "", "error before", "error after", "panic before", "panic after" the effect
	heeds    bool   // its context
	takes    time.Duration
}

// An agentPlan is an agent with what its model answers.
type agentPlan struct {
	name  string
	kind  string       // "chat", "sequential", "loop"
	turns [][]callPlan // of a chat model agent
	fails map[int]bool // the turns in which the model fails when it is asked first
	parts []*agentPlan // of the others
	fresh bool         // tool-call ids are other ones whenever the model is asked
}

// A callPlan is a call of one of the two.
type callPlan struct {
	tool  *toolPlan
	agent *agentPlan
}

// A planner makes the plans of one seed.
type planner struct {
	*rand.Rand
	tools  []*toolPlan
	agents int
}

func (p *planner) chance(percent int) bool { return p.IntN(100) < percent }

func (p *planner) makeTools() {
	for i := range 2 + p.IntN(4) {
		t := &toolPlan{
			name: fmt.Sprintf("tool%d", i), kind: pick(p, "gate", "gate", "invoke", "stream", "parts", "flow"), rounds: pick(p, 0, 1, 1, 1, 2, 3),
			two: p.chance(20), replay: pick(p, gate.NeverAgain, gate.Recover, gate.Repeatable), keep: p.chance(60), heeds: p.chance(50),
			keepOpen: p.chance(10), once: p.chance(20), takes: time.Duration(p.IntN(3)) * 50 * time.Millisecond,
		}
		// A tool of eino's is entered by eino alone: its recovery is the tool itself.
		t.recover = t.replay == gate.Recover && t.kind == "gate" && p.chance(50)
		if p.chance(20) {
			t.fails = pick(p, "error before", "error after", "panic before", "panic after")
		}
		p.tools = append(p.tools, t)
	}
}

// agent plans an agent, with agents in tools up to that depth.
func (p *planner) agent(depth int) *agentPlan {
	p.agents++
	a := &agentPlan{name: fmt.Sprintf("agent%d", p.agents), kind: pick(p, "chat", "chat", "chat", "sequential", "loop")}
	if depth < 3 && a.kind != "chat" {
		for range 1 + p.IntN(2) {
			part := p.chat(depth)
			a.parts = append(a.parts, part)
		}
		return a
	}
	return p.fill(a, depth)
}

func (p *planner) chat(depth int) *agentPlan {
	p.agents++
	return p.fill(&agentPlan{name: fmt.Sprintf("agent%d", p.agents)}, depth)
}

func (p *planner) fill(a *agentPlan, depth int) *agentPlan {
	a.kind, a.fresh, a.fails = "chat", p.chance(50), map[int]bool{}
	for turn := range 1 + p.IntN(2) {
		var calls []callPlan
		inParts := false // eino 0.7.36 has a data race of its own where two such calls stream (ToolsNode.Stream, err)
		for range 1 + p.IntN(3) {
			if depth > 0 && p.chance(35) {
				calls = append(calls, callPlan{agent: p.agent(depth - 1)})
				continue
			}
			t := p.tools[p.IntN(len(p.tools))]
			if is := t.kind == "parts" || t.kind == "flow"; !is || !inParts {
				calls, inParts = append(calls, callPlan{tool: t}), inParts || is
			}
		}
		a.turns = append(a.turns, calls)
		a.fails[turn] = p.chance(5)
	}
	return a
}

func pick[T any](p *planner, of ...T) T { return of[p.IntN(len(of))] }

func (a *agentPlan) String() string {
	var b strings.Builder
	a.write(&b, "")
	return b.String()
}

func (a *agentPlan) write(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%s%s %s fresh=%t fails=%v\n", indent, a.kind, a.name, a.fresh, a.fails)
	for _, part := range a.parts {
		part.write(b, indent+"  ")
	}
	for i, calls := range a.turns {
		fmt.Fprintf(b, "%s  turn %d\n", indent, i)
		for _, c := range calls {
			if c.agent != nil {
				c.agent.write(b, indent+"    ")
			} else {
				fmt.Fprintf(b, "%s    %s\n", indent, c.tool.name)
			}
		}
	}
}
