package interrupt

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/parley-go/parley/internal/resume"
)

// A Resume is the verified answer with which a handler runs again. All of it is the handler's own
// copy.
type Resume struct {
	// Round is the round that was answered; 0 where a first run is recovered, which has no answer.
	Round int
	// Attempt counts the runs for this round's answer from 1.
	Attempt int
	// Recovery is set where an attempt for this answer was made before and its outcome may already
	// exist. The handler may only finish: a new question is refused.
	Recovery bool
	// State is the private state that travelled with the prompt; nil where there was none.
	State json.RawMessage
	// Answers are those to the questions of the round, in their order.
	Answers []Answered
}

// Answered is one answer of a round.
type Answered struct {
	InterruptID string
	Type        string
	Key         string
	Action      Action
	Payload     json.RawMessage // in canonical form
}

// ResumeFrom returns the verified resume of a handler's context. It reports false on the first run,
// and on a context that no gate made: only a gate can put a resume into a context, and a call
// inside a handler does not inherit that of the handler (R3).
func ResumeFrom(ctx context.Context) (Resume, bool) {
	run := resume.From(ctx)
	if run == nil || run.Attempt == 0 {
		return Resume{}, false
	}
	r := Resume{Round: run.Round, Attempt: run.Attempt, Recovery: run.Recovery, State: bytes.Clone(run.State)}
	for _, q := range run.Questions[run.Current:] {
		// The payload was checked before it was recorded.
		action, _, _ := ActionOf(q.Type, q.Payload)
		r.Answers = append(r.Answers, Answered{q.ID, q.Type, q.Key, action, bytes.Clone(q.Payload)})
	}
	return r, true
}

// A Facility is a way in which the host of a call can ask a person. Those for the types of this
// package have the name of the type. A type of the user's own needs the facility of what it
// presents (see [Presenter]) or, where it presents nothing, that of its own name.
type Facility string

// The facilities.
const (
	FacilityPermission Facility = TypeToolPermission
	FacilitySelection  Facility = TypeUserSelection
	FacilityForm       Facility = TypeForm
	FacilityURL        Facility = TypeURL
	// FacilityOutOfBand: questions are kept, and answered by another road than the caller's.
	FacilityOutOfBand Facility = "out_of_band"
)

// Supports reports whether the call's host can ask in that way. It is false on a context that no
// gate made (R5).
func Supports(ctx context.Context, facility Facility) bool {
	run := resume.From(ctx)
	return run != nil && run.Supports(string(facility))
}
