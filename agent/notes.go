package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// notes are what the gate keeps of a run beside eino's checkpoint, readable without it: so a run
// can be listed, and its questions found, without eino.
type notes struct {
	V int `json:"v"`
	// Conversation is that of [Start.Conversation], for lists.
	Conversation string `json:"conversation,omitempty"`

	Streaming bool `json:"streaming,omitempty"`
	// Turns is how many answers each model gave, by the path of its agent.
	Turns map[string]int `json:"turns,omitempty"`
	// Calls are the calls that wait.
	Calls []envelope `json:"calls,omitempty"`
	// Past are the interactions of calls that waited for a person and have ended since: those that
	// ended in the latest going, and up to maxPast before them.
	Past []string `json:"past,omitempty"`
}

// maxPast bounds the notes of a run that asks again and again. Who repeats a Resume repeats a late
// one.
const maxPast = 64

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
