package agent

import "errors"

// The errors of this package; those of the gate are [gate.Error].
var (
	// ErrNoRun: a tool was called outside of a run of an [Agent].
	ErrNoRun = errors.New("the tool is not called in a run of an agent under the gate")
	// ErrRanged: the events of one Start, Resume or Wait were ranged over before. Nothing ran.
	ErrRanged = errors.New("the events were ranged over before")
	// ErrModel: a tool was called by an agent whose model is not wrapped with [Model].
	ErrModel = errors.New("the agent's model is not wrapped with agent.Model")
	// ErrToolCallIDs: the model gave tool calls without ids, or one id to two of them, so that
	// answers could be taken for those of another call; or an id that is not UTF-8 or has control
	// characters in it. Resume asks the model again.
	ErrToolCallIDs = errors.New("the model's tool calls have no ids, the same one twice, or one that is no text")
	// ErrForeignInterrupt: something in the agent raised an interrupt of eino's own. Nobody is
	// asked and the run has failed: return a question of package interrupt from a tool that is
	// wrapped with [Tool] or [Wrap] instead of calling tool.Interrupt.
	ErrForeignInterrupt = errors.New("an interrupt of eino's own, not a question of package interrupt: " +
		"return one from a wrapped tool instead of calling tool.Interrupt")
	// ErrSwallowed: something outside of a tool, such as a middleware that makes words for the
	// model of every error, took a call that waits for one that has ended. The model is not asked
	// on. The run can be resumed by a program whose middlewares let the errors of tools under the
	// gate pass.
	ErrSwallowed = errors.New("a call that waits was taken for one that has ended: " +
		"let the errors of tools under the gate pass through middlewares")
	// ErrUnwrapped: a tool that is not under the gate returned a question of package interrupt.
	// Nobody is asked; give the agent what [Wrap] or [Tool] makes of the tool, and resume.
	ErrUnwrapped = errors.New("a tool that is not under the gate asked: give the agent what agent.Wrap or agent.Tool makes of it")
	// ErrAgents: two agents asked at once, of adk.NewAgentTool beside their caller or each other,
	// or of a parallel agent. eino v0.7 cannot go on from that: it loses their states, or ends the
	// process (it writes a map that another of them reads). Nobody is asked and the run has failed:
	// make the agents tools with [AgentTool].
	ErrAgents = errors.New("two agents asked at once in a way from which eino cannot go on: make them tools with agent.AgentTool")
	// ErrConversationOpen: a run of the conversation has not ended, so that a new message would
	// pass its questions over. Answer them, start with CancelOpen, or end it with [Agent.Cancel].
	// The error wraps a *gate.Error, whose Interaction is the run.
	ErrConversationOpen = errors.New("a run of the conversation waits or goes on")
	// ErrCheckpoint: what is stored of the run does not fit: its checkpoint is not one of the agent
	// as it is now, or holds another call than the one that asked, or its notes or its result are
	// none of this package's. Nothing ran, and the run is as it was.
	ErrCheckpoint = errors.New("what is stored of the run does not fit")
	// ErrExtra: a message has an Extra value that eino cannot write into a checkpoint, so that a
	// question in this conversation could never be stored. Leave it out, or register its type with
	// schema.RegisterName of eino's.
	ErrExtra = errors.New("a message has an Extra value that eino cannot store, since its type is not registered with schema.RegisterName")
)
