// Package agent puts an eino agent under the gate: its tools ask people, the run stops, survives a
// restart of its process, and goes on when the answers are there.
//
// A tool is a tool of the gate with a face for eino, which [Tool] gives to a [gate.Tool]; [Wrap]
// makes both of a tool of eino's. The agent's model is wrapped with [Model]. An [Agent] runs it:
//
//	deploy := gate.NewTool("deploy", deployService, nil)
//	g, err := gate.Open(ctx, store, &gate.Options{Tools: []*gate.Tool{deploy}, Keys: keys})
//	config.Model = agent.Model(config.Model)
//	config.ToolsConfig.Tools = []tool.BaseTool{agent.Tool(deploy)}
//	a, err := agent.New(ctx, g, func(ctx context.Context) (adk.Agent, error) {
//		return adk.NewChatModelAgent(ctx, config)
//	}, nil)
//	start := agent.Start{Scope: user, Messages: messages, Facilities: can}
//	for event, err := range a.Start(ctx, start) {
//		// show it; of an Asked put the Prompt to the person, then a.Resume with the answer
//	}
//
// Who wants only the end of it writes run, err := a.Start(ctx, start).Run().
//
// What it promises, with the rule's number where a test names it:
//
//   - Every tool call is a call of the gate under a start ID of its own, and its rules hold for it.
//     The arguments that run are those that a person saw: they are compared innermost, where no
//     middleware of eino's comes after (R9).
//   - eino's checkpoint and the prompts of all tools that asked are written in one commit and shown
//     after it (R25). A question whose checkpoint was not saved is shown by nobody.
//   - Each of several questions is answered alone. The others keep their tokens, and tools that
//     have ended do not run again (R31).
//   - A run goes on once: whoever resumes it at the same time gets busy (R23). A run that has ended
//     tells how, and runs nothing.
//   - What the model answered is kept until the next commit: after a crash the same tool calls come
//     again, and each follows what its tool chose (R27).
//   - What happens is told as [Events]: text of models, tools and their progress, questions, the
//     end. Leaving the loop over them stops the run, which can be resumed.
//   - A person's no reaches the tool, and by default the model is told which it was (R17).
//
// A tool that cannot go on for a reason that may pass (the store does not serve, its revision
// changed) does not fail the run: it stops with a [Problem], and Resume tries again.
//
// Give the tools of an agent the option KeepResult where their results may be kept: without it a
// tool that ended right before a crash can only be told to the model as completed.
package agent
