// Package gatetest plays a tool's handler through everything that can happen between its questions.
//
// A handler runs from the top for each answer, in a process that may not be the one in which it
// asked. What it resumes with comes from a gate and cannot be forged (R3), so a test of it needs a
// gate, a store, and a person. This package has them:
//
//	func TestDeploy(t *testing.T) {
//		var shipped []string // the world around the tool
//		newTool := func() *gate.Tool { return deployTool(&shipped) }
//		story := gatetest.Run(t, newTool, gatetest.Script{
//			Arguments: `{"service":"api"}`,
//			Answers:   []gatetest.Answer{gatetest.Allow()},
//			Result:    `"shipped api"`,
//			Before:    func() { shipped = nil },
//			After: func(*gatetest.Story) error {
//				if len(shipped) > 1 {
//					return errors.New("it was shipped twice")
//				}
//				return nil
//			},
//		})
//		// story.Asked[0] are the questions of round 1, story.Runs is how often the handler ran
//	}
//
// A [Script] is one call of the tool, one [Answer] for each question, and the end. [Run] plays it
// in every way in which it can happen, and each time the script's end has to come of it:
//
//   - The double run: each run is made again with the same recorded answers. A question that is
//     another one then (a time in its text, a random ID, the order of a map) is reported with its
//     round, its number, and what changes. It is not found again when it is answered (R2).
//   - The story as it is when nothing goes wrong. Run returns it.
//   - A restart before every answer: a new tool and a new gate on the same store. What the tool
//     kept in memory is gone.
//   - Every request sent twice: that leads to where the interaction stands (R26, R27).
//   - An invalid answer before every answer, which changes nothing (R16).
//   - A crash right before and right after everything that the gate records: the call, an answer,
//     a prompt, the end. Right after an answer was recorded, the handler did not run, and nobody
//     can know it. Right before a prompt or the end is recorded, the handler ran, with all its
//     effects, and what it returned is lost. Then the tool's choice applies (R27): the story ends
//     with gate.ErrOutcomeUnknown, or in recovery, or the handler runs again.
//
// What only the tool's author can judge is judged by [Script].After, after each story: whether the
// world is as it should be. An effect that is done twice anywhere is found there.
//
// In recovery, which may only finish, a question is reported, and a result where the person has not
// answered everything or has said no.
//
// Nothing sleeps, and a script takes some ten milliseconds. Time passes by [Answer.After]; a tool
// that looks at a clock is given a [Clock]. The second of time.Now is the same in two runs that
// come right after each other: only a tool with such a clock shows that it is in a question.
//
// How a handler is written that runs again is told in docs/handlers.md.
package gatetest
