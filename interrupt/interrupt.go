package interrupt

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// An Interrupt is a question to a person, in the form of an error. A handler raises it by returning
// it (most conveniently what [Ask] returned); whoever runs the handler finds it with errors.As.
//
// A value is used by one goroutine at a time. It is snapshotted when it is raised: what happens to
// it later changes nothing.
type Interrupt interface {
	// TypeName returns the stable, unique name of the type; it is the discriminator in stored
	// records and the key in the registry.
	TypeName() string
	// Serialize returns the question, without any answer, as one JSON value. json.Unmarshal into
	// the registered type reads it back.
	Serialize() ([]byte, error)
	// Return gives the question its answer. The payload is a JSON object. After an error nothing
	// was changed; one that matches [ErrInvalidPayload] tells the person what does not fit, the
	// text of any other stays with the host.
	Return(payload []byte) error
	// Error makes it an error. The text is for logs of the host and shows no answer.
	Error() string
}

// A PayloadInitializer is an Interrupt that can be made from raw data, for tools that are described
// by data (see [RaiseInterrupt]). An error should be a [*QuestionError], and changes nothing.
type PayloadInitializer interface {
	InitFromPayload(payload []byte) error
}

// A PayloadValidator is an Interrupt that can check an answer without changing anything. It is
// called before Return.
type PayloadValidator interface {
	ValidatePayload(payload []byte) error
}

// A Validator is an Interrupt that can say what makes it unfit to be shown. It is called when the
// question is raised, before anything is stored. The error should be a [*QuestionError].
type Validator interface {
	Validate() error
}

// A Keyed question is matched with its recorded answer by its type and key, instead of by what it
// shows (R2). A handler gives a key where the text of a question changes from run to run; it is
// unique within an interaction.
type Keyed interface {
	QuestionKey() string
}

// A Limited question shortens the time in which its prompt can be answered. Zero means no limit of
// its own.
type Limited interface {
	QuestionLifetime() time.Duration
}

// A Rejecter is an Interrupt whose accepted answer can still be a no, as a permission's is. [Ask]
// then returns [ErrRejected].
type Rejecter interface {
	Rejected() bool
}

// The published names of the types of this package.
const (
	TypeToolPermission = "tool_permission"
	TypeUserSelection  = "user_selection"
	TypeURL            = "url"
)

// serialize writes a question of this package. An & in a URL stays one: people read these bodies,
// and digests cover them.
func serialize(q any) ([]byte, error) {
	buf := buffers.Get().(*bytes.Buffer)
	defer release(buf)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(q)
	return bytes.Clone(bytes.TrimSpace(buf.Bytes())), err
}

// buffers are those in which questions are written, before their size is known.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func release(buf *bytes.Buffer) {
	const keep = 64 << 10
	if buf.Cap() <= keep {
		buf.Reset()
		buffers.Put(buf)
	}
}

// asQuestionError makes the error of a type's own code one of this package. Only what the type says
// is about the question is told; anything else is private.
func asQuestionError(typeName string, err error) error {
	if _, ok := err.(*QuestionError); ok {
		return err
	}
	if errors.Is(err, ErrInvalidQuestion) {
		return &QuestionError{typeName, "", err.Error()}
	}
	return &privateError{&QuestionError{typeName, "", "cannot be shown"}, err}
}
