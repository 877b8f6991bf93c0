package checkpoint

import "fmt"

// A Status is where an interaction stands; docs/transitions.md has the table.
type Status uint8

// The live states. An interaction in one of them is never removed.
const (
	// Started: a call with a start ID, or with a recorded step, is in its first run, under a claim.
	Started Status = iota + 1
	// Open: a prompt is shown and waits for its answer.
	Open
	// Answered: the prompt was answered by another road than the caller's; the handler has not run.
	Answered
	// Running: the prompt is answered and an attempt was claimed.
	Running
)

// Remembered: not an interaction but a decision that answers later ones. It is removed when it is
// due.
const Remembered Status = 8

// RunLive: not an interaction but a run of a host, such as an agent's, that can go on.
const RunLive Status = 9

// RunEnded: a run that has ended. It is removed after its retention time.
const RunEnded Status = 24

// The ended states. An interaction in one of them is removed after its retention time.
const (
	// Finished: the tool ended as it meant to.
	Finished Status = iota + 16
	// Failed: the last attempt is known to have ended otherwise.
	Failed
	// Expired: the deadline passed before the answer was carried out.
	Expired
	// Abandoned: the last attempt's process is gone and its outcome is not known.
	Abandoned
	// Tombstone: the interaction was removed; what is left keeps its start ID used.
	Tombstone
)

var statusNames = map[Status]string{
	Started: "started", Open: "open", Answered: "answered", Running: "running",
	Remembered: "remembered", RunLive: "run", RunEnded: "run_ended",
	Finished: "finished", Failed: "failed", Expired: "expired", Abandoned: "abandoned", Tombstone: "tombstone",
}

// String returns the word of docs/transitions.md.
func (s Status) String() string {
	if name, ok := statusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// Valid reports whether s is one of the states above.
func (s Status) Valid() bool { return statusNames[s] != "" }

// Active reports whether s is one of the live states of an interaction.
func (s Status) Active() bool { return s >= Started && s <= Running }

// Ended reports whether s is an ended state.
func (s Status) Ended() bool { return s >= Finished }

// Run reports whether s is one of the two states of a host's run.
func (s Status) Run() bool { return s == RunLive || s == RunEnded }

// MarshalText writes the word of [Status.String].
func (s Status) MarshalText() ([]byte, error) {
	if !s.Valid() {
		return nil, fmt.Errorf("write interaction status %d: unknown", uint8(s))
	}
	return []byte(s.String()), nil
}

// UnmarshalText reads the word of [Status.String].
func (s *Status) UnmarshalText(text []byte) error {
	for status, name := range statusNames {
		if name == string(text) {
			*s = status
			return nil
		}
	}
	return fmt.Errorf("read interaction status %.40q: unknown", text)
}
