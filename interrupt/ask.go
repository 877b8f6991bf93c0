package interrupt

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-go/parley/internal/resume"
)

// Ask is the ordinary way to ask. On the first run of a handler it returns the question as the
// error that the handler returns; when the handler runs again with the answer, it returns the
// question, answered, and nil:
//
//	answered, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy the API"))
//	if err != nil {
//		return err // the question itself; later ErrRejected, ErrDeclined or ErrCancelled
//	}
//
// It fails closed: a rejected permission, a decline and a cancel come back, beside the question, as
// [ErrRejected], [ErrDeclined] and [ErrCancelled]. What comes back is a copy of the question as the
// person saw it; the given one is never changed.
//
// A question is matched with its recorded answer by its type and key where it has a key (see
// [Keyed]), which a run asks once; else by its type, what it shows, and its occurrence among equal
// ones. A question that matches no recorded answer is a new question; an old answer is never given
// to it.
//
// Ask may be called several times in one run, one after the other; several goroutines ask through
// [AskAll]. On a context that no gate made, every question is a new one. After the handler
// returned, Ask fails with [ErrRunEnded], and inside a step of [Once] with [ErrInvalidStep].
func Ask[Q Interrupt](ctx context.Context, question Q) (Q, error) {
	result, err := ask(ctx, question)
	if result == nil {
		return question, err
	}
	answered, ok := result.(Q)
	if !ok {
		return question, &QuestionError{question.TypeName(), "", fmt.Sprintf("is registered as %T and asked as %T", result, question)}
	}
	return answered, err
}

// AskAll asks several questions in one prompt, which is answered whole. On the first run it returns
// all of them as one error; later the questions, answered, in their order. Where one or more were
// rejected, declined or cancelled, the error joins those outcomes. Two questions of one call that
// show the same are told apart by their order.
func AskAll(ctx context.Context, questions ...Interrupt) ([]Interrupt, error) {
	answered := make([]Interrupt, len(questions))
	var open, outcomes []error
	for i, question := range questions {
		result, err := ask(ctx, question)
		answered[i] = result
		var raised Interrupt
		switch {
		case err == nil:
		case errors.As(err, &raised):
			open = append(open, err)
		case result != nil:
			outcomes = append(outcomes, err)
		default:
			return nil, err
		}
	}
	if len(open) > 0 {
		return nil, errors.Join(open...)
	}
	return answered, errors.Join(outcomes...)
}

// ask returns the answered question with its outcome, or a nil question with what was raised or is
// wrong.
func ask(ctx context.Context, question Interrupt) (Interrupt, error) {
	if key := resume.StepOf(ctx); key != "" {
		return nil, &StepError{Key: key, Reason: "a step asks nobody", Err: ErrInvalidStep}
	}
	snapshot, err := Snapshot(question)
	if err != nil {
		return nil, err
	}
	raised := cloneSound(question)
	if raised == nil {
		return nil, &QuestionError{snapshot.Type, "", "cannot be copied"}
	}
	run := resume.From(ctx)
	if run == nil {
		return nil, raised
	}
	recorded, found := run.Take(snapshot.Type, snapshot.Key, snapshot.Digest)
	switch found {
	case resume.Ended:
		return nil, ErrRunEnded
	case resume.New:
		return nil, raised
	case resume.Twice:
		return nil, &QuestionError{snapshot.Type, "key", fmt.Sprintf("%.64q was used before in this run", snapshot.Key)}
	}
	answered, err := Rehydrate(recorded.Type, recorded.Body)
	if err != nil {
		return nil, err
	}
	// A key may change what a question shows, never what it permits.
	if tool, ok := permits(answered); ok {
		if now, ok := permits(raised); !ok || now != tool {
			return nil, &QuestionError{snapshot.Type, "key", fmt.Sprintf("%.64q permits another tool", snapshot.Key)}
		}
	}
	action, err := Apply(answered, recorded.Payload)
	if err != nil {
		return nil, err
	}
	if form, ok := raised.(interface{ adopt(Interrupt) Interrupt }); ok {
		answered = form.adopt(answered)
	}
	return answered, outcome(answered, action)
}

// permits returns the name of the tool that a yes to the question permits, where it is shown as a
// permission.
func permits(q Interrupt) (tool string, ok bool) {
	if shown, err := Presented(q); err == nil && shown != nil {
		q = shown
	}
	p, ok := q.(*ToolPermissionInterrupt)
	if !ok {
		return "", false
	}
	return p.ToolName, true
}

func outcome(q Interrupt, action Action) error {
	switch action {
	case ActionDecline:
		return ErrDeclined
	case ActionCancel:
		return ErrCancelled
	}
	if r, ok := q.(Rejecter); ok && r.Rejected() {
		return ErrRejected
	}
	return nil
}
