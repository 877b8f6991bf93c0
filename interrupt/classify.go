package interrupt

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// A Kind is what an error of a handler is.
type Kind int

// The kinds. There is one classifier, [Classify], and every face goes by it (R1).
const (
	KindFailure        Kind = iota // no interrupt in the tree
	KindPrompt                     // interrupts, and nothing else at the leaves
	KindRejected                   // ErrRejected and nothing worse, see Classify
	KindDeclined                   // ErrDeclined
	KindCancelled                  // ErrCancelled
	KindOutcomeUnknown             // ErrOutcomeUnknown of a step
	KindMixed                      // an interrupt beside something else: nothing is asked
)

// A Classification is what [Classify] made of an error.
type Classification struct {
	Kind      Kind
	Questions []Interrupt     // of a prompt, in the order of the tree
	State     json.RawMessage // the private state that travels with a prompt; nil: none
	// Other is the first leaf that is neither interrupt nor outcome: of KindMixed what stands
	// beside the interrupts, of KindFailure the failure.
	Other error
}

// Classify says what the error of a handler is. An error whose tree (Unwrap, errors.Join) holds
// interrupts and nothing else at its leaves is a prompt; wrapping keeps it one. The same value at
// several leaves is one question, raised once; two values are two, also where they show the same. A
// tree whose leaves are [ErrRejected], [ErrDeclined], [ErrCancelled] and [ErrOutcomeUnknown] only
// is that outcome, the last of them in this order. A tree without an interrupt is a failure. One
// that mixes interrupts with anything else is neither: the handler said two things at once.
func Classify(err error) Classification {
	var t tree
	t.walk(err)
	switch {
	case len(t.questions) == 0 && t.other == nil && t.outcome != KindFailure:
		return Classification{Kind: t.outcome}
	case len(t.questions) == 0:
		return Classification{Kind: KindFailure, Other: t.other}
	case t.other != nil:
		return Classification{Kind: KindMixed, Other: t.other}
	case t.sentinel != nil:
		return Classification{Kind: KindMixed, Other: t.sentinel}
	case len(t.states) > 1:
		return Classification{Kind: KindMixed, Other: errors.New("private state is given twice")}
	}
	c := Classification{Kind: KindPrompt, Questions: t.questions}
	if len(t.states) == 1 {
		c.State = t.states[0]
	}
	return c
}

type tree struct {
	questions []Interrupt
	states    []json.RawMessage
	outcome   Kind
	sentinel  error
	other     error // the first leaf that is neither
}

func (t *tree) walk(err error) {
	if q, ok := err.(Interrupt); ok {
		if !t.has(q) {
			t.questions = append(t.questions, q)
		}
		return
	}
	switch e := err.(type) {
	case *stateError:
		t.states = append(t.states, e.state)
		t.walk(e.error)
		return
	case *StepError:
		if e != nil && e.Err != nil {
			t.walk(e.Err) // its cause is the host's, and no leaf
			return
		}
	case interface{ Unwrap() []error }:
		if children := e.Unwrap(); len(children) > 0 {
			for _, child := range children {
				if child != nil {
					t.walk(child)
				}
			}
			return
		}
	case interface{ Unwrap() error }:
		if child := e.Unwrap(); child != nil {
			t.walk(child)
			return
		}
	}
	t.leaf(err)
}

// has reports whether that very value was met before. Only a pointer to something tells: values
// that are equal can have been raised apart, pointers to nothing too, and others cannot be
// compared.
func (t *tree) has(q Interrupt) bool {
	typ := reflect.TypeOf(q)
	if typ.Kind() != reflect.Pointer || typ.Elem().Size() == 0 {
		return false
	}
	for _, met := range t.questions {
		if met == q {
			return true
		}
	}
	return false
}

func (t *tree) leaf(err error) {
	kind := KindFailure
	switch err {
	case ErrRejected:
		kind = KindRejected
	case ErrDeclined:
		kind = KindDeclined
	case ErrCancelled:
		kind = KindCancelled
	case ErrOutcomeUnknown:
		kind = KindOutcomeUnknown
	default:
		if t.other == nil {
			t.other = err
		}
		return
	}
	t.outcome, t.sentinel = max(t.outcome, kind), err
}

// WithState gives a prompt private state: any JSON value, null included, that travels with the
// prompt and comes back to the handler, and to nobody else, as [Resume.State]. It is no place for
// credentials (R6). An error that is no prompt is returned as it is; state that is not one JSON
// value makes the prompt invalid.
//
//	if _, err := interrupt.Ask(ctx, question); err != nil {
//		return interrupt.WithState(err, state)
//	}
func WithState(err error, state json.RawMessage) error {
	var q Interrupt
	if err == nil || !errors.As(err, &q) {
		return err
	}
	if !json.Valid(state) {
		return &QuestionError{q.TypeName(), "", "private state must be one JSON value"}
	}
	return &stateError{err, append(json.RawMessage(nil), state...)}
}

type stateError struct {
	error
	state json.RawMessage
}

func (e *stateError) Unwrap() error { return e.error }

// A Failure is an error with words, and optionally a link, that whoever called the tool may read.
// The text of any other error of a handler stays with the host. Err is the private cause.
type Failure struct {
	Text string
	Link string
	Err  error
}

func (f *Failure) Error() string {
	if f == nil {
		return "failure without words"
	}
	if f.Err == nil {
		return f.Text
	}
	return fmt.Sprintf("%s: %v", f.Text, f.Err)
}

// Unwrap returns the private cause.
func (f *Failure) Unwrap() error {
	if f == nil {
		return nil
	}
	return f.Err
}
