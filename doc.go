// Package parley is a toolkit for the moment in which an agent's tool needs a person. It holds no
// code: what a program imports are its parts.
//
//   - Package interrupt is what a tool's handler raises, and what the person answers.
//   - Package gate runs handlers and enforces the rules: tokens, rounds, expiry, replay, recovery;
//     gate/gatetest tests a handler through restarts, replays and crashes.
//   - Package checkpoint is what is kept of an interaction; checkpoint/boltstore keeps it in one
//     file, checkpoint/memstore in memory, and checkpoint/checkpointtest is what every store has to
//     pass.
//   - Package bridge/mcp puts the tools of a gate on an MCP server.
//
// A handler asks by returning an error:
//
//	func deploy(ctx context.Context, in DeployInput) (DeployOutput, error) {
//		ask := interrupt.ToolPermission("deploy", "Deploy "+in.Service+" to production")
//		if _, err := interrupt.Ask(ctx, ask); err != nil {
//			return DeployOutput{}, err
//		}
//		return ship(ctx, in) // reached only after a person allowed exactly this call
//	}
//
// How a handler is written that runs again for each answer is told in docs/handlers.md. What is
// promised stands in docs/rules.md, and what each step commits, with what a crash leaves, in
// docs/transitions.md. The README begins with a whole program.
package parley
