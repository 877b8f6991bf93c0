package agent

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// An envelope is what eino stores of a tool call that waits, as one JSON string: it names the
// interaction. Nothing else of a question is in eino's checkpoint.
type envelope struct {
	V           int      `json:"v"`
	Start       string   `json:"start"` // the start ID of the call
	Interaction string   `json:"interaction,omitempty"`
	Tool        string   `json:"tool"`
	Call        string   `json:"call"`      // the model's tool-call id
	Arguments   string   `json:"arguments"` // digest of what eino gave to the tool
	Agents      []string `json:"agents,omitempty"`
	Nested      bool     `json:"nested,omitempty"` // an agent in a tool: it waits for its own tools
	// Position is where the call stands in its model's answer, behind where the calls of the agents
	// that lead to it stand in theirs, from the top.
	Position []int `json:"position,omitempty"`

	path string // of the agent; in this going only
}

const envelopeVersion = 1

func (e envelope) String() string {
	e.V = envelopeVersion
	text, _ := json.Marshal(e) // strings and a number: it cannot fail
	return string(text)
}

func readEnvelope(text string) (envelope, error) {
	var e envelope
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return e, fmt.Errorf("read what a call stored: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return e, errors.New("read what a call stored: data after the end")
	}
	if e.V != envelopeVersion || e.Start == "" || e.Tool == "" || e.Call == "" || e.Arguments == "" {
		return e, fmt.Errorf("read what a call stored: version %d, or a part is missing", e.V)
	}
	return e, nil
}

// inOrder compares two calls: those of the agent at the top come first, and those of one agent in
// the order of its model.
func inOrder(a, b envelope) int {
	return cmp.Or(cmp.Compare(len(a.Position), len(b.Position)), slices.Compare(a.Position, b.Position), cmp.Compare(a.Start, b.Start))
}

func digest(arguments string) string {
	sum := sha256.Sum256([]byte(arguments))
	return hex.EncodeToString(sum[:])
}
