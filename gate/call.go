package gate

import (
	"encoding/json"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/interrupt"
)

// A Call is one request to run a tool, or to go on with one. Scope, Session, StartID and Facilities
// are the host's grant: the host takes them from what it authenticated itself, never from a request
// ID, an untrusted header or metadata (R24).
type Call struct {
	Tool      string
	Arguments json.RawMessage // a JSON object; the same in every request of an interaction
	// Scope is the host's key for the authenticated principal. It must not be empty.
	Scope string
	// Session is the host's or transport's name for the conversation. It must not be empty.
	Session string
	// StartID is a stable key for one piece of work, of the scope; empty for none. A call that
	// comes again with it joins what it started.
	StartID string
	// Join lets a call without a start ID join the interaction of the same scope, tool and
	// arguments that is open, if there is one, instead of beginning another (R31).
	Join bool
	// Facilities are the ways in which this host can really ask; those of this request count, not
	// those of an earlier one. Without any, nothing is asked: a tool that asks what the host cannot
	// show ends with ErrConfirmationRequired.
	Facilities []interrupt.Facility
	// Progress takes what the tool's handler tells of how far it is; nil: nobody listens.
	Progress *Progress `json:"-"`

	// Over is closed when the caller wants no more of it: the handler's context is cancelled then,
	// or from the beginning, and what the request records is recorded all the same. A context that
	// has ended breaks the request itself off, so that a person who broke off could not be
	// recorded. Nil: never.
	Over <-chan struct{} `json:"-"`

	// Run is the run of the host in which the call is made; nil: none. A prompt of such a call is
	// held until the run's commit (see [Outcome.Held]).
	Run *Run `json:"-"`

	// Token continues the interaction it was given out for. Answers answer the round of the token,
	// and come with one; without them the request stands for the answer that is recorded already,
	// or looks again at the open prompt.
	Token   Token `json:"-"` // not by accident into a log
	Answers Answers
}

// Answers holds one payload for every question of a prompt, by question id. They are recorded whole
// or not at all (R18).
type Answers map[string]json.RawMessage

// An Outcome is what a request brought: a result, or a prompt for a person.
type Outcome struct {
	// Interaction is the recorded interaction; zero where a tool finished without one.
	Interaction checkpoint.ID
	Result      json.RawMessage
	// Prompt is set where a person is needed. The caller puts it to them and comes again with its
	// token and the answers.
	Prompt *Prompt
	// Held is set where the call asked in a run: its prompt comes from [Run.Commit], and exists for
	// nobody before.
	Held bool
	// OutOfBand is set where the call's host cannot show the prompt but said that it is answered
	// out of band: the caller comes again, or waits, without an answer.
	OutOfBand bool
	// Link leads to where such a prompt can be answered, where the gate has a PromptLink.
	Link string
}

// A Prompt is what one round shows to a person. It is the receiver's own copy, and has a JSON form.
type Prompt struct {
	Interaction checkpoint.ID `json:"interaction"`
	Round       int           `json:"round"`
	Tool        string        `json:"tool"`
	Title       string        `json:"title,omitempty"` // of the tool
	// Arguments are those the tool will run with, in canonical form, the masked ones replaced. They
	// are part of what the person decides on.
	Arguments json.RawMessage `json:"arguments"`
	Questions []Question      `json:"questions"`
	// Expires is when the prompt can no longer be answered; zero: never.
	Expires time.Time `json:"expires,omitzero"`

	// Token continues from here. It is empty in a listing: only the caller gets it. It is not part
	// of the JSON form, so that no log gets it by accident: a host that sends it does so on
	// purpose.
	Token Token `json:"-"`
}

// A Question is one interrupt of a prompt.
type Question struct {
	ID      string          `json:"id"` // unique over the ledger; the "interruptId" of an answer
	Type    string          `json:"type"`
	Version int             `json:"version,omitempty"` // of the body, where the type counts versions
	Body    json.RawMessage `json:"body"`              // as the interrupt serialized itself
	// PresentedBy is the name of the application's own type that presents itself as this question;
	// empty: the question is shown as it was raised. The answer is to this question all the same.
	PresentedBy string `json:"presentedBy,omitempty"`
	// Remember is set where the question has options of an always kind, and says what such an
	// answer is remembered for and how long (R19). A face puts it into words beside the options:
	// where it is [checkpoint.Remember.Widened], the answer is for calls with other arguments, too.
	Remember *checkpoint.Remember `json:"remember,omitempty"`
}

// Interrupt returns the question as a value of its registered type, read from an older version
// where it is of one. The error matches [interrupt.ErrInvalidQuestion].
func (q Question) Interrupt() (interrupt.Interrupt, error) {
	return interrupt.Question{Type: q.Type, Version: q.Version, Body: q.Body}.Interrupt()
}
