package agent

import "errors"

// The errors of this package; those of the gate are [gate.Error].
var (
	// ErrNoRun: a tool was called outside of a run of an [Agent].
	ErrNoRun = errors.New("the tool is not called in a run of an agent under the gate")
	// ErrTaken: [Events] were taken a second time. Nothing ran.
	ErrTaken = errors.New("the events were taken before")
	// ErrModel: a tool was called by an agent whose model is not wrapped with [Model].
	ErrModel = errors.New("the agent's model is not wrapped with agent.Model")
	// ErrToolCallIDs: the model made tool calls without ids, two with the same id, or one whose id
	// is not UTF-8 or has control characters in it. An answer could be taken for that of another
	// call, so none of the calls is made. Resume asks the model again.
	ErrToolCallIDs = errors.New("the model's tool calls have no ids, the same one twice, or one that is no text")
	// ErrForeignInterrupt: something in the agent called tool.Interrupt of eino's. Nobody is asked,
	// and the run has failed. Ask with [interrupt.Ask] instead, in a tool that comes from [Tool] or
	// [Wrap].
	ErrForeignInterrupt = errors.New("an interrupt of eino's own, not a question of package interrupt: " +
		"return one from a wrapped tool instead of calling tool.Interrupt")
	// ErrSwallowed: something outside of a tool took a call that waits for one that has ended, such
	// as a middleware that makes words for the model of every error. The model is not asked what
	// comes next. Let the errors of tools under the gate pass through middlewares, and resume.
	ErrSwallowed = errors.New("a call that waits was taken for one that has ended: " +
		"let the errors of tools under the gate pass through middlewares")
	// ErrUnwrapped: a tool that is not under the gate returned a question of package interrupt.
	// Nobody is asked. Give the agent what [Wrap] or [Tool] makes of the tool, and resume.
	ErrUnwrapped = errors.New("a tool that is not under the gate asked: give the agent what agent.Wrap or agent.Tool makes of it")
	// ErrAgents: two agents asked at once, and at least one of them is in a tool of
	// adk.NewAgentTool or in a parallel agent. eino v0.7 cannot go on from that: it loses their
	// states, or ends the process by a concurrent map write. Nobody is asked, and the run has
	// failed. Make tools of the agents with [AgentTool].
	ErrAgents = errors.New("two agents asked at once in a way from which eino cannot go on: make them tools with agent.AgentTool")
	// ErrConversationOpen: another run of the conversation has not ended, and a new message would
	// pass over its questions. Answer them, start with CancelOpen, or end that run with
	// [Agent.Cancel]. The error wraps a *gate.Error whose Interaction is that run.
	ErrConversationOpen = errors.New("a run of the conversation waits or goes on")
	// ErrCheckpoint: what is stored of the run does not fit the agent. The checkpoint is not one of
	// the agent as it is now, or holds another call than the one that asked; or this package did
	// not write the run's notes or result. Nothing ran, and the run is as it was.
	ErrCheckpoint = errors.New("what is stored of the run does not fit")
	// ErrExtra: a message has an Extra value that eino cannot write into a checkpoint, so no
	// question of the run could be stored. Leave the value out, or register its type with
	// schema.RegisterName of eino's.
	ErrExtra = errors.New("a message has an Extra value that eino cannot store, since its type is not registered with schema.RegisterName")
)
