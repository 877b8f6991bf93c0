package gate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-go/parley/gate"
)

// A work is one interaction, as those outside the machine know it: what they were told before the
// cut, and what they asked for since.
type work struct {
	effect string // the line it leaves
	call   gate.Call
	stage  stage
	prompt *gate.Prompt // the last one they were given, with its token
	former []gate.Call  // the calls whose answer brought a further prompt
}

// A stage is how far an interaction came.
type stage int

const (
	asked         stage = iota // they have a prompt and its token
	answering                  // the caller answered, and was not told what became of it
	sentElsewhere              // an answer was sent by another road, and not confirmed
	confirmed                  // it was confirmed
	resuming                   // and the caller came, and was not told what became of it
	done                       // the caller has the result
	unknown                    // the caller was told that the outcome is not known
)

// ask is how the work asks the machine.
type ask func(o powerOrder) (powerReply, error)

func (w *work) name() string { return string(w.call.Arguments) }

// first is the call that begins it.
func (w *work) first() powerOrder { return powerOrder{Call: &w.call} }

// look is the call with the token, without an answer.
func (w *work) look() powerOrder {
	call := w.call
	return powerOrder{Call: &call, Token: w.prompt.Token}
}

func (w *work) answers(payload string) gate.Answers {
	return gate.Answers{w.prompt.Questions[0].ID: json.RawMessage(payload)}
}

func (w *work) answer(payload string) powerOrder {
	o := w.look()
	o.Call.Answers = w.answers(payload)
	return o
}

func (w *work) elsewhere(payload string) powerOrder {
	return powerOrder{Answer: &gate.AnswerRequest{
		Interaction: w.prompt.Interaction, Round: w.prompt.Round, Answers: w.answers(payload), Scope: w.call.Scope,
	}}
}

// told takes what the caller was told about an answer: the next prompt, the result, or that nobody
// knows.
func (w *work) told(r powerReply) error {
	switch {
	case r.Code == gate.ErrOutcomeUnknown, r.Code == gate.ErrAlreadyCompleted:
		w.stage = unknown
	case r.Code != "":
		return fmt.Errorf("%s: %s: %s", w.name(), r.Code, r.Message)
	case r.Prompt == nil:
		w.stage = done
	default:
		if w.prompt != nil && r.Prompt.Round > w.prompt.Round {
			former := w.answer(allow)
			former.Call.Token = w.prompt.Token
			w.former = append(w.former, *former.Call)
		}
		w.prompt, w.stage = r.Prompt, asked
		w.prompt.Token = r.Token
	}
	return nil
}

// survived holds the ledger against what the outside knows, after a cut, and goes on from what it
// finds.
func (w *work) survived(ask ask) error {
	switch w.stage {
	case asked:
		return errors.Join(w.stillAsked(ask), w.formerLeadsHere(ask))
	case answering:
		return w.goesOn(ask, w.answer(allow), gate.ErrOutcomeUnknown, gate.ErrAlreadyCompleted)
	case sentElsewhere:
		return w.goesOn(ask, w.look())
	case confirmed:
		r, err := ask(w.elsewhere(allow))
		if err != nil || r.Code != "" {
			return fmt.Errorf("%s: the answer that was recorded, again: %v %s", w.name(), err, r.Code)
		}
		if err := w.refused(ask, w.elsewhere(reject), gate.ErrAnswerConflict); err != nil {
			return err
		}
		before := w.prompt.Round
		if err := w.goesOn(ask, w.look()); err != nil {
			return err
		}
		if w.stage == asked && w.prompt.Round == before {
			return fmt.Errorf("%s: the answer that was recorded is not there", w.name())
		}
		return nil
	case resuming:
		return w.goesOn(ask, w.look(), gate.ErrOutcomeUnknown, gate.ErrAlreadyCompleted)
	}
	if err := w.refused(ask, w.look(), gate.ErrOutcomeUnknown, gate.ErrAlreadyCompleted); err != nil {
		return err
	}
	return w.refused(ask, w.answer(reject), gate.ErrAnswerConflict, gate.ErrAlreadyAnswered)
}

// stillAsked wants the same prompt and token.
func (w *work) stillAsked(ask ask) error {
	r, err := ask(w.look())
	if err != nil {
		return err
	}
	if r.Prompt == nil {
		return fmt.Errorf("%s: the prompt of round %d is gone: %s %s", w.name(), w.prompt.Round, r.Code, r.Result)
	}
	if diff := cmp.Diff(w.prompt, r.Prompt, cmpopts.IgnoreFields(gate.Prompt{}, "Token")); diff != "" || r.Token != w.prompt.Token {
		return fmt.Errorf("%s: the prompt or its token has changed: %s", w.name(), diff)
	}
	return nil
}

// formerLeadsHere gives every former answer again, which leads to the open prompt (R26), and
// another one, which is refused (R28).
func (w *work) formerLeadsHere(ask ask) error {
	for _, call := range w.former {
		o := powerOrder{Call: &call, Token: call.Token}
		r, err := ask(o)
		if err != nil || r.Token != w.prompt.Token {
			return fmt.Errorf("%s: a former answer leads to %v %s", w.name(), err, r.Code)
		}
		other := call
		other.Answers = gate.Answers{}
		for id := range call.Answers {
			other.Answers[id] = json.RawMessage(reject)
		}
		if err := w.refused(ask, powerOrder{Call: &other, Token: call.Token}, gate.ErrAnswerConflict, gate.ErrAlreadyAnswered); err != nil {
			return err
		}
	}
	return nil
}

// goesOn repeats what was sent, which must lead on as if for the first time, or to one of the
// codes.
func (w *work) goesOn(ask ask, o powerOrder, codes ...gate.Code) error {
	r, err := ask(o)
	if err != nil {
		return err
	}
	if r.Code != "" && !slices.Contains(codes, r.Code) {
		return fmt.Errorf("%s: %s: %s", w.name(), r.Code, r.Message)
	}
	return w.told(r)
}

func (w *work) refused(ask ask, o powerOrder, codes ...gate.Code) error {
	r, err := ask(o)
	if err != nil {
		return err
	}
	if !slices.Contains(codes, r.Code) {
		return fmt.Errorf("%s: got %q, result %s, a prompt: %v; want %v", w.name(), r.Code, r.Result, r.Prompt != nil, codes)
	}
	return nil
}
