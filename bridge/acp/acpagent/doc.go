// Package acpagent runs agents of package agent in the turns of an ACP bridge: what their models
// think and say, what their tools are at and the questions of those reach the editor as they come,
// piece by piece where the agent streams (agent.Options.Streaming). A run that was left with open
// questions goes on in the next turn of its session, in this process or another.
//
//	func (a *myAgent) Prompt(
//		ctx context.Context, p acp.PromptRequest,
//	) (acp.PromptResponse, error) {
//		turn := acpbridge.TurnOf(ctx)
//		if _, err := acpagent.GoOn(ctx, turn, a.agent); err != nil {
//			return acp.PromptResponse{}, err
//		}
//		_, err := acpagent.Start(ctx, turn, a.agent, messages)
//		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
//	}
//
// The agent is made for the bridge's connection, with its check of what the client can show:
//
//	a, err := agent.New(ctx, g, build, &agent.Options{Fits: bridge.Fits})
//
// A turn that is cancelled ends its run for good ([agent.Agent.Cancel]). Where the connection is
// lost the run waits. Two windows of a session both ask what its run asks; the first answer counts,
// and the run goes on once.
package acpagent
