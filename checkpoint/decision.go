package checkpoint

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-go/parley/internal/canon"
)

// A Remember says what an answer of an always kind is remembered for, and how long (R19). It is
// part of what a person was shown.
type Remember struct {
	// AnyArguments: calls with any arguments.
	AnyArguments bool `json:"anyArguments,omitempty"`
	// Arguments: calls that have these arguments in common, whatever the others are; in order.
	// Without AnyArguments and without names it is calls with exactly the same arguments.
	Arguments []string `json:"arguments,omitempty"`
	// Seconds is how long it stands, counted from the answer.
	Seconds int64 `json:"seconds"`
}

// Widened reports whether it is for calls with other arguments, too.
func (r *Remember) Widened() bool { return r.AnyArguments || len(r.Arguments) > 0 }

// A Decision is an answer to a permission that answers later ones (R19). It is kept as a [Record]
// in state [Remembered]. All times are UTC in whole milliseconds.
type Decision struct {
	ID       ID        `json:"id"`
	Revision uint64    `json:"revision"`
	Scope    Hash      `json:"scope"`
	Start    Hash      `json:"start"` // of all that it is for, under which it is found
	Due      time.Time `json:"due"`   // when it expires

	Tool         string   `json:"tool"`
	ToolRevision string   `json:"toolRevision,omitempty"`
	Key          string   `json:"key,omitempty"`   // of the question
	ToolName     string   `json:"toolName"`        // that the question named
	Title        string   `json:"title,omitempty"` // of the question that was answered
	Remember     Remember `json:"remember"`
	// Arguments are those that are compared, in canonical form; nil: none are.
	Arguments json.RawMessage `json:"arguments,omitempty"`

	Kind        string    `json:"kind"` // allow_always or reject_always
	OptionID    string    `json:"optionId"`
	Option      string    `json:"option"` // its name, as it was shown
	Time        time.Time `json:"time"`   // of the answer
	By          string    `json:"by,omitempty"`
	Face        string    `json:"face,omitempty"`
	Elsewhere   bool      `json:"elsewhere,omitempty"`
	Interaction ID        `json:"interaction"` // in which it was given
	Round       int       `json:"round"`
}

// decisionVersion is the version of the JSON value in the record of a decision. A later release
// reads all earlier ones.
const decisionVersion = 1

type decisionEnvelope struct {
	V int `json:"v"`
	*Decision
}

// EncodeDecision returns the record of the decision: its plain fields and, in Data, all of it.
func EncodeDecision(d *Decision) (Record, error) {
	if reason := d.contradiction(); reason != "" {
		return Record{}, fmt.Errorf("write decision %s: %s", d.ID, reason)
	}
	data, err := canon.Marshal(decisionEnvelope{decisionVersion, d})
	if err != nil {
		return Record{}, fmt.Errorf("write decision %s: %w", d.ID, err)
	}
	return Record{ID: d.ID, Revision: d.Revision, Status: Remembered, Scope: d.Scope, Start: d.Start, Due: d.Due, Data: data}, nil
}

// DecodeDecision reads the record of a decision. Its error is a [*DecodeError]: the record is none,
// Data is of an unknown version, malformed, contradicts itself, or says other than the plain fields
// beside it (R37).
func DecodeDecision(r Record) (*Decision, error) {
	if r.Status != Remembered || r.Claim != (Claim{}) {
		return nil, &DecodeError{r.ID, "not a remembered decision", nil}
	}
	var version struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(r.Data, &version); err != nil {
		return nil, &DecodeError{r.ID, "malformed data", err}
	}
	if version.V != decisionVersion { // what else a newer one holds is not known
		return nil, &DecodeError{r.ID, fmt.Sprintf("format version %d, want %d", version.V, decisionVersion), nil}
	}
	d := new(Decision)
	if err := unmarshal(r.Data, &decisionEnvelope{Decision: d}); err != nil {
		return nil, &DecodeError{r.ID, "malformed data", err}
	}
	field := ""
	switch {
	case d.ID != r.ID:
		field = "id"
	case d.Revision != r.Revision:
		field = "revision"
	case d.Scope != r.Scope:
		field = "scope"
	case d.Start != r.Start:
		field = "start"
	case !d.Due.Equal(r.Due):
		field = "due"
	}
	if field != "" {
		return nil, &DecodeError{r.ID, fmt.Sprintf("plain field %q says other than the data", field), nil}
	}
	if reason := d.contradiction(); reason != "" {
		return nil, &DecodeError{r.ID, reason, nil}
	}
	return d, nil
}

// contradiction says what in a decision does not go together; "" where nothing does.
func (d *Decision) contradiction() string {
	switch {
	case d.Start.IsZero():
		return "a decision that cannot be found"
	case d.Due.IsZero():
		return "a decision that never expires"
	case d.Kind != "allow_always" && d.Kind != "reject_always":
		return "a decision of another kind"
	case d.Tool == "" || d.ToolName == "" || d.OptionID == "":
		return "a decision on nothing"
	case d.Remember.AnyArguments && len(d.Remember.Arguments) > 0:
		return "any arguments and named ones at once"
	case d.Remember.AnyArguments == (d.Arguments != nil):
		return "arguments that are not those to be compared"
	}
	return ""
}
