package interrupt

import "context"

// RaiseInterrupt asks a question that is described by data: the type by its registered name, and
// what it shows as a payload that the type's InitFromPayload reads. It is [Ask] for whoever has no
// Go value to ask with, and returns what Ask does: on the first run an error, the question; later
// the answered question, with ErrRejected, ErrDeclined or ErrCancelled where the person said no.
//
// A name that is not registered, a type that is no [PayloadInitializer], and a payload that makes
// no question of its type are errors that match [ErrInvalidQuestion]; nothing is asked.
func RaiseInterrupt(ctx context.Context, typeName string, payload []byte) (Interrupt, error) {
	q, ok := New(typeName)
	if !ok {
		return nil, &QuestionError{typeName, "", "type is not registered"}
	}
	data, ok := q.(PayloadInitializer)
	if !ok {
		return nil, &QuestionError{typeName, "", "type is not made from data: it has no InitFromPayload"}
	}
	if err := data.InitFromPayload(payload); err != nil {
		return nil, asQuestionError(typeName, err)
	}
	return Ask(ctx, q)
}
