package agent

import "github.com/parley-go/parley/interrupt"

// An Event is something that happens in a run, for whoever shows it: ModelText, ToolStarted,
// ToolProgress, ToolEnded, Asked, Stopped. None of them is needed to go on with the run.
type Event interface{ event() }

// An Origin is the tool call that an event is of.
type Origin struct {
	Tool   string
	Call   string   // the model's id for it
	Agents []string // the names of the agents that lead to it, from the top
}

// ModelText is text of a model: all of an answer, or, in a run that streams, a piece of it.
type ModelText struct {
	Agent string
	Text  string
}

// ToolStarted: a tool is called, and has not been before in this run.
type ToolStarted struct {
	Origin
	Arguments string // as the model gave them
}

// ToolProgress: a tool told how far it is (R35).
type ToolProgress struct {
	Origin
	Update interrupt.Update
}

// ToolEnded: a call ended, and this is what the model is told.
type ToolEnded struct {
	Origin
	Result string
}

// Asked: a question is open. It comes after the commit that made it durable (R25).
type Asked struct{ Question Question }

// Stopped is the last event: the run stopped, finished or failed.
type Stopped struct{ Run *Run }

func (ModelText) event()    {}
func (ToolStarted) event()  {}
func (ToolProgress) event() {}
func (ToolEnded) event()    {}
func (Asked) event()        {}
func (Stopped) event()      {}
