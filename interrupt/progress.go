package interrupt

import (
	"context"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/parley-go/parley/internal/resume"
)

// maxMessage bounds an update's message, in bytes (R35).
const maxMessage = 1 << 10

// An Update says how far a handler is.
type Update struct {
	// Completed is how much is done, in a unit of the handler's choice: finite, not negative, and
	// not less than in the run's updates before.
	Completed float64
	// Total is how much there is to do: finite and not below Completed. It may change. Nil: nobody
	// knows.
	Total *float64
	// Message says in words what is going on: UTF-8 of at most 1 KiB. It may be shown to whoever
	// made the call.
	Message string
}

// Validate returns an [*UpdateError] where the update is not valid by itself.
func (u Update) Validate() error {
	switch {
	case !finite(u.Completed):
		return &UpdateError{"completed", "is not finite"}
	case u.Completed < 0:
		return &UpdateError{"completed", "is negative"}
	case u.Total != nil && !finite(*u.Total):
		return &UpdateError{"total", "is not finite"}
	case u.Total != nil && *u.Total < u.Completed:
		return &UpdateError{"total", "is below completed"}
	case len(u.Message) > maxMessage:
		return &UpdateError{"message", fmt.Sprintf("has %d bytes, the limit is %d", len(u.Message), maxMessage)}
	case !utf8.ValidString(u.Message):
		return &UpdateError{"message", "is not valid UTF-8"}
	}
	return nil
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// Progress tells the host of the call how far the handler is. It is advice, and nothing hangs on it
// (R35): the host may not listen, and of updates that come close together it gets only some, not
// even the last one for certain. An update that is not valid is left out, and the host told so, not
// the handler: a mistake here does not change how the call ends.
//
// What the host does with an update it does before Progress returns, so it may take a while.
// Progress may be called from several goroutines of the handler; while one update is on its way,
// the others are left out. The total is copied.
//
// The error is [ErrRunEnded] after the handler returned, and [ErrNoRun] on a context that is not a
// handler's. A handler may ignore it.
func Progress(ctx context.Context, u Update) error {
	run := resume.From(ctx)
	if run == nil {
		return ErrNoRun
	}
	if !run.Report(ctx, resume.Update(u)) {
		return ErrRunEnded
	}
	return nil
}
