package gate

import (
	"fmt"
	"slices"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/resume"
	"github.com/parley-go/parley/interrupt"
)

// A question may have been recorded by another release of the application: under a former name of
// its type, in another version, or of a type that is not known here (R14). What cannot be read back
// is quarantined.

// restore reads a question back, which runs code of its type.
func restore(q interrupt.Question) (read interrupt.Interrupt, err error) {
	err = safely(func() (err error) {
		read, err = q.Interrupt()
		return err
	})
	return read, err
}

// readBack reads a recorded question back, and what was shown in its place; nil: nothing was.
func readBack(q checkpoint.Question) (own, shown interrupt.Interrupt, err error) {
	if own, err = restore(interrupt.Question{Type: q.Type, Version: q.Version, Body: q.Body}); err != nil || q.Shown == nil {
		return own, nil, err
	}
	if _, ok := own.(interrupt.Presenter); !ok {
		return nil, nil, fmt.Errorf("type %q does not present itself any more", q.Type)
	}
	shown, err = restore(interrupt.Question{Type: q.Shown.Type, Body: q.Shown.Body})
	return own, shown, err
}

// quarantined returns the names of the types that keep the interaction from going on here.
func quarantined(in *checkpoint.Interaction) (types []string) {
	for _, round := range in.Rounds {
		for _, q := range round.Questions {
			if slices.Contains(types, q.Type) {
				continue
			}
			if _, _, err := readBack(q); err != nil {
				types = append(types, q.Type)
			}
		}
	}
	return types
}

// current is a recorded question as it would be recorded today, so that the handler finds its
// answer by what it asks today (R2). One that cannot be read back matches nothing.
func current(q checkpoint.Question, payload []byte) resume.Question {
	was := interrupt.Question{Type: q.Type, Version: q.Version, Body: q.Body, Digest: q.Digest}
	var now interrupt.Question
	err := safely(func() (err error) {
		now, err = was.Current()
		return err
	})
	if err != nil {
		now = was
	}
	return resume.Question{
		ID: q.ID, Type: now.Type, Key: q.Key, Digest: now.Digest, Body: now.Body, Payload: payload, Unreadable: err != nil,
	}
}
