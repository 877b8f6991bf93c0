package checkpoint

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Run is work of a host that goes on over several calls, such as an agent's. It is kept as a
// [Record] in state [RunLive] or [RunEnded]; what is large is in rows under it. All times are UTC
// in whole milliseconds.
type Run struct {
	ID       ID        `json:"id"`
	Revision uint64    `json:"revision"`
	Status   Status    `json:"status"`
	Scope    Hash      `json:"scope"`
	Start    Hash      `json:"start,omitzero"` // of its key, while it goes on; zero: it has none
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	Due      time.Time `json:"due,omitzero"` // see [Record.Due]
	Claim    Claim     `json:"claim,omitzero"`

	Face  string          `json:"face,omitempty"`  // through which it was begun
	Notes json.RawMessage `json:"notes,omitempty"` // the host's own
	Blob  *Blob           `json:"blob,omitempty"`  // nil: there is none yet
	// Deadline is the latest one of the prompts that were open when it stopped; zero: there were
	// none, or one of them had none, and then Endless is set.
	Deadline time.Time `json:"deadline,omitzero"`
	Endless  bool      `json:"endless,omitempty"`
	Ending   *Ending   `json:"ending,omitempty"`
}

// A Blob says what the bytes in a row of a run are when they are read back.
type Blob struct {
	Size   int64 `json:"size"`   // in bytes, before they were compressed
	Digest Hash  `json:"digest"` // SHA-256 of the compressed bytes, or, where they are of the first format, of those before
}

type runEnvelope struct {
	V int `json:"v"`
	*Run
}

// EncodeRun returns the record of the run: its plain fields and, in Data, all of it.
func EncodeRun(r *Run) (Record, error) {
	if reason := r.contradiction(); reason != "" {
		return Record{}, fmt.Errorf("write run %s: %s", r.ID, reason)
	}
	data, err := write(r.appendTo, false)
	if err != nil {
		return Record{}, fmt.Errorf("write run %s: %w", r.ID, err)
	}
	return Record{
		ID: r.ID, Revision: r.Revision, Status: r.Status, Scope: r.Scope, Start: r.Start, Due: r.Due, Claim: r.Claim, Data: data,
	}, nil
}

// DecodeRun reads the record of a run. Its error is a [*DecodeError]: the record is none, Data is
// of an unknown version, malformed, contradicts itself, or says other than the plain fields beside
// it (R37).
func DecodeRun(record Record) (*Run, error) {
	if !record.Status.Run() {
		return nil, &DecodeError{record.ID, "not a run", nil}
	}
	r := new(Run)
	if err := decodeData(record.ID, record.Data, &runEnvelope{Run: r}); err != nil {
		return nil, err
	}
	field := ""
	switch {
	case r.ID != record.ID:
		field = "id"
	case r.Revision != record.Revision:
		field = "revision"
	case r.Status != record.Status:
		field = "status"
	case r.Scope != record.Scope:
		field = "scope"
	case r.Start != record.Start:
		field = "start"
	case !r.Due.Equal(record.Due):
		field = "due"
	case r.Claim != record.Claim:
		field = "claim"
	}
	if field != "" {
		return nil, &DecodeError{record.ID, fmt.Sprintf("plain field %q says other than the data", field), nil}
	}
	if reason := r.contradiction(); reason != "" {
		return nil, &DecodeError{record.ID, reason, nil}
	}
	return r, nil
}

// contradiction says what in a run does not go together; "" where nothing does.
func (r *Run) contradiction() string {
	switch ended := r.Status == RunEnded; {
	case !r.Status.Run():
		return "a run in a state that is none of a run's"
	case ended != (r.Ending != nil):
		return "an end that is not told, or one of a run that goes on"
	case ended && (r.Claim.Owner != "" || r.Blob != nil || !r.Start.IsZero()):
		return "a run that has ended and goes on"
	case r.Blob != nil && r.Blob.Size < 0:
		return "a blob of a negative size"
	}
	return ""
}
