package agent

import (
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// An Event is something that happens in a run, for whoever shows it. It is one of
//
//   - [RunGoing], once the run has begun or is gone on with;
//   - [ModelText], [ToolStarted], [ToolProgress], [ToolText], [ToolEnded] while it goes on;
//   - [Asked] for each question that is open when it stops;
//   - [RunWaiting], [RunFinished] or [RunFailed] at the end.
//
// None of them is needed to go on with the run. [Events] tells their order.
type Event interface{ event() }

// An Origin is the tool call that something is of.
type Origin struct {
	// StartID is of this call alone in all runs, and the same after a resume. It is not secret.
	StartID string
	Tool    string
	Call    string   // the model's id for it; models use their ids again
	Agents  []string // the names of the agents that lead to it, from the top
}

// RunGoing is the first event of a run: it is recorded, and belongs to this range of the events.
type RunGoing struct{ ID checkpoint.ID }

// ModelText is text of a model that is wrapped with [Model]: all of an answer, or, in a run that
// streams, a piece of it.
type ModelText struct {
	Agents []string // the names of the agents that lead to the model, from the top
	// Turn is one for all pieces of an answer, and another one for every other answer of the run.
	// An answer that is told again, or that broke off and is asked for again, has the one it had.
	Turn string
	Text string
}

// ToolStarted: a tool is called, or an agent in a tool. A call that the run's commit holds goes on
// without starting again.
type ToolStarted struct {
	Origin
	Arguments string // as the model gave them, those that the tool masks replaced (R9)
}

// ToolProgress: a tool told how far it is (R35).
type ToolProgress struct {
	Origin
	Update interrupt.Update
}

// ToolText is a piece of the result of a tool that streams, as soon as the tool has it.
type ToolText struct {
	Origin
	Text string
}

// ToolEnded: a call ended, and this is what the model is told. It is the whole result, also where
// the pieces were told.
type ToolEnded struct {
	Origin
	Result string
	// Code is how the call ended that brought no result of the tool's: what is told is in the words
	// of this package then.
	Code gate.Code
}

// Asked: a question is open. It comes after the commit that made it durable (R25).
type Asked struct{ Question Question }

// RunWaiting: the run stopped, and goes on with Resume. Its Questions and Problems are why.
type RunWaiting struct{ *Run }

// RunFinished: the agent came to its end. Message is its last one.
type RunFinished struct{ *Run }

// RunFailed: the run cannot go on. Message says why.
type RunFailed struct{ *Run }

func (RunGoing) event()     {}
func (ModelText) event()    {}
func (ToolStarted) event()  {}
func (ToolProgress) event() {}
func (ToolText) event()     {}
func (ToolEnded) event()    {}
func (Asked) event()        {}
func (RunWaiting) event()   {}
func (RunFinished) event()  {}
func (RunFailed) event()    {}

// stopped is the event of where a run stands that does not go on here.
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
