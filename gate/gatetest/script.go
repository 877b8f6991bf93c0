package gatetest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A Script is one call of a tool, what a person answers, and how it ends. But for Arguments the
// zero field is the documented default.
type Script struct {
	// Arguments are the arguments of the call, a JSON object.
	Arguments string
	// Answers are what the person answers, one for each question in the order in which they are
	// asked. A question that stays open (an [Invalid] answer; KeepOpen of the tool) takes the next
	// one.
	Answers []Answer
	// Result is the JSON value with which the call has to end. Default: any.
	Result string
	// Code is how the call has to end where it does not end with a result: gate.ErrRejected, say,
	// or gate.ErrExpired. Default: with a result.
	Code gate.Code
	// Facilities are the ways in which the host can ask. Default: the four of package interrupt; a
	// type of your own needs the one of its name.
	Facilities []interrupt.Facility
	// Clock is the clock that the tool looks at, where it looks at one.
	Clock *Clock
	// Before is called before each story, and makes the world around the tool new: a fake, a
	// counter, a directory. Without it, what one story did is there in the next.
	Before func()
	// After is called after each story that a host could see, and looks at the world: whether what
	// is to be done once was done once. Its error is reported with the way of the story.
	After func(s *Story) error
}

// A Story is a script that was played once.
type Story struct {
	// Way says how it was played, in words for a report.
	Way string
	// Asked are the questions of each round: Asked[0] are those of round 1. Keys, lifetimes and
	// answers are not part of them.
	Asked [][]interrupt.Interrupt
	// Result is the result, where the story ended with one.
	Result json.RawMessage
	// Err is nil where it did, else a [*gate.Error], to be looked at with errors.Is and its code.
	Err error
	// Runs is how often the handler ran: once for the call, once for each answer, and again where
	// the tool is Repeatable and a crash left that open.
	Runs int
	// Recoveries is how often the tool ran in recovery.
	Recoveries int
}

func (s *Script) validate(newTool func() *gate.Tool) error {
	switch {
	case newTool == nil:
		return errors.New("newTool must not be nil")
	case !json.Valid([]byte(s.Arguments)):
		return fmt.Errorf("arguments %.80q are not JSON", s.Arguments)
	case s.Result != "" && !json.Valid([]byte(s.Result)):
		return fmt.Errorf("result %.80q is not JSON", s.Result)
	case s.Result != "" && s.Code != "":
		return fmt.Errorf("the script ends with a result and with the code %s", s.Code)
	}
	for i, answer := range s.Answers {
		if answer.payload == nil {
			return fmt.Errorf("answer %d is empty: make it with Allow, Choose, Fill, …", i+1)
		}
	}
	return nil
}

// facilities are those of the script's call.
func (s *Script) facilities() []interrupt.Facility {
	if s.Facilities != nil {
		return s.Facilities
	}
	return []interrupt.Facility{
		interrupt.FacilityPermission, interrupt.FacilitySelection, interrupt.FacilityForm, interrupt.FacilityURL,
	}
}
