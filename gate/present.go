package gate

import (
	"bytes"
	"encoding/json"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// A question of the application's own type can present itself as one of the four kinds (R14). What
// is shown is recorded beside it; an answer is to what was shown, and what that means to the type
// is what is recorded.

// present fills in what a person is shown: q, which was read back from body, or what it presents.
func (r *request) present(question *checkpoint.Question, q interrupt.Interrupt, body json.RawMessage) *Error {
	var shown interrupt.Interrupt
	err := safely(func() (err error) {
		if shown, err = interrupt.Presented(q); err != nil || shown == nil {
			return err
		}
		question.Shown = &checkpoint.Shown{Type: shown.TypeName()}
		if question.Shown.Body, err = shown.Serialize(); err != nil {
			return err
		}
		shown, err = interrupt.Rehydrate(question.Shown.Type, question.Shown.Body)
		return err
	})
	switch {
	case err != nil:
	case shown == nil:
		question.Body, err = r.shownBody(question, q, body)
	default:
		if question.Body, err = compact(body); err == nil {
			question.Shown.Body, err = r.shownBody(question, shown, question.Shown.Body)
		}
	}
	if err != nil {
		return invalidQuestion(err)
	}
	return nil
}

// sizeOf is what a question adds to its prompt.
func sizeOf(q checkpoint.Question) int {
	size := len(q.ID) + len(q.Type) + len(q.Body)
	if q.Shown != nil {
		size += len(q.Shown.Type) + len(q.Shown.Body)
	}
	if q.Remember != nil {
		said, _ := canon.Marshal(q.Remember) // of words and a number: it can always be written
		size += len(`,"remember":`) + len(said)
	}
	return size
}

// showQuestion is the question as a person gets it.
func showQuestion(q checkpoint.Question) Question {
	if q.Shown != nil {
		return Question{ID: q.ID, Type: q.Shown.Type, Body: bytes.Clone(q.Shown.Body), PresentedBy: q.Type}
	}
	shown := Question{ID: q.ID, Type: q.Type, Version: q.Version, Body: bytes.Clone(q.Body)}
	if q.Remember != nil {
		remember := copied(*q.Remember)
		shown.Remember = &remember
	}
	return shown
}

// facility is what a host needs to show the question.
func facility(q checkpoint.Question) interrupt.Facility {
	if q.Shown != nil {
		return interrupt.Facility(q.Shown.Type)
	}
	name, _ := interrupt.CurrentName(q.Type)
	return interrupt.Facility(name)
}

// meaning is what an accepted answer to what was shown means to the question itself, in canonical
// form. It is called once for a round: an answer that comes again is compared as it was given, so
// that a replay does not depend on it.
func (g *Gate) meaning(own, shown interrupt.Interrupt, id string, given json.RawMessage) (json.RawMessage, error) {
	var meant json.RawMessage
	err := safely(func() (err error) {
		meant, _, err = interrupt.FromPresented(own, shown, given)
		return err
	})
	if err != nil {
		return nil, err
	}
	meant, err = canon.JSON(meant, &canon.Limits{Bytes: g.opts.Limits.Answer, Depth: g.opts.Limits.Depth})
	if err != nil {
		return nil, err
	}
	return complete(meant, id, interrupt.ActionAccept)
}
