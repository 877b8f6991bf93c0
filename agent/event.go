package agent

import (
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// An Event tells what happened in a run, to whoever shows it. It is one of
//
//   - [RunStarted], when the run has begun or is resumed;
//   - [ModelReasoning], [ModelText], [ToolStarted], [ToolProgress], [ToolText], [ToolEnded] while
//     it goes on;
//   - [Asked] for each question that is open when it stops;
//   - [RunWaiting], [RunFinished] or [RunFailed] at the end.
//
// A run goes on whether or not its events are kept. [Events] says in which order they come.
type Event interface{ event() }

// An Origin names the tool call to which something belongs.
type Origin struct {
	// StartID is unique over all runs, and the same after a resume. It is not secret.
	StartID string
	Tool    string
	Call    string   // the model's id for the call; a model may use it again in a later turn
	Agents  []string // the names of the agents that lead to the call, from the top
}

// RunStarted is the first event of a run. The run is recorded under ID by then, and only this loop
// goes on with it.
type RunStarted struct{ ID checkpoint.ID }

// ModelText is text of a model that is wrapped with [Model]: a whole answer, or a piece of one in a
// run that streams.
type ModelText struct {
	Agents []string // the names of the agents that lead to the model, from the top
	// Turn names the answer: all its pieces have the same Turn, and no other answer of the run has
	// it. An answer that is told again, or asked for again because it broke off, keeps its Turn.
	Turn string
	Text string
}

// ModelReasoning is what a model that is wrapped with [Model] says of its thinking
// (eino's ReasoningContent), as ModelText is its answer: a piece of it, or all. In a piece
// of an answer that has both, it comes first.
type ModelReasoning struct {
	Agents []string
	Turn   string // that of the answer's text
	Text   string
}

// ToolStarted: a model called a tool, or an agent in a tool. A call that waited when the run
// stopped goes on without a second ToolStarted.
type ToolStarted struct {
	Origin
	// Arguments are those of the model. Of a tool of the gate they are as a prompt shows them:
	// canonical, the masked ones replaced (R9); empty where they are no arguments.
	Arguments string
}

// ToolProgress: a tool reported its progress (R35).
type ToolProgress struct {
	Origin
	Update interrupt.Update
}

// ToolText is a piece of the result of a tool that streams. The tool still runs.
type ToolText struct {
	Origin
	Text string
}

// ToolEnded: a call ended, and Result is what the model is told of it: the whole result, even where
// its pieces were told before.
type ToolEnded struct {
	Origin
	Result string
	// Code is empty where Result is the tool's. Where the call ended without a result, Code says
	// how, and Result is in the words of this package.
	Code gate.Code
}

// Asked: a question is open. The commit that made it durable came before (R25).
type Asked struct{ Question Question }

// RunWaiting: the run stopped for its Questions and Problems, and Resume goes on with it.
type RunWaiting struct{ *Run }

// RunFinished: the agent came to its end. Message is its last message.
type RunFinished struct{ *Run }

// RunFailed: the run ended, and cannot go on. Message says why.
type RunFailed struct{ *Run }

func (RunStarted) event()     {}
func (ModelText) event()      {}
func (ModelReasoning) event() {}
func (ToolStarted) event()    {}
func (ToolProgress) event()   {}
func (ToolText) event()       {}
func (ToolEnded) event()      {}
func (Asked) event()          {}
func (RunWaiting) event()     {}
func (RunFinished) event()    {}
func (RunFailed) event()      {}

// stopped is the last event of a run that does not go on here.
func stopped(run *Run) Event {
	switch run.Status {
	case Finished:
		return RunFinished{run}
	case Failed:
		return RunFailed{run}
	default:
		return RunWaiting{run}
	}
}
