package checkpoint

import (
	"errors"
	"fmt"
	"time"
)

// An Entry is one entry of the audit trail: who did what with which interaction, and nothing of
// what was said (R38). It holds no arguments, no answers and no token, and is not encrypted.
type Entry struct {
	Time        time.Time `json:"time"`        // UTC, in whole milliseconds
	Interaction ID        `json:"interaction"` // of the decision or run, where the status is that of one
	Action      Action    `json:"action"`
	Status      Status    `json:"status"` // the interaction's state after it
	Round       int       `json:"round,omitempty"`
	Attempt     uint32    `json:"attempt,omitempty"`
	Tool        string    `json:"tool,omitempty"`
	Scope       Hash      `json:"scope,omitzero"`
	By          string    `json:"by,omitempty"`   // who answered, in the host's words
	Face        string    `json:"face,omitempty"` // by which face
	Code        string    `json:"code,omitempty"` // how an attempt ended, where it was not success
	// Remembered is set where nobody was asked: remembered decisions answered.
	Remembered bool `json:"remembered,omitempty"`
}

// An Action is what an audit entry tells of.
type Action string

// The actions.
const (
	ActionStarted    Action = "started"    // a record was made before the first run
	ActionAsked      Action = "asked"      // a prompt was committed
	ActionRejoined   Action = "rejoined"   // a new token replaced the former one
	ActionAnswered   Action = "answered"   // a prompt was answered
	ActionClaimed    Action = "claimed"    // an attempt was claimed for an answer that was recorded before
	ActionRecovered  Action = "recovered"  // an attempt was claimed after another one
	ActionEnded      Action = "ended"      // an attempt came to its end
	ActionExpired    Action = "expired"    // the deadline passed
	ActionAbandoned  Action = "abandoned"  // a sweep found a dead claim
	ActionRemoved    Action = "removed"    // the record was removed; a tombstone may be left
	ActionStopped    Action = "stopped"    // a run stopped, and can go on
	ActionRemembered Action = "remembered" // a decision was remembered
	ActionRevoked    Action = "revoked"    // a remembered decision was revoked
)

const auditVersion = 1

type auditEnvelope struct {
	V int `json:"v"`
	*Entry
}

// EncodeEntry returns the data of an audit entry.
func EncodeEntry(e *Entry) ([]byte, error) {
	data, err := write(e.appendTo, true)
	if err != nil {
		return nil, fmt.Errorf("write audit entry of %s: %w", e.Interaction, err)
	}
	return data, nil
}

// DecodeEntry reads the data of an audit entry.
func DecodeEntry(data []byte) (*Entry, error) {
	e := new(Entry)
	envelope := auditEnvelope{Entry: e}
	if err := unmarshal(data, &envelope); err != nil {
		return nil, fmt.Errorf("read audit entry: %w", err)
	}
	if envelope.V != auditVersion {
		return nil, fmt.Errorf("read audit entry: format version %d, want %d", envelope.V, auditVersion)
	}
	if !e.Status.Valid() {
		return nil, errors.New("read audit entry: it names no status")
	}
	return e, nil
}
