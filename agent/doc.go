// Package agent runs an agent of eino's ADK under the gate: its tools ask people, the run stops
// while they wait for an answer, survives the end of its process, and goes on when the answer is
// there.
//
// Eino's agent is connected to a gate in two places. Its tools become tools of the gate: [Tool]
// makes a tool of eino's out of a [gate.Tool], and [Wrap] makes both out of a tool that is eino's
// already. Its model is wrapped with [Model]. [New] makes the [Agent] that runs it:
//
//	deploy := gate.NewTool("deploy", deployService, nil)
//	g, err := gate.Open(ctx, store, &gate.Options{Tools: []*gate.Tool{deploy}, Keys: keys})
//	config.Model = agent.Model(config.Model)
//	config.ToolsConfig.Tools = []tool.BaseTool{agent.Tool(deploy)}
//	a, err := agent.New(ctx, g, func(ctx context.Context) (adk.Agent, error) {
//		return adk.NewChatModelAgent(ctx, config)
//	}, nil)
//	start := agent.Start{Scope: user, Messages: messages, Facilities: can}
//	for event, err := range a.Start(ctx, start).All() {
//		// Show the event. Put the prompt of an Asked to the person, and resume with the answer.
//	}
//
// A host that wants only the end writes run, err := a.Start(ctx, start).Run().
//
// The package promises, with the rule's number where a test names it:
//
//   - Every tool call is a call of the gate with a start ID of its own, so all rules hold for it.
//     The tool runs with the arguments that the person saw: the gate compares them innermost, after
//     every middleware of eino's (R9).
//   - Eino's checkpoint and the prompts of all tools that asked are written in one commit, and the
//     prompts are shown after it (R25). Nobody sees a question whose checkpoint was not saved.
//   - Several questions of one turn can be answered one by one. The others keep their tokens, and
//     a tool that has ended does not run again (R31).
//   - Only one caller goes on with a run at a time; the others get busy (R23). Resuming a run that
//     has ended tells how it ended, and runs nothing.
//   - What the model answered is kept until the next commit. After a crash the run makes the same
//     tool calls again, and each follows what its tool chose (R27).
//   - A run is told as [Events]: text of the models, tools and their progress, questions, the end.
//     Leaving the loop over them stops the run, which can be resumed.
//   - A person's no reaches the tool. By default the model is told which no it was (R17).
//
// A tool call may be unable to go on for a reason that can pass: the store does not serve, or the
// revision of the tool changed. The run then stops with a [Problem], and Resume tries again.
//
// Set KeepResult of a tool wherever its results may be stored. Without it, the model cannot be told
// the result of a call that ended right before a crash, only that the call was carried out.
package agent
