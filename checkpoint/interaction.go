package checkpoint

import (
	"encoding/json"
	"time"
)

// An Interaction is the recorded life of one call: what was called, what was asked and answered,
// and how it ended. All times are UTC in whole milliseconds. It holds what people and tools wrote;
// it holds no token.
type Interaction struct {
	ID           ID              `json:"id"`
	Revision     uint64          `json:"revision"`
	Status       Status          `json:"status"`
	Scope        Hash            `json:"scope"`
	Start        Hash            `json:"start,omitzero"`
	Join         Hash            `json:"join,omitzero"` // what Start is while others may join; zero: Start is of a start ID
	Created      time.Time       `json:"created"`
	Updated      time.Time       `json:"updated"`
	Due          time.Time       `json:"due,omitzero"` // see [Record.Due]
	Claim        Claim           `json:"claim,omitzero"`
	Tool         string          `json:"tool"`
	ToolRevision string          `json:"toolRevision,omitempty"`
	Arguments    json.RawMessage `json:"arguments,omitempty"` // in canonical form; absent from a tombstone
	Rounds       []Round         `json:"rounds,omitempty"`
	Ending       *Ending         `json:"ending,omitempty"`  // how the last attempt that came to an end did
	Remains      *Remains        `json:"remains,omitempty"` // of a tombstone
}

// A Round is one prompt and, once somebody gave it, its answer.
type Round struct {
	Questions []Question      `json:"questions"`
	State     json.RawMessage `json:"state,omitempty"` // the handler's private state; nil: none, which is not null
	Digest    Hash            `json:"digest"`          // of what was shown
	Asked     time.Time       `json:"asked"`
	Deadline  time.Time       `json:"deadline,omitzero"` // never later than the former round's; zero: none
	Mint      Mint            `json:"mint"`
	Answer    *Answer         `json:"answer,omitempty"`
}

// A Question is one interrupt as it was asked.
type Question struct {
	ID      string          `json:"id"` // unique over the ledger
	Type    string          `json:"type"`
	Version int             `json:"version,omitempty"` // of Body, where the type counts versions
	Key     string          `json:"key,omitempty"`
	Body    json.RawMessage `json:"body"`            // as shown, unless Shown is
	Digest  Hash            `json:"digest"`          // of what the handler raised
	Shown   *Shown          `json:"shown,omitempty"` // what the type presents in its place; nil: nothing
	// Remember says what an answer of an always kind is remembered for, as it was shown; nil: the
	// question has no such option.
	Remember *Remember `json:"remember,omitempty"`
}

// Shown is a question of one of the four kinds that a person is shown in place of another. The
// answer was to this one; what is recorded is what it means to the other.
type Shown struct {
	Type string          `json:"type"`
	Body json.RawMessage `json:"body"`
}

// A Mint says for whom, and under which key, a round's token was made. The token itself is derived
// from it and stored nowhere.
type Mint struct {
	Key     string `json:"key"`
	Count   uint16 `json:"count,omitempty"` // how often a new token replaced the former one
	Face    string `json:"face,omitempty"`
	Session Hash   `json:"session"`
}

// An Answer is what was answered to all questions of a round at once.
type Answer struct {
	Payloads  []json.RawMessage `json:"payloads"` // one per question, in canonical form
	Digest    Hash              `json:"digest"`   // of the payloads as they were given
	Time      time.Time         `json:"time"`
	By        string            `json:"by,omitempty"`        // who, in the host's words
	Face      string            `json:"face,omitempty"`      // through which face
	Elsewhere bool              `json:"elsewhere,omitempty"` // by another road than the caller's
	// Fallback is set where a question was put in the form of another kind, whose answers some
	// clients give for their person.
	Fallback bool `json:"fallback,omitempty"`
	// Remembered are the decisions that answered, one per question; empty: a person did now. By and
	// Face are then those of the decisions, where all have the same.
	Remembered []ID `json:"remembered,omitempty"`
}

// An Ending is how an attempt ended. Code is empty for success; Result is kept only where the tool
// keeps results.
type Ending struct {
	Code    string          `json:"code,omitempty"`
	Message string          `json:"message,omitempty"` // public words only
	Link    string          `json:"link,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Time    time.Time       `json:"time"`
}

// Remains are what a tombstone keeps of an interaction.
type Remains struct {
	Status Status `json:"status,omitzero"` // what it was; 0: not known
	Digest Hash   `json:"digest,omitzero"` // keyed, of the arguments
}

// Clone returns a copy whose rounds can be appended to and changed without changing in's. The bytes
// of questions and answers are shared: nothing changes them.
func (in *Interaction) Clone() *Interaction {
	out := *in
	out.Rounds = append(make([]Round, 0, len(in.Rounds)+1), in.Rounds...)
	return &out
}

// Last returns the last round, or nil before the first prompt.
func (in *Interaction) Last() *Round {
	if len(in.Rounds) == 0 {
		return nil
	}
	return &in.Rounds[len(in.Rounds)-1]
}

// contradiction says what in an interaction does not go together with its state; "" where nothing
// does. Who reads a record relies on it.
func (in *Interaction) contradiction() string {
	for i := range in.Rounds {
		round := &in.Rounds[i]
		waits := i == len(in.Rounds)-1 && (in.Status == Open || in.Status == Expired)
		switch {
		case len(round.Questions) == 0:
			return "a round without questions"
		case round.Answer == nil && !waits:
			return "a round without its answer"
		case round.Answer != nil && len(round.Answer.Payloads) != len(round.Questions):
			return "an answer that is not to the questions of its round"
		case round.Answer != nil && len(round.Answer.Remembered) > 0 && len(round.Answer.Remembered) != len(round.Questions):
			return "decisions that are not on the questions of their round"
		}
	}
	if (in.Status == Tombstone) != (in.Remains != nil) {
		return "remains of what is not removed, or a tombstone without"
	}
	if (in.Status == Tombstone) != (in.Arguments == nil) {
		return "a call without its arguments, or a tombstone with them"
	}
	switch last := in.Last(); in.Status {
	case Remembered:
		return "a decision, which is no interaction"
	case RunLive, RunEnded:
		return "a run, which is no interaction"
	case Started:
		if last != nil {
			return "a first run that has asked"
		}
	case Open:
		if last == nil || last.Answer != nil {
			return "an open state without an open round"
		}
	case Answered, Running, Expired:
		if last == nil {
			return "a state that follows a round, without one"
		}
	case Finished, Failed:
		if in.Ending == nil {
			return "an end that is not told"
		}
	}
	return ""
}
