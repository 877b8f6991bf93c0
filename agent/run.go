package agent

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// A Status is where a run stands.
type Status string

// The states of a run.
const (
	Waiting  Status = "waiting"  // it stopped, and Resume goes on with it
	Running  Status = "running"  // a process goes on with it, or died while it did
	Finished Status = "finished" // the agent came to its end
	Failed   Status = "failed"   // it ended, and cannot go on
)

// A Run is where a run of an agent stands. The receiver owns it.
type Run struct {
	ID     checkpoint.ID
	Status Status
	// Conversation is that of [Start.Conversation].
	Conversation string
	Created      time.Time
	Updated      time.Time // when its record was last written
	// Questions are open. Only Start and Resume return them with their tokens. Beside an error
	// there are none: [Agent.Inspect] tells what is open then, and the next Resume brings the
	// tokens.
	Questions []Question
	// Problems say why a call waits although it does not wait for a person, and which answers were
	// refused.
	Problems []Problem
	// Message is the agent's last message where the run finished, and the reason where it failed.
	Message string
}

// A Question is an open prompt of the run, and the tool call that asks it. Its questions are in
// Prompt, and are answered together.
type Question struct {
	Origin
	Interaction checkpoint.ID
	Prompt      *gate.Prompt
	// OutOfBand and Link are those of [gate.Outcome].
	OutOfBand bool
	Link      string
}

// questionOf is an open prompt of the gate's, of the call that e names.
func questionOf(e envelope, o gate.Outcome) Question {
	return Question{Origin: e.origin(), Interaction: o.Interaction, Prompt: o.Prompt, OutOfBand: o.OutOfBand, Link: o.Link}
}

// A Problem says why a tool call cannot go on now, or why an answer was refused. Resume tries
// again; Err tells whether something has to be done first.
type Problem struct {
	Origin
	Interaction checkpoint.ID // zero: nothing is recorded of the call
	Err         error
}

// ofSummary is the run as it is recorded. The error is ErrCheckpoint where its result is not one
// that this package wrote.
func ofSummary(s gate.RunSummary) (*Run, error) {
	r := &Run{ID: s.ID, Status: Waiting, Created: s.Created, Updated: s.Updated}
	if known, err := readNotes(s.Notes); err == nil {
		r.Conversation = known.Conversation
	}
	switch {
	case s.Status == checkpoint.RunEnded && s.Code == "":
		r.Status = Finished
		if err := json.Unmarshal(s.Result, &r.Message); err != nil {
			return r, fmt.Errorf("%w: the result of the run is none of an agent's: %w", ErrCheckpoint, err)
		}
	case s.Status == checkpoint.RunEnded:
		r.Status, r.Message = Failed, s.Message
	case s.Claimed:
		r.Status = Running
	}
	return r, nil
}
