package gate

import (
	"strconv"

	"github.com/parley-go/parley/checkpoint"
)

// refused says a row's code in words.
func refused(m move, in *checkpoint.Interaction, startID string) *Error {
	key := ownKey(startID)
	e := fail(m.code, "the round has another answer")
	switch m.code {
	case ErrBusy:
		e = busy(in.ID)
	case ErrAlreadyAnswered:
		e.Message = "the round was answered by another road"
	case ErrExpired:
		e.Message = "the time to answer is over: " + key
	case ErrAlreadyCompleted:
		e.Message = completed(Code(in.Ending.Code), key)
	case ErrOutcomeUnknown:
		e.Message = "an attempt was made and may have had its effects: " + key
	}
	if in.Ending != nil && (m.code == ErrAlreadyCompleted || m.code == ErrOutcomeUnknown) {
		e.Ended = Code(in.Ending.Code)
	}
	return e.on(in.ID)
}

// ownKey tells somebody who cannot go on here where to look (R36).
func ownKey(startID string) string {
	key := "look the work up under the application's own key"
	if startID != "" {
		key += ", start id " + strconv.Quote(startID)
	}
	return key
}

// completed says how the work ended that is done.
func completed(ended Code, key string) string {
	if ended.Decision() {
		return "the person " + string(ended) + " it"
	}
	return "the work is done and its result was not kept: " + key
}

func busy(id checkpoint.ID) *Error { return fail(ErrBusy, "another request is at it").on(id) }

// readOnly is V3.
func readOnly() *Error {
	return fail(ErrUnavailable, "this gate only reads: send the request to one that writes")
}

func startUnknown(startID string) *Error {
	return fail(ErrStartUnknown, "start id %.80q was never used", startID)
}
