package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// A Status is where a run stands.
type Status string

// The states of a run.
const (
	Waiting  Status = "waiting"  // it stopped, and goes on with Resume
	Going    Status = "going"    // somebody has it now, or had when their process died
	Finished Status = "finished" // the agent came to its end
	Failed   Status = "failed"   // it cannot go on
)

// A Run is what there is to know of a run of an agent. It is the receiver's own copy.
type Run struct {
	ID     checkpoint.ID
	Status Status
	// Conversation is that of [Start.Conversation].
	Conversation string
	// Created and Updated are known of Inspect and Runs, and of a run that had ended; elsewhere
	// they are zero.
	Created time.Time
	Updated time.Time
	// Questions are open. Only Start and Resume return them with their tokens.
	Questions []Question
	// Problems are why calls wait that wait for no person.
	Problems []Problem
	// Message is the last one of a run that finished, or why it failed.
	Message string
}

// A Question is an open prompt of a tool call of the run.
type Question struct {
	Origin
	gate.Outcome // Prompt, and where it can be answered out of band
}

// A Problem is why a tool call cannot go on now. Resume tries again; Err says whether somebody has
// to do something first.
type Problem struct {
	Origin
	Interaction checkpoint.ID // zero: there is none
	Err         error
}

// notes are what the record of a run keeps beside the checkpoint.
type notes struct {
	V int `json:"v"`
	// Conversation is that of [Start.Conversation], for lists.
	Conversation string `json:"conversation,omitempty"`

	Streaming bool           `json:"streaming,omitempty"`
	Turns     map[string]int `json:"turns,omitempty"`
	Calls     []envelope     `json:"calls,omitempty"` // that wait
	// Past are the interactions of calls that waited for a person and have ended since.
	Past []string `json:"past,omitempty"`
}

const notesVersion = 1

func readNotes(data json.RawMessage) (notes, error) {
	n := notes{}
	if data == nil {
		return n, nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&n); err != nil {
		return n, fmt.Errorf("read the notes of a run: %w", err)
	}
	if n.V != notesVersion {
		return n, fmt.Errorf("read the notes of a run: version %d, want %d", n.V, notesVersion)
	}
	for _, e := range n.Calls {
		if e.Start == "" {
			return n, errors.New("read the notes of a run: a call without a start id")
		}
	}
	return n, nil
}

// ofSummary is the run as it is recorded. A result that is none of an agent's is the error.
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
	case s.Going:
		r.Status = Going
	}
	return r, nil
}
