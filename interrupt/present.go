package interrupt

import "fmt"

// A Presenter is a type of the application's own that reaches a person as one of the four kinds of
// this package. Where a type is one it is always shown so: by every face, also by one that knows
// the type, so that everybody is asked the same. Without it only a face that knows the type can
// show it (R14).
//
// What is shown is recorded beside the question, and is held to the rules of its kind. An answer is
// checked against what was shown, and only then turned into a payload of the type's own, which is
// checked by the type and recorded.
type Presenter interface {
	// Present returns the question as a permission, a selection, a form or a URL. It is called when
	// the question is raised, on a value that was read back. Its Lifetime counts beside the
	// question's own; its Key does not, since the question has one.
	Present() Interrupt
	// FromPresented returns the payload that an accepted answer to what was shown means. Declining
	// and cancelling are the same for every type and do not come here. What it refuses with an
	// error that matches ErrInvalidPayload is told to the person, and leaves the question open.
	FromPresented(answered Interrupt) (payload []byte, err error)
}

// Presented returns the question that is shown in place of q, or nil where q is no [Presenter]. The
// error matches [ErrInvalidQuestion]: what q presents is none of the four kinds, is not fit to be
// shown, or is a permission while q cannot be rejected, which would turn a person's no into a yes.
func Presented(q Interrupt) (Interrupt, error) {
	p, ok := q.(Presenter)
	if !ok || own(q) {
		return nil, nil
	}
	typeName := q.TypeName()
	shown := p.Present()
	if !own(shown) {
		return nil, &QuestionError{typeName, "", fmt.Sprintf("presents itself as %T, which is none of the four kinds", shown)}
	}
	if _, err := Snapshot(shown); err != nil {
		return nil, &QuestionError{typeName, "", "presents itself as what cannot be shown: " + err.Error()}
	}
	if _, ok := shown.(*ToolPermissionInterrupt); ok {
		if _, ok := q.(Rejecter); !ok {
			return nil, &QuestionError{typeName, "", "presents itself as a permission and cannot be rejected"}
		}
	}
	return shown, nil
}

// FromPresented returns the payload of q, a [Presenter], that an answer to what was shown in its
// place means, and the action in it. The payload of a decline or a cancel is the same one. The
// error matches [ErrInvalidPayload] where the answer does not fit what was shown, or its meaning
// does not fit q. Neither question is changed.
func FromPresented(q, shown Interrupt, payload []byte) ([]byte, Action, error) {
	p, ok := q.(Presenter)
	answered, dup := Clone(shown), Clone(q)
	if !ok || answered == nil || dup == nil {
		return nil, "", &QuestionError{q.TypeName(), "", "is not presented by its type"}
	}
	action, err := Apply(answered, payload)
	if err != nil || action != ActionAccept {
		return payload, action, err
	}
	meant, err := p.FromPresented(answered)
	if err != nil {
		return nil, "", asPayloadError(q.TypeName(), err)
	}
	switch action, err = Apply(dup, meant); {
	case err != nil:
		return nil, "", err
	case outcome(answered, ActionAccept) == ErrRejected && outcome(dup, action) == nil:
		return nil, "", &PayloadError{q.TypeName(), "", "is a no, and its type makes a yes of it"}
	case action != ActionAccept:
		return nil, "", &PayloadError{q.TypeName(), "/action", "must be accept, as what was answered is"}
	}
	return meant, action, nil
}
